package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// lose empties the status, as a restore without subresources does.
func (s *scene) lose() {
	s.t.Helper()
	s.status(func(status *v1alpha1.ServiceStatus) { *status = v1alpha1.ServiceStatus{} })
}

func TestALostStatusAtRestIsAdoptedFromTheDeployment(t *testing.T) {
	s := steady(t)
	sync := s.job(upgrade.Sync)
	s.lose()
	s.await("the Glance to rest", rests("2026.1"))
	s.holds(2*time.Second, "the rest", rests("2026.1"))
	require.Equal(t, upgrade.State{Installed: "2026.1", InstalledImage: old}, s.now().Status.State())
	require.Equal(t, sync.UID, s.job(upgrade.Sync).UID, "the database is not synced again")
	require.Empty(t, s.told())
}

func TestALostStatusAfterAnUpgradeIsAdoptedAtTheNewRelease(t *testing.T) {
	s := steady(t)
	s.edit(build.Lockstep("2026.2"))
	s.await("the upgrade to end", rests("2026.2"))
	s.awaitJob(upgrade.Sync, "the sync afterwards", completeOn(next))
	s.lose()
	s.await("the Glance to rest", rests("2026.2"))
	require.Equal(t, next, s.now().Status.InstalledImage)
}

func TestALostStatusIsAdoptedInEveryPhaseAndTheWalkComesToItsEnd(t *testing.T) {
	t.Run("Expanding", func(t *testing.T) {
		s := open(t)
		s.glance().record(installed2026).start()
		s.await("the Glance to rest", rests("2026.1"))
		finish := s.script(upgrade.Expand, harness.Hang())
		s.edit(build.Lockstep("2026.2"))
		s.awaitPod(upgrade.Expand, "to run", runs)
		s.lose()
		s.await("the walk to be found again", in(upgrade.Expanding))
		finish()
		s.await("the upgrade to end", rests("2026.2"))
	})
	t.Run("Migrating", func(t *testing.T) {
		s, finish := rolling(t)
		s.awaitPod(upgrade.Migrate, "to run", runs)
		s.lose()
		// Pods have not left the installed image, so the walk begins anew, and waits for the migration that runs.
		s.await("the walk to be found again", in(upgrade.Expanding))
		finish()
		s.await("the upgrade to end", rests("2026.2"))
	})
	t.Run("RollingUpdate", func(t *testing.T) {
		s, let := allButOnePodEnding(t)
		s.lose()
		s.await("the walk to be found again", both(in(upgrade.RollingUpdate), says(upgrade.UpgradeRollingUpdate)))
		s.holds(2*time.Second, "the gate", in(upgrade.RollingUpdate))
		require.Nil(t, s.job(upgrade.Sync), "no one-pass sync under pods of another release")
		let()
		s.await("the upgrade to end", rests("2026.2"))
	})
	t.Run("Contracting", func(t *testing.T) {
		s, finish := contracting(t)
		running := s.job(upgrade.Contract)
		s.lose()
		s.await("the walk to be found again", in(upgrade.Contracting))
		finish()
		s.await("the upgrade to end", rests("2026.2"))
		require.Equal(t, running.UID, s.job(upgrade.Contract).UID)
	})
	t.Run("Contracting, complete and not yet recorded", func(t *testing.T) {
		s, finish := contracting(t)
		s.controller.Kill(t)
		finish()
		s.awaitJob(upgrade.Contract, "to complete", isComplete)
		s.lose()
		s.start()
		s.await("the upgrade to be found done", rests("2026.2"))
		require.Equal(t, next, s.now().Status.InstalledImage)
	})
}

func TestALostStatusWithADeploymentThatSaysNothingIsAskedFor(t *testing.T) {
	s := steady(t)
	s.controller.Kill(t)
	adjust(s, s.deployment(), func(d *appsv1.Deployment) { delete(d.Annotations, "openstack.c5c3.io/recorded-state") })
	s.deleteJob(upgrade.Sync)
	s.lose()
	s.start()
	asks := says(upgrade.VersionParseError, "set status.installedRelease and status.installedImage to what its pods run")
	s.await("the question", asks)
	s.holds(2*time.Second, "the question", asks)
	require.Nil(t, s.job(upgrade.Sync), "nothing is guessed")
	require.Empty(t, rolledTo(old)(s.deployment()))
	s.toldTimes("Warning VersionParseError", 1)
	s.status(func(status *v1alpha1.ServiceStatus) { status.InstalledRelease, status.InstalledImage = "2026.1", old })
	s.await("the Glance to rest", rests("2026.1"))
}

func TestARecordThatCannotBeReadChangesNothingUntilItIsRepaired(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*v1alpha1.ServiceStatus)
		words string
	}{
		{"a phase without a target", func(s *v1alpha1.ServiceStatus) { s.UpgradePhase = "Contracting" }, "phase Contracting is recorded without a target"},
		{"a target without a phase", func(s *v1alpha1.ServiceStatus) { s.TargetRelease = "2026.2" }, `target release "2026.2" is recorded without a phase`},
		{"an unknown phase", func(s *v1alpha1.ServiceStatus) {
			s.UpgradePhase, s.TargetRelease, s.TargetImage = "Dancing", "2026.2", next
		}, `the recorded phase "Dancing" is none of`},
		{"an installed release that cannot be read", func(s *v1alpha1.ServiceStatus) { s.InstalledRelease = "caracal" }, "the recorded installed release cannot be read"},
		{"a target that does not follow", func(s *v1alpha1.ServiceStatus) {
			s.UpgradePhase, s.TargetRelease, s.TargetImage = "Migrating", "2027.1", next
		}, "does not follow"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := steady(t)
			before := s.deployment()
			s.status(c.spoil)
			spoilt := s.now().Status.State()
			faulty := says(upgrade.VersionParseError, c.words)
			s.await("the fault", faulty)
			s.edit(build.Lockstep("2026.2"), build.Replicas(2))
			s.await("the fault", faulty)
			s.holds(1500*time.Millisecond, "the fault", faulty)
			require.Equal(t, spoilt, s.now().Status.State(), "the record is left as it is")
			require.Equal(t, before.Generation, s.deployment().Generation, "and so are the pods")
			for _, task := range upgrade.PhaseTasks {
				require.Nil(t, s.job(task))
			}
			for _, event := range s.told() {
				require.True(t, strings.HasSuffix(event, "VersionParseError"), event)
			}
			s.status(func(status *v1alpha1.ServiceStatus) {
				status.SetState(upgrade.State{Installed: "2026.1", InstalledImage: old})
			})
			s.await("the upgrade to end once the record is repaired", rests("2026.2"))
		})
	}
}
