package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

func TestAPodIsReadWithItsTaskAndItsPhase(t *testing.T) {
	template := phaseJob("one", "5").Spec.Template
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: template.Spec, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	pod.Annotations = map[string]string{render.AnnotationRelease: "2026.2"}
	pod.Namespace, pod.Name, pod.UID, pod.ResourceVersion = "openstack", "p", "p", "7"
	whose, m, ok := read(watch.Event{Type: watch.Added, Object: pod}, time.Now())
	require.True(t, ok)
	require.Equal(t, Subject{"openstack", Glance, "images"}, whose)
	require.Equal(t, &Pod{Task: upgrade.Expand, Release: "2026.2", Image: "r:2026.2", Phase: running}, m.Pod)
	pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	_, m, _ = read(watch.Event{Type: watch.Deleted, Object: pod}, time.Now())
	require.True(t, m.Leaving && m.Gone)
}
