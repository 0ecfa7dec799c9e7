package integration

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// TestTheRunbooksRestoreComesToRestAtTheReleaseOfTheBackup takes the steps of docs/runbook.md after an upgrade that is
// to be taken back, and then upgrades again.
func TestTheRunbooksRestoreComesToRestAtTheReleaseOfTheBackup(t *testing.T) {
	s := steady(t)
	s.edit(build.Lockstep("2026.2"))
	s.await("the upgrade to end", rests("2026.2"))
	s.awaitJob(upgrade.Sync, "the sync afterwards", completeOn(next))

	s.edit(build.Replicas(0))
	s.Eventually(t, harness.Patience, "no API pod to be left", func(context.Context) string {
		return lacks(len(s.pods(api)) == 0, "%d are", len(s.pods(api)))
	})
	s.controller.Stop(t)
	// Here the database would be restored.
	s.status(func(status *v1alpha1.ServiceStatus) {
		status.InstalledRelease, status.InstalledImage = "2026.1", old
		status.TargetRelease, status.TargetImage, status.UpgradePhase = "", "", ""
	})
	s.edit(build.Lockstep("2026.1"), build.Replicas(1))
	mark := s.Mark(t)
	s.start()

	s.await("the Glance to rest", rests("2026.1"))
	s.awaitJob(upgrade.Sync, "the sync of the restored release", completeOn(old))
	s.awaitDeployment("the pods to be those of the backup", rolledTo(old))
	for _, call := range s.calls(mark) {
		for _, task := range upgrade.PhaseTasks {
			require.False(t, call.Verb == "create" && call.Name == v1alpha1.JobName(name, task), "%s was run on the restored database", task)
		}
	}
	s.edit(build.Lockstep("2026.2"))
	for _, task := range upgrade.PhaseTasks {
		s.awaitJob(task, "to be run anew", completeOn(next))
	}
	s.await("the upgrade to end again", rests("2026.2"))
	s.awaitDeployment("the new pods to serve", rolledTo(next))
}
