package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAStatusThatWasSetBackWalksAnew(t *testing.T) {
	d := wish("2026.2", "r:2026.2")
	for name, c := range map[string]struct {
		s    State
		o    Observed
		want int64
	}{
		"the generation is newer":                          {State{Installed: "2026.1", InstalledImage: "r:2026.1", Attempt: 1}, Observed{}, 2},
		"set back by hand, the attempt is still there":     {State{Installed: "2026.1", InstalledImage: "r:2026.1", Attempt: 2}, Observed{}, 3},
		"set back without the attempt, the note has it":    {State{Installed: "2026.1", InstalledImage: "r:2026.1"}, Observed{Recorded: &State{Installed: "2026.2", Attempt: 7}}, 8},
		"the walk starts over under the same generation":   {State{Installed: "2026.1", InstalledImage: "r:2026.1", Target: "2026.2", TargetImage: "r:2026.2-p1", Phase: Expanding, Attempt: 2}, Observed{}, 3},
		"a note of long ago does not make an attempt less": {State{Installed: "2026.1", InstalledImage: "r:2026.1", Attempt: 5}, Observed{Recorded: &State{Installed: "2026.1", Attempt: 1}}, 6},
	} {
		got := Decide(c.s, d, c.o)
		require.Equal(t, Move, got.Step, name)
		assert.Equal(t, c.want, got.Next.Attempt, name)
		assert.NotEqual(t, WorkOf(c.s, d, Expand), WorkOf(got.Next, d, Expand), "%s: no Job from before counts", name)
	}
}

func TestAfterContractHasBegunNoPodOfTheInstalledReleaseIsStarted(t *testing.T) {
	s := upgrading(Expanding)
	s.ContractBegun = true
	for _, o := range []Observed{{}, {Deployment: Deployment{Name: "glance", Standing: Absent}}} {
		assert.Equal(t, s.TargetImage, Decide(s, wish("2026.2", "r:2026.2"), o).Serve)
	}
}

func TestTheOnePassSyncIsSureOfThePodsFirst(t *testing.T) {
	s, d := installed("2026.1", "r:2026.1"), wish("2026.1", "r:2026.1-p1")
	alone := rolledTo("r:2026.1")
	assert.Equal(t, Wait, Decide(s, d, Observed{Deployment: alone}).Step)
	assert.Equal(t, RunJob, Decide(s, d, Observed{Deployment: alone, Confirmed: true}).Step)
	alone.Releases = []string{"2026.1", Unknown}
	assert.Equal(t, Wait, Decide(s, d, Observed{Deployment: alone, Confirmed: true}).Step, "a pod that does not tell its release is not trusted")
}

func TestABadPatchIsRepairedByTheNextOne(t *testing.T) {
	s := installed("2026.1", "r:2026.1-bad")
	mixed := rolledTo("r:2026.1-bad") // half rolled, and beside it pods of the build before
	mixed.Total, mixed.Outdated = 3, []string{"glance-old"}
	got := Decide(s, wish("2026.1", "r:2026.1-good"), Observed{Deployment: mixed, Confirmed: true})
	assert.Equal(t, RunJob, got.Step)
	assert.Equal(t, Sync, got.Task)
}

func TestPodsFollowToAnotherDatabaseOnceItsSchemaIsThere(t *testing.T) {
	s, d := installed("2026.1", "r:2026.1"), wish("2026.1", "r:2026.1")
	old := rolledTo("r:2026.1")
	old.Elsewhere = true
	got := Decide(s, d, Observed{Deployment: old, Confirmed: true, Ready: true})
	assert.Equal(t, RunJob, got.Step)
	assert.Empty(t, got.Serve, "the pods stay where they are")
	assert.False(t, got.Database.Ready)
	done := map[Task]Job{Sync: {Name: "glance-db-sync", Standing: Current, Progress: Complete}}
	got = Decide(s, d, Observed{Deployment: old, Confirmed: true, Jobs: done})
	assert.Equal(t, "r:2026.1", got.Serve)
	assert.True(t, got.Database.Ready)
}

func TestAnUpgradeBeginsOnceThePodsHaveFollowedToTheOtherDatabase(t *testing.T) {
	s, d := installed("2026.1", "r:2026.1"), wish("2026.2", "r:2026.2")
	old := rolledTo("r:2026.1")
	old.Elsewhere = true
	got := Decide(s, d, Observed{Deployment: old, Confirmed: true, Ready: true})
	require.Equal(t, RunJob, got.Step)
	assert.Equal(t, Work{Task: Sync, From: "2026.1", To: "2026.1", Attempt: 1, Image: "r:2026.1"}, WorkOf(s, d, got.Task))
	assert.Empty(t, got.Serve, "the pods stay where they are")
	assert.Equal(t, "Database sync running: 2026.1; the upgrade 2026.1 → 2026.2 begins once the pods have followed to the other database", got.Database.Message)
	done := map[Task]Job{Sync: {Name: "glance-db-sync", Standing: Current, Progress: Complete}}
	got = Decide(s, d, Observed{Deployment: old, Confirmed: true, Jobs: done})
	assert.Equal(t, Wait, got.Step)
	assert.Equal(t, "r:2026.1", got.Serve)
	old.Elsewhere = false
	got = Decide(s, d, Observed{Deployment: old, Confirmed: true, Jobs: done})
	assert.Equal(t, Move, got.Step)
	assert.Equal(t, Expanding, got.Next.Phase)
}

func TestASkipIsNotAlsoCalledAnUnchangedImage(t *testing.T) {
	found := Violations(installed("2026.1", "r:stable"), wish("2030.1", "r:stable"))
	require.Len(t, found, 1)
	assert.Equal(t, UpgradePathInvalid, found[0].Reason)
}
