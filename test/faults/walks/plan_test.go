package walks

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/faults/history"
)

func TestASeedAlwaysGivesTheSameWalkAndAnotherSeedAnother(t *testing.T) {
	require.Equal(t, New(7), New(7))
	require.NotEqual(t, New(7).Steps, New(8).Steps)
}

func TestAThousandSeedsDoEverythingOftenToBothKinds(t *testing.T) {
	const often = 30
	deeds, met, kinds := map[Deed]int{}, map[Until]int{}, map[string]int{}
	for seed := range uint64(all) {
		walk := New(seed)
		kinds[walk.Service]++
		disturbed := map[Deed]int{}
		for _, step := range walk.Steps {
			deeds[step.Deed]++
			met[step.Until]++
			disturbed[step.Deed]++
		}
		require.Equal(t, disturbed[Freeze], disturbed[Thaw], "every view is thawed again")
		require.Equal(t, disturbed[Blind], disturbed[See], "every watch comes back")
		require.GreaterOrEqual(t, len(walk.Steps), fewest)
	}
	for _, each := range weighted {
		require.Greater(t, deeds[each.deed], often, "%s", each.deed)
	}
	for _, phase := range upgrade.Phases {
		require.Greater(t, met[Until(phase)], often, "%s", phase)
	}
	require.Greater(t, kinds[history.Glance], all/3)
	require.Greater(t, kinds[history.Keystone], all/3)
}

// judgedIn is what the law says about the wish of a deed.
func judgedIn(w Walk, deed Deed, s upgrade.State, now wish) *upgrade.Rejection {
	asked, _ := w.asks(Step{Deed: deed, Build: 1}, s, now)
	o := w.made("n", "g")
	ask(o, asked)
	o.SetState(s)
	return upgrade.Check(o.State(), tables[w.Service].Wish(o))
}

func TestWishesMeanWhatTheirDeedSays(t *testing.T) {
	for _, w := range []Walk{
		{Service: history.Glance}, {Service: history.Keystone}, {Service: history.Glance, ByDigest: true}, {Service: history.Keystone, ByDigest: true},
	} {
		steady := upgrade.State{Installed: "2026.1", InstalledImage: w.lockstep("2026.1", 0).image.Reference().String()}
		walking := steady
		walking.Target, walking.TargetImage, walking.Phase, walking.Attempt = "2026.2", w.lockstep("2026.2", 0).image.Reference().String(), upgrade.Migrating, 2
		for deed, reason := range map[Deed]upgrade.Reason{Upgrade: "", Patch: "", Revert: "", Skip: upgrade.UpgradePathInvalid, Downgrade: upgrade.DowngradeNotSupported,
			Garbage: upgrade.VersionParseError} {
			requireReason(t, reason, judgedIn(w, deed, steady, w.first()), "%+v, %s at rest", w, deed)
		}
		for deed, reason := range map[Deed]upgrade.Reason{Rebuild: "", Revert: "", Third: upgrade.UpgradeTargetChanged} {
			requireReason(t, reason, judgedIn(w, deed, walking, w.lockstep("2026.2", 0)), "%+v, %s in a walk", w, deed)
		}
		require.Equal(t, "2026.2", holds(walking.TargetImage))
		for _, s := range []upgrade.State{{}, steady, walking} {
			for _, onward := range []bool{true, false} {
				w.Onward = onward
				o := w.made("n", "g")
				o.SetState(s)
				ask(o, w.good(o.State()))
				require.Nil(t, upgrade.Check(o.State(), tables[w.Service].Wish(o)))
			}
		}
	}
	half := Walk{Service: history.Glance}
	requireReason(t, upgrade.ImageReleaseMismatch, judgedIn(half, Mismatch, upgrade.State{Installed: "2026.1", InstalledImage: "r:2026.1"}, half.first()), "half of a wish")
	back, _ := half.asks(Step{Deed: ReleaseBack}, upgrade.State{Installed: "2026.1"}, half.lockstep("2026.2", 0))
	require.Equal(t, "2026.1", back.release)
	require.Equal(t, "2026.2", back.image.Tag)
}

func requireReason(t *testing.T, reason upgrade.Reason, found *upgrade.Rejection, format string, args ...any) {
	t.Helper()
	if reason == "" {
		require.Nil(t, found, append([]any{format}, args...)...)
		return
	}
	require.NotNil(t, found, append([]any{format}, args...)...)
	require.Equal(t, reason, found.Reason, append([]any{format}, args...)...)
}

func TestReleasesAreCountedBothWays(t *testing.T) {
	require.Equal(t, "2027.1", after("2026.1", 2))
	require.Equal(t, "2025.2", after("2026.1", -1))
	require.Equal(t, "2026.1", after("2026.1", 0))
}
