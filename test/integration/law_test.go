package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

func TestBL02AWishThatTheLawRefusesIsSaidOnceAndChangesNothing(t *testing.T) {
	for _, c := range []struct {
		name, installed, image string
		wish                   build.GlanceOption
		reason                 upgrade.Reason
		words                  string
	}{
		{"a release is skipped", "2026.1", "2026.1", build.Lockstep("2027.1"), upgrade.UpgradePathInvalid, "2026.1 → 2027.1 skips 2026.2"},
		{"a release before", "2026.2", "2026.2", build.Lockstep("2026.1"), upgrade.DowngradeNotSupported, "2026.2 → 2026.1 goes backwards"},
		{"the image stays behind", "2026.1", "2026.1", build.Release("2026.2"), upgrade.ImageReleaseMismatch, `tag "2026.1" names release 2026.1`},
		{"the image runs ahead", "2026.1", "2026.1", build.Tag("2026.2"), upgrade.ImageReleaseMismatch, `tag "2026.2" names release 2026.2`},
		{"a patch of the old image", "2026.1", "2026.1", adjusted(build.Release("2026.2"), build.Tag("2026.1-p1")), upgrade.ImageReleaseMismatch, `tag "2026.1-p1" names release 2026.1`},
		{"an opaque image that stays", "2026.1", "bookworm", build.Release("2026.2"), upgrade.ImageReleaseMismatch, "with the image unchanged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			image := build.DefaultRepository + ":" + c.image
			s := open(t).glance(build.Release(c.installed), build.Tag(c.image)).record(upgrade.State{Installed: c.installed, InstalledImage: image}).start()
			s.await("the Glance to rest", rests(c.installed))
			before, mark := s.now().Status.State(), s.Mark(t)
			s.edit(c.wish)
			s.await("the refusal", says(c.reason, c.words))
			s.toldTimes("Warning "+string(c.reason), 1)
			s.holds(3*time.Second, "the refusal", says(c.reason, c.words))
			require.Equal(t, before, s.now().Status.State())
			require.Empty(t, rolledTo(image)(s.deployment()), "the pods are left alone")
			s.toldTimes("Warning "+string(c.reason), 1)
			writes := s.calls(mark).Where(harness.Writes)
			require.Equal(t, "   1 × create events\n   1 × update glances/status\n", writes.String(), "said once, whatever the retries")
			s.edit(build.Release(c.installed), build.Tag(c.image))
			s.await("the Glance to rest again", rests(c.installed))
		})
	}
}

func adjusted(options ...build.GlanceOption) build.GlanceOption {
	return build.Adjust(func(g *v1alpha1.Glance) { build.Change(g, options...) })
}

func TestBL20AnImageThatIsBumpedBeforeItsReleaseWaitsAndThenWalks(t *testing.T) {
	s := steady(t)
	s.edit(build.Tag("2026.2"))
	s.await("the wait", says(upgrade.ImageReleaseMismatch, "change both together"))
	s.edit(build.Release("2026.2"))
	s.await("the upgrade to end", rests("2026.2"))
}

func TestAThirdReleaseInMidWalkNeitherAdvancesNorRestarts(t *testing.T) {
	s := open(t)
	finish := s.script(upgrade.Migrate, harness.Hang())
	s.glance(build.Lockstep("2026.2")).record(walking(upgrade.Migrating)).start()
	s.awaitPod(upgrade.Migrate, "to run", runs)
	before, job := s.now().Status.State(), s.job(upgrade.Migrate)

	s.edit(build.Lockstep("2027.1"))
	s.await("the refusal", says(upgrade.UpgradeTargetChanged, "2026.1 → 2026.2 is in phase Migrating", "2027.1"))
	finish()
	s.awaitJob(upgrade.Migrate, "to complete", isComplete)
	s.holds(3*time.Second, "the refusal", says(upgrade.UpgradeTargetChanged))
	require.Equal(t, before, s.now().Status.State(), "not even a Job that completes advances it")
	s.toldTimes("Warning UpgradeTargetChanged", 1)

	s.edit(build.Lockstep("2026.2"))
	s.await("the upgrade to go on to its end", rests("2026.2"))
	s.toldTimes("Normal UpgradeInitiated", 0)
	require.Equal(t, job.UID, s.job(upgrade.Migrate).UID, "the migration was not run again")
}
