package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

func TestBL20FiveFlipsOfTheReleaseEachEndInACleanState(t *testing.T) {
	s := steady(t)
	s.script(upgrade.Expand, harness.Hang())
	for i := range 5 {
		s.edit(build.Lockstep("2026.2"))
		s.awaitPod(upgrade.Expand, "to run", runs)
		s.edit(build.Lockstep("2026.1"))
		s.await("the abort", rests("2026.1"))
		require.Nil(t, s.job(upgrade.Expand))
		s.toldTimes("Normal UpgradeInitiated", i+1)
		s.toldTimes("Normal UpgradeAborted", i+1)
	}
	require.Len(t, s.told(), 10, "one event for each transition")
}

func TestBL20FlipsThatAreFasterThanTheWorkEndWhereTheLastOnePoints(t *testing.T) {
	for _, last := range []string{"2026.1", "2026.2"} {
		t.Run("at "+last, func(t *testing.T) {
			s := steady(t)
			for range 5 {
				s.edit(build.Lockstep("2026.2"))
				time.Sleep(150 * time.Millisecond)
				s.edit(build.Lockstep("2026.1"))
				time.Sleep(150 * time.Millisecond)
			}
			s.edit(build.Lockstep(last))
			g := s.await("the last wish", rests(last))
			require.Empty(t, g.Status.TargetImage)
			s.awaitDeployment("its pods", rolledTo(build.DefaultRepository+":"+last))
		})
	}
}

func TestAnAbortThatIsTakenBackWhileItIsUnderWayGoesOn(t *testing.T) {
	s := open(t)
	hang := s.script(upgrade.Migrate, harness.Hang())
	die := s.script(upgrade.Migrate, harness.IgnoreTerm(harness.Forever))
	s.glance(build.Lockstep("2026.2")).record(walking(upgrade.Migrating)).start()
	first := s.awaitPod(upgrade.Migrate, "to run", runs)
	s.edit(build.Lockstep("2026.1"))
	s.awaitPod(upgrade.Migrate, "to be told to end", ends)
	s.edit(build.Lockstep("2026.2"))
	s.holds(2*time.Second, "the walk", in(upgrade.Migrating))
	require.Len(t, s.pods(upgrade.Migrate), 1, "no second migration beside the one that ends")
	hang()
	die()
	s.await("the upgrade to end", rests("2026.2"))
	require.NotContains(t, s.told(), "Normal UpgradeAborted")
	for _, pod := range s.pods(upgrade.Migrate) {
		require.NotEqual(t, first.UID, pod.UID)
	}
}

func TestAnAbortAndANewStartToAnotherBuildBeginAnewWithIt(t *testing.T) {
	s, _ := rolling(t)
	s.awaitPod(upgrade.Migrate, "to run", runs)
	finish := s.scriptImage(upgrade.Migrate, ":2026.2-p1", harness.Succeed(0))
	defer finish()
	s.edit(build.Lockstep("2026.1"))
	s.await("the abort", in(upgrade.Steady))
	s.edit(build.Release("2026.2"), build.Tag("2026.2-p1"))
	s.wholeOn(patched)
}
