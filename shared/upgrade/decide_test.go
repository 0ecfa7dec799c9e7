package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestALostStatusIsAdoptedFromTheDeploymentAsFarAsItProves(t *testing.T) {
	steady := installed("2026.1", "r:2026.1")
	left := steady
	left.AbortedImage = "r:next"
	early, walking := upgrading(Migrating), upgrading(RollingUpdate)
	nonsense := steady
	nonsense.Installed = "zed"
	for _, c := range []struct {
		name  string
		noted *State
		done  bool
		next  State
		says  string
	}{
		{"a steady one", &steady, false, steady, "Status was lost; adopted 2026.1 from Deployment glance"},
		{"with the image of an aborted walk", &left, false, left, "Status was lost; adopted 2026.1 from Deployment glance"},
		{"a walk noted before its pods rolled begins anew", &early, false, steady, "Status was lost; adopted 2026.1 from Deployment glance"},
		{"a walk whose pods rolled", &walking, false, walking, "Status was lost; adopted the rolling update from Deployment glance: 2026.1 → 2026.2"},
		{"a walk whose contract is done", &walking, true, installed("2026.2", "r:2026.2"), "Status was lost; adopted 2026.2 from Deployment glance"},
		{"nothing noted", nil, false, State{}, "the status records no release, and neither does Deployment glance: set status.installedRelease and status.installedImage to what its pods run"},
		{"nonsense noted", &nonsense, false, State{}, "the status records no release, and neither does Deployment glance: set status.installedRelease and status.installedImage to what its pods run"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Decide(State{}, wish("2026.2", "r:2026.2"), Observed{Deployment: rolledTo("r:2026.1"), Recorded: c.noted, RecordedDone: c.done})
			assert.Equal(t, c.next, got.Next)
			assert.Equal(t, c.says, got.Database.Message)
			assert.Equal(t, c.next != State{}, got.Step == Move)
			assert.Empty(t, got.Serve)
		})
	}
}

func TestANewObjectWaitsForADeploymentThatIsNotItsOwn(t *testing.T) {
	for standing, says := range map[Standing]string{
		Foreign: "not installed: Deployment glance exists and belongs to somebody else; remove or rename it, or choose another name",
		Leaving: "not installed: waiting until Deployment glance is deleted",
	} {
		got := Decide(State{}, wish("2026.1", "r:2026.1"), Observed{Deployment: Deployment{Name: "glance", Standing: standing}})
		assert.Equal(t, Wait, got.Step)
		assert.Equal(t, says, got.Database.Message)
	}
}

func TestWhatIsNotedRecoversTheStateAndAnUpgradeNotesItOnce(t *testing.T) {
	steady, walking, done := installed("2026.1", "r:2026.1"), upgrading(RollingUpdate), installed("2026.2", "r:2026.2")
	begun := upgrading(Expanding)
	begun.Attempt = 7
	again := upgrading(Migrating)
	again.TargetImage, again.Attempt = "r:2026.2-p1", 9
	left := steady
	left.AbortedImage = "r:2026.2"
	for _, c := range []struct {
		name     string
		s        State
		recorded *State
		done     bool
		note     State
		noted    bool
	}{
		{"nothing is noted", steady, nil, false, steady, false},
		{"steady", steady, &steady, false, steady, true},
		{"a walk that has begun needs no note", begun, &steady, false, State{Installed: "2026.1", InstalledImage: "r:2026.1", Attempt: 7}, true},
		{"the pods roll", walking, &steady, false, walking, false},
		{"the pods are rolling", walking, &walking, false, walking, true},
		{"contracting is noted as the rollout", upgrading(Contracting), &walking, false, walking, true},
		{"started over, the pods stay on the build before", again, &walking, false, walking, true},
		{"promoted, and the contract Job proves it", done, &walking, true, done, true},
		{"promoted, and the contract Job is gone", done, &walking, false, done, false},
		{"aborted before the pods rolled", left, &steady, false, left, false},
		{"aborted afterwards", left, &walking, false, left, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Observed{Recorded: c.recorded, RecordedDone: c.done}
			assert.Equal(t, c.note, Note(c.s, o))
			assert.Equal(t, c.noted, Noted(c.s, o))
		})
	}
}

func TestPodsThatHaveRolledStayWhileAWalkStartsOver(t *testing.T) {
	s := upgrading(Expanding)
	s.TargetImage, s.Attempt = "r:2026.2-p1", 5
	noted := upgrading(RollingUpdate)
	d := wish("2026.2", "r:2026.2-p1")
	assert.Equal(t, "r:2026.1", Decide(s, d, Observed{}).Serve)
	assert.Equal(t, "r:2026.2", Decide(s, d, Observed{Recorded: &noted}).Serve)
	other := noted
	other.Target = "2025.2"
	assert.Equal(t, "r:2026.1", Decide(s, d, Observed{Recorded: &other}).Serve, "the note of the walk before last")
	early := noted
	early.Phase = Migrating
	assert.Equal(t, "r:2026.1", Decide(s, d, Observed{Recorded: &early}).Serve, "a note from before the rollout")
}

func TestTheImageOfAWalkChangesOnlyBetweenJobs(t *testing.T) {
	for _, p := range []Phase{Expanding, Migrating, Contracting} {
		task, _ := PhaseTask(p)
		name := "glance-" + string(task)
		for _, c := range []struct {
			job  Job
			step Step
			says string
		}{
			{Job{}, Move, "Expand phase running: 2026.1 → 2026.2"},
			{Job{Standing: Current, Progress: Pending}, DeleteJob, "the image changed to r:2026.2-p1; Job " + name + " is deleted before it starts, then the walk re-enters at Expanding"},
			{Job{Standing: Leaving, Progress: Pending}, Wait, "the image changed to r:2026.2-p1; Job " + name + " and its pods are going, then the walk re-enters at Expanding"},
			{Job{Standing: Current, Progress: Running}, Wait, "the image changed to r:2026.2-p1; Job " + name + " runs to its end, then the walk re-enters at Expanding"},
			{Job{Standing: Current, Progress: Running, Trouble: true, Note: "1 of 5 tries failed"}, Wait, "runs to its end, then the walk re-enters at Expanding; 1 of 5 tries failed"},
			{Job{Standing: Current, Progress: Running, Stuck: true}, DeleteJob, "Job " + name + " cannot go on and is deleted, then the walk re-enters at Expanding"},
			{Job{Standing: Current, Progress: Ending}, Wait, "the image changed to r:2026.2-p1; Job " + name + " runs to its end, then the walk re-enters at Expanding"},
			{Job{Standing: Current, Progress: Failed}, Move, "Expand phase running: 2026.1 → 2026.2"},
			{Job{Standing: Stale, Progress: Complete}, Move, "Expand phase running: 2026.1 → 2026.2"},
		} {
			c.job.Name = name
			got := Decide(upgrading(p), wish("2026.2", "r:2026.2-p1"), Observed{Jobs: map[Task]Job{task: c.job}})
			assert.Equal(t, c.step, got.Step, "%s %+v", p, c.job)
			assert.Contains(t, got.Database.Message, c.says)
			if got.Step == Move {
				assert.Equal(t, State{Installed: "2026.1", Target: "2026.2", Phase: Expanding, InstalledImage: "r:2026.1", TargetImage: "r:2026.2-p1", Attempt: 2, ContractBegun: p == Contracting}, got.Next)
				again := Decide(got.Next, wish("2026.2", "r:2026.2-p2"), Observed{}).Next
				assert.Equal(t, p == Contracting, again.ContractBegun, "it is not forgotten when the walk starts over once more")
				assert.Equal(t, p == Contracting, AbortsContract(got.Next, wish("2026.1", "r:2026.1")))
			}
		}
	}
	// A status that was lost comes back at the rollout, behind its own contract.
	for _, p := range []Phase{RollingUpdate, Contracting} {
		at := func(progress Progress) Decision {
			return Decide(upgrading(p), wish("2026.2", "r:2026.2-p1"), Observed{Jobs: map[Task]Job{Contract: {Standing: Current, Progress: progress}}})
		}
		assert.Equal(t, installed("2026.2", "r:2026.2"), at(Complete).Next, "a finished contract is promoted first; the new image is a patch then")
		assert.Equal(t, Wait, at(Running).Step)
		assert.Equal(t, DeleteJob, at(Pending).Step)
	}
}

func TestAnAbortNeverUndoesAContractThatIsDone(t *testing.T) {
	for _, p := range []Phase{RollingUpdate, Contracting} {
		at := func(progress Progress) Decision {
			return Decide(upgrading(p), wish("2026.1", "r:2026.1"), Observed{Confirmed: true, Jobs: map[Task]Job{Contract: {Name: "glance-db-contract", Standing: Current, Progress: progress}}})
		}
		assert.Equal(t, installed("2026.2", "r:2026.2"), at(Complete).Next)
		ending := at(Ending)
		assert.Equal(t, Wait, ending.Step)
		assert.Contains(t, ending.Database.Message, "the abort comes too late, Job glance-db-contract is completing")
		for _, progress := range []Progress{Pending, Running, Failed} {
			assert.Equal(t, []Task{Contract}, at(progress).Delete)
		}
	}
}

func TestAnAbortWaitsForPodsOfJobsThatAreGoing(t *testing.T) {
	s, d := upgrading(Migrating), wish("2026.1", "r:2026.1")
	o := Observed{Confirmed: true, Jobs: map[Task]Job{Migrate: {Name: "glance-db-migrate", Standing: Leaving, Note: "pod glance-db-migrate-x terminates since 12:00"}}}
	got := Decide(s, d, o)
	require.Equal(t, Wait, got.Step)
	assert.Equal(t, "Migrate phase running: 2026.1 → 2026.2; aborting, waiting until no pod is left of glance-db-migrate (pod glance-db-migrate-x terminates since 12:00)", got.Database.Message)
	o.Jobs = nil
	o.Confirmed = false
	assert.Contains(t, Decide(s, d, o).Database.Message, "looking for pods of the phase Jobs")
	o.Confirmed = true
	assert.Equal(t, State{Installed: "2026.1", InstalledImage: "r:2026.1", AbortedImage: "r:2026.2", Attempt: 1}, Decide(s, d, o).Next)
}

func TestJobsOfSomebodyElseAreLeftAloneAndSaidSo(t *testing.T) {
	d := wish("2026.2", "r:2026.2")
	own := Decide(upgrading(Expanding), d, Observed{Jobs: map[Task]Job{Expand: {Name: "glance-db-expand", Standing: Foreign, Progress: Complete}}})
	assert.Equal(t, Wait, own.Step)
	assert.True(t, own.Database.Trouble)
	assert.Contains(t, own.Database.Message, "Job glance-db-expand exists and belongs to somebody else: remove it or wait until it is gone")
	beside := Decide(upgrading(Expanding), d, Observed{Jobs: map[Task]Job{Sync: {Name: "glance-db-sync", Standing: Foreign, Progress: Running}}})
	assert.Equal(t, Wait, beside.Step)
	assert.Contains(t, beside.Database.Message, "waiting for Job glance-db-sync, which belongs to somebody else, to end or be removed")
	finished := Decide(upgrading(Expanding), d, Observed{Jobs: map[Task]Job{Sync: {Name: "glance-db-sync", Standing: Foreign, Progress: Complete}}})
	assert.Equal(t, RunJob, finished.Step)
}

func TestAFailureIsToldOncePerGenerationAndKeepsBeingRetried(t *testing.T) {
	jobs := map[Task]Job{Migrate: {Name: "glance-db-migrate", Standing: Current, Progress: Failed, Note: "exit code 1: no right to create triggers"}}
	const says = "Migrate phase failed: 2026.1 → 2026.2: exit code 1: no right to create triggers. Fix the cause and delete Job glance-db-migrate to retry, or set the release back to 2026.1 and the image to r:2026.1 to abort"
	first := Decide(upgrading(Migrating), wish("2026.2", "r:2026.2"), Observed{Jobs: jobs, Reported: MigrateInProgress})
	assert.Equal(t, &Event{Reason: MigrateFailed, Warning: true, Message: says}, first.Event)
	assert.Equal(t, Report{Reason: MigrateFailed, Message: says, Trouble: true}, first.Database)
	assert.True(t, first.Retry)
	second := Decide(upgrading(Migrating), wish("2026.2", "r:2026.2"), Observed{Jobs: jobs, Reported: MigrateFailed})
	assert.Nil(t, second.Event)
	assert.True(t, second.Retry)
	held := Decide(installed("2026.1", "r:2026.1"), wish("2026.1", "r:2026.2"), Observed{})
	assert.False(t, held.Retry, "a mismatch waits quietly")
	refused := Decide(installed("2026.2", "r:2026.2"), wish("2026.1", "r:2026.1"), Observed{})
	assert.True(t, refused.Retry, "any other refusal is an error of the queue")
}

func TestReadinessDoesNotFlapAroundTheSyncAfterAnUpgrade(t *testing.T) {
	s, d := installed("2026.2", "r:2026.2"), wish("2026.2", "r:2026.2")
	for _, job := range []Job{{}, {Standing: Stale, Progress: Complete}, {Standing: Current, Progress: Pending}, {Standing: Current, Progress: Running}, {Standing: Current, Progress: Complete}} {
		got := Decide(s, d, Observed{Ready: true, Reported: DatabaseSynced, Jobs: map[Task]Job{Sync: job}, Deployment: rolledTo("r:2026.2")})
		assert.Equal(t, Report{Ready: true, Reason: DatabaseSynced, Message: "Schema is at 2026.2"}, got.Database, "%+v", job)
	}
	failed := Decide(s, d, Observed{Ready: true, Jobs: map[Task]Job{Sync: {Name: "glance-db-sync", Standing: Current, Progress: Failed}}})
	assert.Equal(t, "Database sync failed. Fix the cause and delete Job glance-db-sync to retry", failed.Database.Message)
}

func TestTheOnePassSyncWaitsForStrangers(t *testing.T) {
	mixed := rolledTo("r:2026.1")
	mixed.Releases = []string{"2026.1", "2026.2"}
	for name, c := range map[string]struct {
		s State
		d Desired
		o Deployment
	}{
		"after an abort":                   {installed("2026.1", "r:2026.1"), wish("2026.1", "r:2026.1"), mixed},
		"a patch after an abort":           {installed("2026.1", "r:2026.1"), wish("2026.1", "r:2026.1-p1"), mixed},
		"pods whose Deployment is gone":    {State{}, wish("2026.1", "r:2026.1"), Deployment{Releases: []string{"2026.2"}, Pods: 1}},
		"a template about to be rolled to": {installed("2026.1", "r:2026.1"), wish("2026.1", "r:2026.1"), rolledTo("r:2026.2")},
	} {
		got := Decide(c.s, c.d, Observed{Deployment: c.o})
		assert.Equal(t, Wait, got.Step, name)
		assert.Equal(t, "Database sync of 2026.1 waits until no pod of 2026.2 is left", got.Database.Message, name)
	}
}

func TestTheReasonsAreClosedAndEveryTaskHasItsWords(t *testing.T) {
	for _, task := range Tasks {
		w, known := wordsOf[task]
		require.True(t, known, task)
		assert.Contains(t, ProgressReasons, w.running)
		assert.Contains(t, FailureReasons, w.failed)
		if task != Sync {
			assert.Contains(t, EventReasons, w.complete)
		}
	}
	for _, p := range Phases {
		assert.Contains(t, ProgressReasons, progressOf[p])
	}
	assert.Len(t, progressOf, len(Phases))
}
