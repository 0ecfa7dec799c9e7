package reconcile

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
)

// The first schedule that the model found: an abort whose own rollout the cache does not show.
func TestACacheThatIsBehindOurOwnRolloutIsNotBelieved(t *testing.T) {
	s := open(t, walking(upgrade.RollingUpdate), build.Lockstep("2026.1"))
	s.served(old, atRest())
	s.made(walking(upgrade.RollingUpdate), upgrade.Migrate, batchv1.JobComplete)
	s.stop(&appsv1.DeploymentList{}, &appsv1.Deployment{})
	s.looks(4)
	assert.Equal(t, upgrade.Steady, s.glance().State().Phase, "the abort is over")
	assert.Equal(t, old, s.deployment().Spec.Template.Spec.Containers[0].Image, "and what it had rolled is taken back before anything is synced")
	assert.True(t, s.has(upgrade.Sync))
}

func TestADeploymentThatTheCacheHasShownAndThatIsGoneIsMadeAnew(t *testing.T) {
	s := open(t, atRest())
	s.looks(2)
	s.looks(1) // it is shown
	require.NoError(t, s.server.Delete(t.Context(), s.deployment()))
	s.looks(1)
	assert.NotNil(t, s.deployment())
}

// The second: two pieces of schema work, the first of which the cache does not show.
func TestAJobOfOursThatTheCacheDoesNotShowIsNotForgotten(t *testing.T) {
	s := open(t, atRest())
	s.served(old, atRest())
	s.stop(&batchv1.JobList{}, &batchv1.Job{})
	s.looks(1)
	require.True(t, s.has(upgrade.Sync))
	sync := s.job(upgrade.Sync)
	sync.Status.Ready = new(int32(1))
	require.NoError(t, s.server.Status().Update(t.Context(), sync))
	s.edit(build.Lockstep("2026.2"))
	s.looks(5)
	assert.Equal(t, upgrade.Expanding, s.glance().State().Phase)
	assert.False(t, s.has(upgrade.Expand), "the sync has not ended")
	sync.Spec.Suspend = new(true) // of others than those the words ask to look again
	require.NoError(t, s.server.Update(t.Context(), sync))
	result, err := s.look()
	require.NoError(t, err)
	assert.Equal(t, foreignPause, result.RequeueAfter, "whose end no watch may ever tell")

	require.NoError(t, s.server.Delete(t.Context(), sync))
	s.looks(3)
	assert.True(t, s.has(upgrade.Expand), "once it is gone the walk goes on")
}

func TestAJobThatLostItsLabelsIsNotForgotten(t *testing.T) {
	s := open(t, atRest())
	s.served(old, atRest())
	s.looks(1)
	sync := s.job(upgrade.Sync)
	require.NotNil(t, sync)
	s.looks(1) // it is shown
	require.NoError(t, s.server.Delete(t.Context(), sync))
	s.stop(&batchv1.JobList{}, &batchv1.Job{}) // which shows none without them
	sync.ResourceVersion, sync.Labels, sync.Spec.Suspend = "", nil, new(true)
	require.NoError(t, s.server.Create(t.Context(), sync))
	s.starts(upgrade.Sync)
	s.edit(build.Lockstep("2026.2"))
	s.looks(12) // until all words are said
	assert.Equal(t, upgrade.Expanding, s.glance().State().Phase)
	assert.False(t, s.has(upgrade.Expand), "it has not ended")
	result, err := s.look()
	require.NoError(t, err)
	assert.Equal(t, foreignPause, result.RequeueAfter, "no watch may ever tell of its end")
}

func TestAnObjectThatIsShownTooOldForLongIsReadPastTheCache(t *testing.T) {
	s := open(t, atRest(), build.Lockstep("2026.2"))
	s.served(old, atRest())
	s.stop(&v1alpha1.GlanceList{}, &v1alpha1.Glance{})
	_, err := s.look()
	require.NoError(t, err)
	require.Equal(t, upgrade.Expanding, s.glance().State().Phase)
	result, err := s.look()
	require.NoError(t, err)
	assert.False(t, s.has(upgrade.Expand), "a cache may be behind for a moment")
	assert.Equal(t, lag, result.RequeueAfter, "and nothing else may bring the next look")
	s.now = s.now.Add(result.RequeueAfter)
	_, err = s.look()
	require.NoError(t, err)
	assert.True(t, s.has(upgrade.Expand))
}

func TestContractMeetsNoPodThatTheCachesDoNotShow(t *testing.T) {
	s := open(t, walking(upgrade.RollingUpdate), build.Lockstep("2026.2"))
	s.served(next, walking(upgrade.RollingUpdate))
	s.stop(&corev1.PodList{}, &corev1.Pod{})
	s.sure()
	before := render.Deployment(s.workload(), old, atRest()).Spec.Template
	s.pod(before, "images-old")
	s.looks(3)
	assert.Equal(t, upgrade.RollingUpdate, s.glance().State().Phase)
	assert.False(t, s.has(upgrade.Contract))

	ended := &corev1.Pod{}
	require.NoError(t, s.server.Get(t.Context(), keyOf("images-old"), ended))
	ended.Status.Phase = corev1.PodFailed
	require.NoError(t, s.server.Status().Update(t.Context(), ended))
	s.looks(2)
	assert.True(t, s.has(upgrade.Contract), "a pod that has ended for good serves nobody, whatever keeps it")
}

func TestAPodThatDoesNotTellItsReleaseIsNotTrustedByASync(t *testing.T) {
	s := open(t, atRest(), build.Tag("2026.1-p1"))
	s.served(old, atRest())
	s.pod(s.deployment().Spec.Template, "images-who", func(pod *corev1.Pod) { delete(pod.Annotations, render.AnnotationRelease) })
	s.looks(2)
	assert.False(t, s.has(upgrade.Sync))
}

func TestAnAbortFindsAJobThatTheCachesDoNotShow(t *testing.T) {
	s := open(t, walking(upgrade.Expanding), build.Lockstep("2026.1"))
	s.served(old, atRest())
	s.stop(&batchv1.JobList{}, &batchv1.Job{}) // another controller has made it a moment ago
	s.made(walking(upgrade.Expanding), upgrade.Expand)
	s.sure()
	s.looks(2)
	assert.False(t, s.has(upgrade.Expand))
	require.NotEmpty(t, s.deletes)
	assert.Equal(t, upgrade.Expanding, s.glance().State().Phase, "it is not over while a pod of it may come")
	s.looks(2)
	assert.Equal(t, upgrade.Steady, s.glance().State().Phase)
}
