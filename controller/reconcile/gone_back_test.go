package reconcile

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
)

func (s *stage) condition(kind string) metav1.Condition {
	s.t.Helper()
	found := meta.FindStatusCondition(s.glance().Status.Conditions, kind)
	require.NotNil(s.t, found, kind)
	return *found
}

func TestAContractThatHasNotRunIsTakenAwayWhereOldPodsAreBack(t *testing.T) {
	turnedBack := func(s *stage) {
		d := s.deployment()
		d.Spec.Template, d.Spec.Paused, d.Generation = render.Deployment(s.workload(), old, atRest()).Spec.Template, true, 2
		require.NoError(t, s.server.Update(t.Context(), d))
		s.pod(d.Spec.Template, "images-old")
	}
	for what, c := range map[string]struct {
		happens func(*stage)
		left    bool
	}{
		"nothing happened":   {func(*stage) {}, true},
		"it was turned back": {turnedBack, false},
		"it was only for a while, and the cache of pods has stopped": {func(s *stage) { turnedBack(s); s.stop(&corev1.PodList{}, &corev1.Pod{}); s.undo() }, true},
		"it was only for a while, and the cache of Deployments has":  {func(s *stage) { turnedBack(s); s.stop(&appsv1.DeploymentList{}, &appsv1.Deployment{}); s.undo() }, true},
	} {
		t.Run(what, func(t *testing.T) {
			s := open(t, walking(upgrade.Contracting), build.Lockstep("2026.2"))
			s.served(next, walking(upgrade.RollingUpdate))
			s.made(walking(upgrade.Contracting), upgrade.Contract)
			s.looks(2)
			s.doubts.settle(keyOf("images"))
			c.happens(s)
			s.looks(1)
			require.Equal(t, c.left, s.has(upgrade.Contract))
			if !c.left {
				assert.Contains(t, s.condition(v1alpha1.ConditionDatabaseReady).Message, "Job images-db-contract is deleted before it can run, for it must not meet a pod of 2026.1")
				s.looks(6)
				assert.False(t, s.has(upgrade.Contract), "the gate holds it back")
				assert.Contains(t, s.condition(v1alpha1.ConditionDatabaseReady).Message, "contract is held back")
			}
		})
	}
}

// undo has the rollout forward once more, and the pod that had come back gone.
func (s *stage) undo() {
	s.t.Helper()
	d := s.deployment()
	d.Spec.Template, d.Spec.Paused, d.Generation = render.Deployment(s.workload(), next, walking(upgrade.Contracting)).Spec.Template, false, 3
	require.NoError(s.t, s.server.Update(s.t.Context(), d))
	d.Status.ObservedGeneration = 3
	require.NoError(s.t, s.server.Status().Update(s.t.Context(), d))
	require.NoError(s.t, s.server.Delete(s.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: "images-old"}}))
}

func TestPodsStayWithTheirDatabaseWhileTheWishIsRefused(t *testing.T) {
	aborted := atRest()
	aborted.AbortedImage, aborted.Attempt = next, 2
	s := open(t, aborted, build.Release("2026.1"), build.Tag("2026.2"))
	s.served(old, aborted)
	s.looks(2)
	before := render.DatabaseOf(s.deployment().Spec.Template)
	s.edit(build.Database("other"))
	s.looks(2)
	assert.Equal(t, string(upgrade.ImageReleaseMismatch), s.condition(v1alpha1.ConditionDatabaseReady).Reason)
	assert.Equal(t, before, render.DatabaseOf(s.deployment().Spec.Template))
}

func TestReadyIsSaidOfAGenerationOnlyOnceItsPodsAreThere(t *testing.T) {
	for what, edit := range map[string]build.GlanceOption{
		"configuration": build.Config("DEFAULT", "debug", "true"), "replicas": build.Replicas(5), "another build": build.Tag("2026.1-p1"), "another database": build.Database("other"),
	} {
		t.Run(what, func(t *testing.T) {
			s := open(t, atRest())
			s.served(old, atRest())
			s.made(atRest(), upgrade.Sync, batchv1.JobComplete)
			s.set("set-1", s.deployment().Spec.Template, 1)
			require.NoError(t, s.server.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: "images-1"}}))
			s.pod(s.deployment().Spec.Template, "images-1", from("set-1"))
			s.looks(3)
			require.Equal(t, metav1.ConditionTrue, s.condition(v1alpha1.ConditionReady).Status)
			was := s.deployment()
			s.edit(edit)
			for range 12 {
				s.looks(1)
				require.NotEqual(t, metav1.ConditionTrue, s.condition(v1alpha1.ConditionReady).Status, "no pod is as it was asked for")
				if job := s.job(upgrade.Sync); job != nil && len(job.Status.Conditions) == 0 {
					job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
					require.NoError(t, s.server.Status().Update(t.Context(), job))
				}
				if d := s.deployment(); d.Generation == was.Generation && d.ResourceVersion != was.ResourceVersion {
					d.Generation++ // as the API server does
					require.NoError(t, s.server.Update(t.Context(), d))
				}
			}
			d := s.deployment()
			require.Equal(t, int64(2), d.Generation)
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: *d.Spec.Replicas, UpdatedReplicas: *d.Spec.Replicas, AvailableReplicas: *d.Spec.Replicas}
			require.NoError(t, s.server.Status().Update(t.Context(), d))
			s.looks(1)
			assert.Equal(t, metav1.ConditionTrue, s.condition(v1alpha1.ConditionReady).Status)
		})
	}
}

func TestAnUpgradeThatIsOverStaysSoForAnObjectThatIsMadeAnew(t *testing.T) {
	for release, want := range map[string]string{"2026.2": string(upgrade.DatabaseSynced), "2026.1": string(upgrade.DowngradeNotSupported)} {
		t.Run(release, func(t *testing.T) {
			s := open(t, upgrade.State{}, build.Lockstep(release))
			s.served(next, walking(upgrade.RollingUpdate))
			s.made(walking(upgrade.Contracting), upgrade.Contract, batchv1.JobComplete)
			d, job := s.deployment(), s.job(upgrade.Contract)
			d.OwnerReferences, job.OwnerReferences = nil, nil // as a deletion that orphans leaves them
			require.NoError(t, s.server.Update(t.Context(), d))
			require.NoError(t, s.server.Update(t.Context(), job))
			for range 3 {
				_, _ = s.look() // a refusal is an error of the queue
				s.now = s.now.Add(quietTime)
			}
			assert.Equal(t, "2026.2", s.glance().Status.InstalledRelease)
			assert.Equal(t, want, s.condition(v1alpha1.ConditionDatabaseReady).Reason)
			assert.Equal(t, next, s.serves())
		})
	}
}
