package integration

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// aborted demands that a walk has been taken back whole, to a release that serves and is in sync.
func (s *scene) aborted() {
	s.t.Helper()
	s.await("the abort to end", rests("2026.1"))
	s.awaitDeployment("the pods to be back", rolledTo(old))
	for _, task := range upgrade.PhaseTasks {
		require.Nil(s.t, s.job(task), "no Job is left of %s", task)
		require.Empty(s.t, s.pods(task), "no pod is left of %s", task)
	}
	s.awaitJob(upgrade.Sync, "to complete", isComplete)
	require.Equal(s.t, old, s.job(upgrade.Sync).Spec.Template.Spec.Containers[0].Image)
	s.toldTimes("Normal UpgradeAborted", 1)
}

func TestAnAbortTakesTheWalkBackFromEveryPhase(t *testing.T) {
	t.Run("Expanding", func(t *testing.T) {
		s := expanding(t, func(s *scene) { s.script(upgrade.Expand, harness.Hang()) })
		s.awaitPod(upgrade.Expand, "to run", runs)
		s.edit(build.Lockstep("2026.1"))
		s.aborted()
		require.Equal(t, next, s.now().Status.AbortedImage)
	})
	t.Run("Expanding, with a Job that has failed", func(t *testing.T) {
		s := expanding(t, func(s *scene) { s.script(upgrade.Expand, harness.Fail(1, "no")) })
		s.await("the failure", says(upgrade.ExpandFailed))
		s.edit(build.Lockstep("2026.1"))
		s.aborted()
	})
	t.Run("Migrating", func(t *testing.T) {
		s, _ := rolling(t)
		s.awaitPod(upgrade.Migrate, "to run", runs)
		s.edit(build.Lockstep("2026.1"))
		s.aborted()
	})
	t.Run("RollingUpdate, half rolled", func(t *testing.T) {
		s, release := rolling(t, build.Replicas(2))
		s.scriptImage(api, ":2026.2", harness.InTurn(harness.Hang(), harness.CrashLoop(1, "no")))
		release()
		s.awaitDeployment("half of the pods to be rolled", func(d *appsv1.Deployment) string {
			return lacks(d.Status.UpdatedReplicas == 2 && d.Status.Replicas == 3, "%d updated of %d", d.Status.UpdatedReplicas, d.Status.Replicas)
		})
		s.edit(build.Lockstep("2026.1"))
		s.aborted()
	})
	t.Run("Contracting", func(t *testing.T) {
		s, _ := contracting(t)
		s.edit(build.Lockstep("2026.1"))
		s.aborted()
	})
}

func TestAnAbortWaitsUntilNoPodOfAPhaseJobIsLeft(t *testing.T) {
	s := open(t)
	s.script(upgrade.Migrate, harness.Hang())
	die := s.script(upgrade.Migrate, harness.IgnoreTerm(harness.Forever))
	s.glance(build.Lockstep("2026.2")).record(walking(upgrade.Migrating)).start()
	s.awaitPod(upgrade.Migrate, "to run", runs)
	s.edit(build.Lockstep("2026.1"))
	s.awaitPod(upgrade.Migrate, "to be told to end", ends)
	s.await("the abort to be said", says(upgrade.MigrateInProgress, "aborting"))
	s.await("the pod to be named", says(upgrade.MigrateInProgress, "aborting, waiting until no pod is left of images-db-migrate", "(terminating since 20"))
	go die()
	// At every moment: as long as the pod is there, the walk is on record and no sync runs beside it.
	s.Eventually(t, harness.Patience, "the pod to go", func(context.Context) string {
		g, sync := s.now(), s.job(upgrade.Sync)
		left := 0
		for _, pod := range s.pods(upgrade.Migrate) { // read after the record
			if pod.Status.Phase == corev1.PodRunning {
				left++
			}
		}
		if left > 0 {
			require.Equal(t, string(upgrade.Migrating), g.Status.UpgradePhase, "the record stays while a pod runs")
			require.Nil(t, sync, "no sync beside the pod of a migration")
		}
		return lacks(left == 0, "%d left", left)
	})
	s.aborted()
}

func TestAnAbortByTheReleaseAloneServesAtOnceAndSyncsOnceTheTagFollows(t *testing.T) {
	s, _ := rolling(t)
	s.edit(build.Release("2026.1"))
	s.await("the mismatch", says(upgrade.ImageReleaseMismatch, `tag "2026.2" names release 2026.2, the release asked for is 2026.1`))
	s.toldTimes("Normal UpgradeAborted", 1)
	s.awaitDeployment("the old pods to serve", rolledTo(old))
	require.Nil(t, s.job(upgrade.Sync), "no sync of another release")
	s.edit(build.Tag("2026.1"))
	s.aborted()
}

func TestAnAbortWithAnOpaqueTagLeftDoesNotTakeTheTargetForAPatch(t *testing.T) {
	s := open(t)
	bookworm, trixie := build.DefaultRepository+":bookworm", build.DefaultRepository+":trixie"
	finish := s.script(upgrade.Migrate, harness.Hang())
	s.glance(build.Release("2026.2"), build.Tag("trixie")).record(upgrade.State{Installed: "2026.1", InstalledImage: bookworm,
		Target: "2026.2", TargetImage: trixie, Phase: upgrade.Migrating, Attempt: 1}).start()
	s.awaitPod(upgrade.Migrate, "to run", runs)
	s.edit(build.Release("2026.1"))
	s.await("the mismatch", says(upgrade.ImageReleaseMismatch, trixie+" was the target of the upgrade that was aborted"))
	s.holds(2*time.Second, "the mismatch", says(upgrade.ImageReleaseMismatch))
	require.Nil(t, s.job(upgrade.Sync))
	s.awaitDeployment("the old pods to serve", rolledTo(bookworm))
	s.edit(build.Tag("bookworm"))
	s.await("the Glance to rest", rests("2026.1"))
	finish()
	s.edit(build.Release("2026.2"), build.Tag("trixie"))
	s.await("a later upgrade to the same image to end", rests("2026.2"))
}

func TestAnAbortInTheInstantContractCompletesIsADowngradeThen(t *testing.T) {
	s, release := contracting(t)
	// The controller is not there when both happen.
	s.controller.Kill(t)
	release()
	s.awaitJob(upgrade.Contract, "to complete", isComplete)
	s.edit(build.Lockstep("2026.1"))
	s.start()
	s.await("the refusal", says(upgrade.DowngradeNotSupported, "2026.2 → 2026.1 goes backwards, and the schema is already at 2026.2"))
	require.Equal(t, upgrade.State{Installed: "2026.2", InstalledImage: next, Attempt: 1}, s.now().Status.State())
	require.Empty(t, rolledTo(next)(s.deployment()), "the pods stay on what the database is at")
	s.toldTimes("Normal UpgradeComplete", 1)
	s.toldTimes("Normal UpgradeAborted", 0)
}

func TestAnAbortThatRacesWithTheEndOfContractEndsInOneOfTwoWholeStates(t *testing.T) {
	s, release := contracting(t)
	done := make(chan struct{})
	go func() { defer close(done); release() }()
	s.edit(build.Lockstep("2026.1"))
	<-done
	g := s.await("a decision", func(g *v1alpha1.Glance) string {
		return lacks(g.Status.UpgradePhase == "", "phase %s: %s", g.Status.UpgradePhase, database(g).Message)
	})
	if g.Status.InstalledRelease == "2026.2" {
		s.await("the refusal", says(upgrade.DowngradeNotSupported))
		require.Empty(t, rolledTo(next)(s.deployment()))
		return
	}
	s.aborted()
}

func TestAnAbortFollowedByANewStartBeginsAnew(t *testing.T) {
	s, _ := rolling(t)
	s.awaitPod(upgrade.Migrate, "to run", runs)
	before := s.job(upgrade.Migrate)
	s.edit(build.Lockstep("2026.1"))
	s.await("the abort", in(upgrade.Steady))
	finish := s.script(upgrade.Migrate, harness.Succeed(0))
	defer finish()
	s.edit(build.Lockstep("2026.2"))
	s.await("the upgrade to end", rests("2026.2"))
	require.NotEqual(t, before.UID, s.job(upgrade.Migrate).UID)
	s.toldTimes("Normal UpgradeInitiated", 1)
	s.toldTimes("Normal UpgradeAborted", 1)
	s.toldTimes("Normal UpgradeComplete", 1)
}
