package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/shared/image"
)

func TestWhatIsOnRecordCanAlwaysBeAskedFor(t *testing.T) {
	t.Parallel()
	asked := 0
	everyState(func(s State) {
		if recordFault(s) != "" || s.Installed == "" {
			return
		}
		states := []State{s}
		if before, err := image.Parse(s.InstalledImage); err == nil && s.Installed != Unnamed {
			// A backup was restored: what was called something else is installed again.
			s.AbortedImage = before.String()
			states = append(states, s)
		}
		for _, s := range states {
			for _, r := range []Remedy{{Release: s.Installed, Image: ref(s.InstalledImage)}, {Release: s.Target, Image: ref(s.TargetImage)}} {
				if r.Image == (image.Reference{}) || r.Release == "" || s.Target == r.Release && runs(s.InstalledImage, r.Image) {
					continue
				}
				asked++
				require.Nil(t, Check(s, Desired{Release: r.Release, Image: r.Image}), "%+v %s", s, r.Image)
				require.Nil(t, Check(s, Desired{Release: r.Release, Image: r.Image, ByTag: true}), "%+v %s", s, r.Image)
			}
		}
	})
	assert.Greater(t, asked, 100)
}

func TestARecordThatContradictsItselfIsRepairedBeforeAnyWishIsJudged(t *testing.T) {
	walk, served := upgrading(Migrating), rolledTo("r:2026.2")
	walk.TargetImage = "r:2027.1-p1"
	for says, s := range map[string]State{
		`the recorded installed release is 2026.1, but the recorded image r:2026.2 names 2026.2; 2026.1 → 2026.1 cannot be judged: repair the status first`:                           installed("2026.1", "r:2026.2"),
		`the recorded installed release is an unnamed release, but the recorded image r:2026.1 names 2026.1; "an unnamed release" → 2026.1 cannot be judged: repair the status first`: installed(Unnamed, "r:2026.1"),
		`the recorded target release is 2026.2, but the recorded image r:2027.1-p1 names 2027.1; 2026.1 → 2026.1 cannot be judged: repair the status first`:                           walk,
		`expanded release "2026.2" is recorded without an installed release; "" → 2026.1 cannot be judged: repair the status first`:                                                   {Ahead: "2026.2"},
	} {
		got := Decide(s, byTag(s, "r:2026.1"), Observed{Confirmed: true})
		require.NotNil(t, got.Rejection, says)
		assert.Equal(t, says, got.Rejection.Message)
		assert.True(t, got.Rejection.Record)
		assert.Equal(t, Wait, got.Step)
		assert.Empty(t, got.Serve)
		if s.Installed != "" {
			assert.Empty(t, Decide(s, byTag(s, "r:2026.1"), Observed{Confirmed: true, Deployment: served}).Serve, "pods stay as they are")
		}
	}
}

func TestAnAbortNeverForgetsThatTheSchemaIsAhead(t *testing.T) {
	t.Parallel()
	w := keyedAtRest("r:2026.1", 1)
	w.ask("", "r:2026.2")
	w.people = 3
	explore((*world).unsettled, turns("r:2026.2"), turns("r:2026.1"), interference{"status.expandedRelease is removed, since no pod of expand has started", func(w *world) {
		for _, job := range w.jobs {
			if job.alive() {
				return
			}
		}
		if w.schema.expanded < w.state.Ahead {
			w.state.Ahead = ""
		}
	}}).from("an upgrade is asked for", w).report(t)
}

func TestAWalkSaysFromTheBeginningWhoseSchemaItExpands(t *testing.T) {
	at := State{Installed: "2026.1", InstalledImage: "r:2026.1", Attempt: 1}
	for ahead, facts := range map[string]Facts{"": {}, "2026.2": {ReadsOwnSchemaOnly: true}} {
		d := Tagged(at, ref("r:2026.2"), 2)
		d.Facts = facts
		begun := Decide(at, d, Observed{Deployment: rolledTo("r:2026.1"), Confirmed: true})
		require.Equal(t, Move, begun.Step, "%+v", begun)
		require.Equal(t, Expanding, begun.Next.Phase)
		require.Equal(t, ahead, begun.Next.Ahead, "an abort at any moment must not forget it")
	}
}

func TestADatabaseThatWasUpgradedIsNeverTakenForANewOne(t *testing.T) {
	t.Parallel()
	undeploy := interference{"the Deployment is deleted", func(w *world) {
		pods := w.api.pods
		for i := range pods {
			if pods[i].stage != gone {
				pods[i].stage = terminating
			}
		}
		w.api = playedDeployment{pods: pods}
	}}
	told := func(w *world) string {
		if lost(w.state) {
			return unless(w.reported == VersionParseError && !w.job(Sync).alive(), "a first installation on a database of an upgrade")
		}
		return w.unsettled()
	}
	w := keyedAtRest("r:2026.1", 1)
	w.ask("", "r:2026.2")
	w.people = 2
	explore(told, undeploy, loss).from("an upgrade is asked for", w).report(t)
	w.rest()
	w.people = 3
	explore(told, turns("r:2026.1"), turns("r:2026.2-p1"), undeploy, loss, cleanUp).from("an upgrade is complete", w).report(t)
}

func TestAnAbortThatCameTooLateIsNotTakenForAPatchWhenTheStatusIsLostAsWell(t *testing.T) {
	noted := State{Installed: "2026.1", InstalledImage: "r@sha256:a", Target: "2026.2", TargetImage: "r:2026.2", Phase: RollingUpdate, Ahead: "2026.2", Attempt: 2}
	o := Observed{Recorded: &noted, RecordedDone: true, Confirmed: true, Deployment: rolledTo("r:2026.2")}
	got := Decide(State{}, byTag(State{}, "r@sha256:a"), o)
	require.Equal(t, Move, got.Step)
	require.Equal(t, State{Installed: "2026.2", InstalledImage: "r:2026.2", AbortedImage: "r@sha256:a", Attempt: 2}, got.Next)
	rejection := Check(got.Next, byTag(got.Next, "r@sha256:a"))
	require.NotNil(t, rejection)
	assert.Equal(t, ImageReleaseMismatch, rejection.Reason)
	assert.Contains(t, rejection.Message, "image r@sha256:a is on record with another release", "it was no upgrade's target")
}

func TestAnImageThatWasGivenUpOnceMayFollowAsAPatchAfterThePromotion(t *testing.T) {
	s := upgrading(Contracting)
	s.AbortedImage = "r:next" // a build of 2026.2 that was tried first, and aborted
	got := Decide(s, wish("2026.2", "r:2026.2"), Observed{Jobs: map[Task]Job{Contract: {Standing: Current, Progress: Complete}}})
	require.Equal(t, installed("2026.2", "r:2026.2"), got.Next)
	assert.Nil(t, Check(got.Next, wish("2026.2", "r:next")))
}

func TestAnotherDigestBesideANameIsWalkedToAndNotJustNamed(t *testing.T) {
	s := installed(Unnamed, "r@sha256:a")
	assert.Equal(t, Steady, Decide(s, byTag(s, "r:2026.1@sha256:a"), Observed{}).Next.Phase, "it is what is installed")
	assert.Equal(t, Expanding, Decide(s, byTag(s, "r:2026.1@sha256:b"), Observed{}).Next.Phase)
}
