package reconcile

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/c5c3/openstack-upgrade/controller/service"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/test/build"
)

func TestNoSyncBeginsWhileADeploymentOfADeletedNamesakeIsThereThatTheCachesDoNotShow(t *testing.T) {
	scheme := kinds(t)
	glance := build.Glance("images", build.In("openstack"))
	glance.UID, glance.Generation = "the-second", 1
	left := build.Deployment("openstack", "images", "r:2026.2", 1)
	left.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Glance", Name: "images", UID: "the-first", Controller: ptr.To(true)}}
	cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(glance).WithStatusSubresource(glance).Build()
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(left, glance.DeepCopy()).Build()
	now := time.Unix(1_000_000, 0)
	r := &Reconciler{Client: cached, Live: live, Events: events.NewFakeRecorder(100), Service: service.Glance(), Meter: silent{}, Now: func() time.Time { return now }}
	r.starts.note(now.Add(-quietTime))
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(glance)}
	jobs := func() int {
		var list batchv1.JobList
		require.NoError(t, cached.List(context.Background(), &list))
		return len(list.Items)
	}

	result, err := r.Reconcile(context.Background(), request)
	require.NoError(t, err)
	require.Zero(t, jobs(), "pods of the first may be about to come")
	require.NotZero(t, result.RequeueAfter)

	require.NoError(t, live.Delete(context.Background(), &appsv1.Deployment{ObjectMeta: left.ObjectMeta}))
	_, err = r.Reconcile(context.Background(), request)
	require.NoError(t, err)
	require.Equal(t, 1, jobs())
}
