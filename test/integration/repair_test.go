package integration

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// patched is another build of the target.
const patched = next + "-p1"

// wholeOn demands that a walk came to its end on an image alone: promoted, served, and walked in all three Jobs.
func (s *scene) wholeOn(image string) {
	s.t.Helper()
	g := s.await("the upgrade to end", rests("2026.2"))
	require.Equal(s.t, image, g.Status.InstalledImage)
	s.awaitDeployment("the pods to roll", rolledTo(image))
	for _, task := range upgrade.PhaseTasks {
		require.Equal(s.t, image, s.job(task).Spec.Template.Spec.Containers[0].Image, "%s", task)
	}
	s.toldTimes("Normal UpgradeComplete", 1)
}

func TestBL06AnotherBuildOfTheTargetLetsARunningJobFinishAndWalksAnew(t *testing.T) {
	t.Run("Expanding", func(t *testing.T) {
		finish := func() {}
		s := expanding(t, func(s *scene) { finish = s.script(upgrade.Expand, harness.Hang()) })
		s.awaitPod(upgrade.Expand, "to run", runs)
		running := s.job(upgrade.Expand)
		s.edit(build.Tag("2026.2-p1"))
		s.await("the wait", both(in(upgrade.Expanding), says(upgrade.ExpandInProgress, "the image changed to "+patched+"; Job images-db-expand runs to its end, then the walk re-enters at Expanding")))
		require.Equal(t, running.UID, s.job(upgrade.Expand).UID, "a phase that runs is not killed because a tag moved")
		finish()
		s.wholeOn(patched)
		s.toldTimes("Normal UpgradeInitiated", 1)
	})
	t.Run("Migrating", func(t *testing.T) {
		s, finish := rolling(t)
		s.awaitPod(upgrade.Migrate, "to run", runs)
		running := s.job(upgrade.Migrate)
		s.edit(build.Tag("2026.2-p1"))
		s.await("the wait", both(in(upgrade.Migrating), says(upgrade.MigrateInProgress, "Job images-db-migrate runs to its end")))
		require.Equal(t, running.UID, s.job(upgrade.Migrate).UID)
		finish()
		s.wholeOn(patched)
	})
	t.Run("RollingUpdate", func(t *testing.T) {
		s, release := rolling(t, build.Replicas(2))
		stuck := s.scriptImage(api, ":2026.2", harness.InTurn(harness.Hang(), harness.SlowReady(harness.Forever)))
		release()
		s.awaitPod(api, "of the target", func(pod corev1.Pod) string { return lacks(imageOf(&pod) == next, "image %s", imageOf(&pod)) })
		s.edit(build.Tag("2026.2-p1"))
		s.wholeOn(patched)
		stuck()
	})
	t.Run("RollingUpdate, done but for one pod", func(t *testing.T) {
		s, let := allButOnePodEnding(t)
		s.edit(build.Tag("2026.2-p1"))
		s.awaitDeployment("the pods to roll", rolledTo(patched))
		require.Nil(t, s.job(upgrade.Contract))
		let()
		s.wholeOn(patched)
	})
}

func TestBL06AnotherBuildWhileContractRunsIsAPatchOnceItIsPromoted(t *testing.T) {
	s, finish := contracting(t)
	s.edit(build.Tag("2026.2-p1"))
	s.await("the wait", both(in(upgrade.Contracting), says(upgrade.ContractInProgress, "Job images-db-contract runs to its end")))
	finish()
	g := s.await("the patch to be installed", rests("2026.2"))
	require.Equal(t, patched, g.Status.InstalledImage)
	s.awaitDeployment("the pods to roll", rolledTo(patched))
	require.Equal(t, next, s.job(upgrade.Contract).Spec.Template.Spec.Containers[0].Image)
	s.toldTimes("Normal UpgradeComplete", 1)
	s.toldTimes("Normal UpgradeInitiated", 0)
}

func TestBL08ATypoInTheTagIsRepairedByTheNextEdit(t *testing.T) {
	t.Run("of a first install", func(t *testing.T) {
		s := open(t)
		s.scriptImage(upgrade.Sync, ":2026.1-tpyo", harness.NeverPull(`Back-off pulling image: not found`))
		s.start().glance(build.Tag("2026.1-tpyo"))
		s.await("the trouble", says(upgrade.DBSyncInProgress, "ImagePullBackOff"))
		s.edit(build.Tag("2026.1"))
		s.await("the install to end", rests("2026.1"))
		require.Empty(t, s.told())
	})
	for _, task := range upgrade.PhaseTasks {
		t.Run("in "+string(task), func(t *testing.T) {
			s := open(t)
			typo := next + "-tpyo"
			s.scriptImage(task, ":2026.2-tpyo", harness.NeverPull(`Back-off pulling image: not found`))
			state := walking(map[upgrade.Task]upgrade.Phase{upgrade.Expand: upgrade.Expanding, upgrade.Migrate: upgrade.Migrating, upgrade.Contract: upgrade.RollingUpdate}[task])
			state.TargetImage = typo
			s.glance(build.Release("2026.2"), build.Tag("2026.2-tpyo")).record(state).start()
			s.await("the trouble", func(g *v1alpha1.Glance) string {
				return lacks(strings.Contains(database(g).Message, "ImagePullBackOff: Back-off pulling image: not found"), "%s", database(g).Message)
			})
			s.edit(build.Tag("2026.2"))
			s.wholeOn(next)
			s.toldTimes("Normal UpgradeInitiated", 1)
		})
	}
	t.Run("in the pods of the API", func(t *testing.T) {
		s := open(t)
		release := s.script(upgrade.Migrate, harness.Hang())
		s.scriptImage(api, ":2026.2-tpyo", harness.NeverPull(`Back-off pulling image: not found`))
		state := walking(upgrade.Migrating)
		state.TargetImage = next + "-tpyo"
		s.glance(build.Release("2026.2"), build.Tag("2026.2-tpyo")).record(state).start()
		s.awaitDeployment("the old pods to serve", rolledTo(old))
		release()
		s.heldBack("ImagePullBackOff: Back-off pulling image: not found")
		s.edit(build.Tag("2026.2"))
		s.wholeOn(next)
	})
}
