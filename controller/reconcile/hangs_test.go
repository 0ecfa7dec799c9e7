package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
)

func TestAJobHangsWhileNoStepOfItRunsAndOneCannotStart(t *testing.T) {
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	over := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	pull := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
	waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
	type states map[string]corev1.ContainerState
	for what, c := range map[string]struct {
		inits, mains states
		want         bool
	}{
		"an injected one is over, the step cannot start":  {states{"vault-agent-init": over}, states{"db-sync-1": pull}, true},
		"an injected one goes on beside it":               {states{"istio-proxy": runs}, states{"db-sync-1": pull}, true},
		"the first step is over, the second cannot start": {states{"db-sync-1": over}, states{"install-1": pull}, true},
		"the first step runs":                             {states{"db-sync-1": runs}, states{"install-1": waits}, false},
		"the second step runs":                            {states{"db-sync-1": over}, states{"install-1": runs}, false},
		"it is on its way":                                {states{"db-sync-1": over}, states{"install-1": waits}, false},
		"all work is done, what was injected is not":      {states{}, states{"db-sync-1": over, "istio-proxy": pull}, false},
	} {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{render.LabelComponent: string(upgrade.Sync)}}}
		for name, state := range c.inits {
			pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, corev1.ContainerStatus{Name: name, State: state})
		}
		for name, state := range c.mains {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, State: state})
		}
		assert.Equal(t, c.want, hangs([]corev1.Pod{pod}), what)
	}
	unscheduled := corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}}}}
	assert.True(t, hangs([]corev1.Pod{unscheduled}), "a try after one that failed")
	assert.False(t, hangs(nil), "between two tries")
}

func TestAJobThatHangsIsReplacedOnceTheWishIsPutRight(t *testing.T) {
	typo := walking(upgrade.Expanding)
	typo.TargetImage = build.DefaultRepository + ":2026.2-typo"
	s := open(t, typo, build.Release("2026.2"), build.Tag("2026.2-typo"))
	s.served(old, atRest())
	s.made(typo, upgrade.Expand)
	job := s.job(upgrade.Expand)
	s.pod(job.Spec.Template, "expand-x", func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
		p.Status = corev1.PodStatus{Phase: corev1.PodPending,
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "vault-agent-init", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}},
			ContainerStatuses:     []corev1.ContainerStatus{{Name: "db-expand-1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}}}}}
	})
	s.looks(2)
	assert.Contains(t, s.condition(v1alpha1.ConditionDatabaseReady).Message, "ImagePullBackOff")
	require.True(t, s.has(upgrade.Expand), "nobody asked for anything else")
	s.edit(build.Tag("2026.2"))
	s.looks(1)
	assert.Len(t, s.deletes, 1)
}

func TestAnAPIPodThatIsLateIsExplained(t *testing.T) {
	s := open(t, walking(upgrade.RollingUpdate), build.Lockstep("2026.2"))
	s.served(old, atRest())
	s.looks(1)
	d := s.deployment()
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 0}
	require.NoError(t, s.server.Status().Update(t.Context(), d))
	s.pod(d.Spec.Template, "images-2", func(p *corev1.Pod) {
		p.UID, p.CreationTimestamp, p.Status.Phase = "pod-2", metav1.Time{Time: s.now}, corev1.PodPending
	})
	require.NoError(t, s.server.Create(t.Context(), &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: "e"}, Type: "Warning", Reason: "FailedMount",
		Message: `secret "images-keys" not found`, InvolvedObject: corev1.ObjectReference{UID: "pod-2", Kind: "Pod", Name: "images-2"}, LastTimestamp: metav1.Time{Time: s.now}}))
	const said = `pod images-2 is not ready: FailedMount: secret "images-keys" not found`
	result, err := s.look()
	require.NoError(t, err)
	assert.NotContains(t, s.condition(v1alpha1.ConditionDatabaseReady).Message, said, "it may still become ready")
	require.NotZero(t, result.RequeueAfter, "nothing tells when it is late")
	s.now = s.now.Add(podPatience + time.Second)
	s.looks(2)
	assert.Contains(t, s.condition(v1alpha1.ConditionDatabaseReady).Message, said)
	assert.Contains(t, s.condition(v1alpha1.ConditionDeploymentReady).Message, said)
}

func TestADeploymentThatIsChangedAsItIsWrittenIsSaidToBe(t *testing.T) {
	for what, state := range map[string]upgrade.State{"in a rollout": walking(upgrade.RollingUpdate), "at rest": atRest()} {
		t.Run(what, func(t *testing.T) {
			s := open(t, state, build.Lockstep(map[bool]string{true: "2026.2", false: "2026.1"}[state.Walking()]))
			s.served(old, atRest())
			if !state.Walking() {
				s.made(atRest(), upgrade.Sync, batchv1.JobComplete)
				s.edit(build.Config("DEFAULT", "debug", "true"))
			}
			s.refuses = func(o client.Object) error {
				if d, is := o.(*appsv1.Deployment); is {
					d.Spec.Template.Spec.Containers[0].Image = "mirror.example.org/glance:x"
				}
				return nil
			}
			s.looks(2)
			assert.Contains(t, s.condition(v1alpha1.ConditionDeploymentReady).Message+s.condition(v1alpha1.ConditionDatabaseReady).Message,
				"something changes Deployment images whenever it is written, so that its image is mirror.example.org/glance:x, and not "+map[bool]string{true: next, false: old}[state.Walking()])
			s.refuses = func(client.Object) error { return nil }
			s.looks(2)
			assert.NotContains(t, s.condition(v1alpha1.ConditionDeploymentReady).Message+s.condition(v1alpha1.ConditionDatabaseReady).Message, "something changes")
		})
	}
}
