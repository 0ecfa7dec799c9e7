package reconcile

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
)

// runs is the image that a container runs.
func runs(image string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Image = image }
}

// from is the ReplicaSet that a pod comes from.
func from(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = name
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: types.UID(name), Controller: ptr.To(true)}}
	}
}

// ends has a pod go on for a while after it was deleted.
func (s *stage) ends(name string) {
	s.t.Helper()
	p := &corev1.Pod{}
	require.NoError(s.t, s.server.Get(s.t.Context(), client.ObjectKey{Namespace: "openstack", Name: name}, p))
	p.Finalizers = []string{"test/serves"}
	require.NoError(s.t, s.server.Update(s.t.Context(), p))
	require.NoError(s.t, s.server.Delete(s.t.Context(), p))
}

// set puts a ReplicaSet there, with so many pods ordered.
func (s *stage) set(name string, of corev1.PodTemplateSpec, ordered int32, changes ...func(*corev1.PodTemplateSpec)) {
	s.t.Helper()
	template := *of.DeepCopy()
	for _, change := range changes {
		change(&template)
	}
	require.NoError(s.t, s.server.Create(s.t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: name, UID: types.UID(name), Labels: template.Labels},
		Spec:       appsv1.ReplicaSetSpec{Replicas: &ordered, Template: template},
	}))
}

// templateOf is the pod template of an image in a state.
func (s *stage) templateOf(image string, state upgrade.State) corev1.PodTemplateSpec {
	return render.Deployment(s.workload(), image, state).Spec.Template
}

func TestAPodOfAnImageThatSomebodyHadSetIsNoneOfTheTemplateThatItClaims(t *testing.T) {
	for _, phase := range []upgrade.Phase{upgrade.RollingUpdate, upgrade.Contracting} {
		t.Run(string(phase), func(t *testing.T) {
			s := open(t, walking(phase), build.Lockstep("2026.2"))
			s.made(walking(phase), upgrade.Expand, "Complete")
			s.made(walking(phase), upgrade.Migrate, "Complete")
			s.served(next, walking(upgrade.RollingUpdate))
			// kubectl set image went back to the release before beneath our notes, and was put right: its last pod serves while it ends.
			s.pod(s.deployment().Spec.Template, "images-0", runs(old), from("images-set"))
			s.ends("images-0")
			s.looks(5)
			require.False(t, s.has(upgrade.Contract), "contract beside a pod of %s", old)
			assert.Contains(t, s.says("DatabaseReady"), "pods of the previous template are left: images-0")
			assert.NotContains(t, s.says("DatabaseReady"), "images-1")
		})
	}
	t.Run("the one-pass sync", func(t *testing.T) {
		s := open(t, atRest())
		s.made(atRest(), upgrade.Sync, "Complete")
		s.served(old, atRest())
		s.pod(s.deployment().Spec.Template, "images-0", runs(next), from("images-set"))
		s.ends("images-0")
		s.edit(build.Tag("2026.1-p1"))
		s.looks(5)
		require.False(t, s.runsSync(), "sync beside a pod of %s", next)
		assert.Contains(t, s.says("DatabaseReady"), "waits until no pod of an unknown release is left")
	})
}

func TestWithoutReplicasNoPodThatEndsTellsWhatItRuns(t *testing.T) {
	s := open(t, atRest(), build.Replicas(0))
	s.made(atRest(), upgrade.Sync, "Complete")
	s.served(old, atRest())
	d := s.deployment()
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1}
	require.NoError(t, s.server.Status().Update(t.Context(), d))
	s.ends("images-1")
	s.edit(build.Tag("2026.1-p1"))
	s.looks(5)
	require.False(t, s.runsSync())
	assert.Contains(t, s.says("DatabaseReady"), "waits until no pod of an unknown release is left")
}

// runsSync is whether a sync is there that is not complete.
func (s *stage) runsSync() bool {
	job := s.job(upgrade.Sync)
	return job != nil && len(job.Status.Conditions) == 0
}

// half is an upgrade whose Deployment was told to go over to the target and whose ReplicaSet has no pod yet, turned back.
func half(t *testing.T, paused bool, ordered int32) *stage {
	t.Helper()
	s := open(t, walking(upgrade.RollingUpdate), build.Lockstep("2026.2"))
	s.made(walking(upgrade.RollingUpdate), upgrade.Expand, "Complete")
	s.made(walking(upgrade.RollingUpdate), upgrade.Migrate, "Complete")
	s.served(old, atRest())
	d := s.deployment()
	rolled := render.Deployment(s.workload(), next, walking(upgrade.RollingUpdate))
	d.Spec.Template, d.Annotations[render.AnnotationRecord] = rolled.Spec.Template, rolled.Annotations[render.AnnotationRecord]
	d.Generation, d.Spec.Paused = 2, paused
	require.NoError(t, s.server.Update(t.Context(), d))
	d.Status.ObservedGeneration, d.Status.UpdatedReplicas = 2, 0
	require.NoError(t, s.server.Status().Update(t.Context(), d))
	s.set("images-old", s.templateOf(old, atRest()), 1)
	s.set("images-new", s.templateOf(next, walking(upgrade.RollingUpdate)), ordered)
	p := &corev1.Pod{}
	require.NoError(t, s.server.Get(t.Context(), client.ObjectKey{Namespace: "openstack", Name: "images-1"}, p))
	from("images-old")(p)
	require.NoError(t, s.server.Update(t.Context(), p))
	s.edit(build.Lockstep("2026.1"))
	for d = s.deployment(); d.Spec.Template.Spec.Containers[0].Image != old; d = s.deployment() {
		s.looks(1)
		require.Less(t, s.now.Unix(), int64(1_000_100))
	}
	d.Generation = 3 // as an API server counts
	require.NoError(t, s.server.Update(t.Context(), d))
	return s
}

// observed is that the Deployment controller has seen the newest template.
func (s *stage) observed() {
	s.t.Helper()
	d := s.deployment()
	d.Status.ObservedGeneration = d.Generation
	require.NoError(s.t, s.server.Status().Update(s.t.Context(), d))
}

func TestTheSyncAfterAnAbortWaitsForPodsThatAreOrdered(t *testing.T) {
	s := half(t, false, 1)
	s.looks(8)
	require.False(t, s.has(upgrade.Sync))
	assert.Contains(t, s.says("DatabaseReady"), "waits until the newest template of Deployment images is observed")
	s.observed()
	s.looks(8)
	require.False(t, s.has(upgrade.Sync), "a pod of the target may come at any moment")
	assert.Contains(t, s.says("DatabaseReady"), "waits until no pod of 2026.2 is left")
	set := &appsv1.ReplicaSet{}
	require.NoError(t, s.server.Get(t.Context(), client.ObjectKey{Namespace: "openstack", Name: "images-new"}, set))
	set.Spec.Replicas, set.Generation = ptr.To[int32](0), 2
	require.NoError(t, s.server.Update(t.Context(), set))
	s.looks(8)
	require.False(t, s.has(upgrade.Sync), "its controller has not seen that no pod is to be made")
	set.Status.ObservedGeneration = 2
	require.NoError(t, s.server.Status().Update(t.Context(), set))
	s.looks(8)
	require.True(t, s.has(upgrade.Sync), s.says("DatabaseReady"))
}

func TestWhatIsPausedIsSaidToBe(t *testing.T) {
	s := half(t, true, 1)
	s.observed()
	s.looks(4)
	require.False(t, s.has(upgrade.Sync))
	assert.Contains(t, s.says("DatabaseReady"), "waits until no pod of 2026.2 is left; Deployment images is paused: resume it to go on")

	s = open(t, atRest())
	s.made(atRest(), upgrade.Sync, "Complete")
	s.served(old, atRest())
	d := s.deployment()
	d.Spec.Paused = true
	require.NoError(t, s.server.Update(t.Context(), d))
	s.looks(2)
	assert.Contains(t, s.says("DeploymentReady"), "Deployment images is paused: resume it to go on")
}

func TestAReplicaSetWhoseImageSomebodyHasSetIsOfNoReleaseItClaims(t *testing.T) {
	s := half(t, false, 0)
	s.set("images-set", s.templateOf(old, atRest()), 1, func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = next })
	s.observed()
	s.looks(3)
	require.False(t, s.has(upgrade.Sync))
	assert.Contains(t, s.says("DatabaseReady"), "waits until no pod of an unknown release is left")
}

func TestAPodWhoseImageTheClusterRewritesIsWhatItsReplicaSetSays(t *testing.T) {
	s := half(t, false, 0)
	s.pod(s.templateOf(old, atRest()), "images-2", runs("mirror.example/glance@sha256:0"), from("images-old"))
	s.observed()
	s.looks(3)
	require.True(t, s.has(upgrade.Sync))
}
