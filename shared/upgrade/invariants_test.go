package upgrade

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

// invariant is one sentence that no decision may break. Its verdict is empty
// when the sentence holds; applies counts where it had anything to say.
type invariant struct {
	says    string
	applies func(*situation) bool
	broken  func(*situation) string
}

var invariants = []invariant{
	{"a decision either moves the recorded state or touches the world", always, func(c *situation) string {
		g := c.got
		touches := g.Task != "" || len(g.Delete) > 0 || g.Serve != ""
		moves := g.Next != State{}
		switch g.Step {
		case Move:
			return unless(!touches && g.Next != c.s, "a move touches the world, or moves nothing")
		case RunJob:
			return unless(!moves && g.Task != "" && len(g.Delete) == 0, "RunJob carries something else than its task")
		case DeleteJob:
			return unless(!moves && g.Task == "" && len(g.Delete) > 0, "DeleteJob carries something else than what to delete")
		case Wait:
			return unless(!moves && g.Task == "" && len(g.Delete) == 0, "a wait does something")
		}
		return fmt.Sprintf("%q is no step", g.Step)
	}},
	{"a rejection changes nothing", func(c *situation) bool { return c.got.Rejection != nil }, func(c *situation) string {
		if c.got.Rejection.Record && c.got.Serve != "" {
			return "it touches pods although the record cannot be read"
		}
		served := []string{"", c.s.serves()}
		if r := c.o.Recorded; r != nil && r.Target == c.s.Target {
			served = append(served, r.TargetImage)
		}
		return unless(c.got.Step == Wait && slices.Contains(served, c.got.Serve) && !c.got.Database.Ready, "it does something")
	}},
	{"Check accepts exactly what Decide does not reject", func(c *situation) bool { return !recovers(c) }, func(c *situation) string {
		rejection := Check(c.s, c.d)
		if (rejection == nil) != (c.got.Rejection == nil) {
			return fmt.Sprintf("Check says %v, Decide says %v", rejection, c.got.Rejection)
		}
		return unless(reflect.DeepEqual(rejection, c.got.Rejection), "they reject for different reasons")
	}},
	{"a lost status under a Deployment is recovered before any wish is judged", recovers, func(c *situation) string {
		switch g := c.got; g.Step {
		case Move:
			return unless(c.o.Deployment.Standing == Current && g.Next.Installed == c.o.Recorded.Installed || c.o.RecordedDone && g.Next.Installed == c.o.Recorded.Target, "it adopts something that was not noted")
		case RunJob, DeleteJob:
			return "it works on a schema of unknown release"
		default:
			return unless(g.Serve == "" && !g.Database.Ready, "it touches pods of unknown release")
		}
	}},
	{"only a finished contract promotes", func(c *situation) bool { return c.got.Step == Move && c.got.Next.Installed != c.s.Installed }, func(c *situation) string {
		sync, contract := c.o.Jobs[Sync], c.o.Jobs[Contract]
		switch {
		case recovers(c):
			return ""
		case c.s.Installed == "":
			return unless(done(sync) && c.got.Next.Installed == c.d.Release && c.got.Next.InstalledImage == c.d.Image.String(), "installed without a finished sync")
		case c.s.Installed == Unnamed && !c.s.Walking():
			return unless(ref(c.s.InstalledImage).Digest == c.d.Image.Digest && c.got.Next.Installed == c.d.Release, "named without being the installed image")
		}
		return unless(done(contract) && c.s.Walking() && c.got.Next.Installed == c.s.Target && c.got.Next.InstalledImage == c.s.TargetImage && !c.got.Next.Walking(),
			"promoted without a finished contract")
	}},
	{"an event implies a transition, or a failure not yet reported", func(c *situation) bool { return c.got.Event != nil }, func(c *situation) string {
		event := *c.got.Event
		if event.Warning {
			return unless(c.got.Step != Move && event.Reason != c.o.Reported && slices.Contains(FailureReasons, event.Reason) && event.Reason == c.got.Database.Reason,
				"a warning that is not a new failure")
		}
		return unless(c.got.Step == Move && slices.Contains(EventReasons, event.Reason), "an event without a transition")
	}},
	{"every transition of a walk has its event", func(c *situation) bool { return c.got.Step == Move && !recovers(c) }, func(c *situation) string {
		var want Reason
		next := c.got.Next
		switch {
		case !next.Walking() && !c.s.Walking():
		case !next.Walking() && next.Installed == c.s.Installed:
			want = UpgradeAborted
		case !next.Walking():
			want = UpgradeComplete
		case next.Attempt != c.s.Attempt:
			want = UpgradeInitiated
		default:
			want = map[Phase]Reason{Expanding: ExpandComplete, Migrating: MigrateComplete, RollingUpdate: DeploymentRolloutComplete}[c.s.Phase]
		}
		if want == "" {
			return unless(c.got.Event == nil, "an event outside of a walk")
		}
		return unless(c.got.Event != nil && c.got.Event.Reason == want, "wanted "+string(want))
	}},
	{"a walk takes its phases in order, or starts over with another build", func(c *situation) bool { return c.got.Step == Move && c.s.Walking() && c.got.Next.Walking() }, func(c *situation) string {
		n := c.got.Next
		if n.Phase == Expanding {
			return unless(n.TargetImage == c.d.Image.String() && n.TargetImage != c.s.TargetImage && n.Attempt == c.d.Generation && n.Target == c.s.Target, "it starts over for nothing")
		}
		moved := c.s
		moved.Phase = next[c.s.Phase]
		if c.d.Facts.ReadsOwnSchemaOnly {
			moved.Ahead = c.s.Target
		}
		task, hasTask := PhaseTask(c.s.Phase)
		return unless(n == moved && (!hasTask || done(c.o.Jobs[task])), "a phase is left early or skipped")
	}},
	{"a release is pinned together with its image", func(c *situation) bool {
		return c.got.Step == Move && !c.s.Walking() && c.got.Next.Walking() && !recovers(c)
	}, func(c *situation) string {
		n, want := c.got.Next, c.s
		want.Phase, want.Target, want.TargetImage, want.Attempt = Expanding, c.d.Release, c.d.Image.String(), c.d.Generation
		if c.d.Facts.ReadsOwnSchemaOnly {
			want.Ahead = c.d.Release
		}
		return unless(n == want, "it starts something else than what was asked")
	}},
	{"no two pieces of schema work run side by side", func(c *situation) bool { return c.got.Step == RunJob }, func(c *situation) string {
		for _, task := range Tasks {
			job := c.o.Jobs[task]
			if job.Standing != Absent && (task == c.got.Task || job.Standing == Leaving || !job.finished()) {
				return fmt.Sprintf("%s is started beside %s", c.got.Task, task)
			}
		}
		return ""
	}},
	{"a task runs in its phase alone", func(c *situation) bool { return c.got.Step == RunJob }, func(c *situation) string {
		task, hasTask := PhaseTask(c.s.Phase)
		if !hasTask {
			task = Sync
		}
		return unless(c.got.Task == task && c.s.Phase != RollingUpdate, "wrong phase")
	}},
	{"the contract Job is created only if nothing holds it and that is confirmed", func(c *situation) bool { return c.got.Task == Contract }, func(c *situation) string {
		return unless(Held(c.o.Deployment, c.s.TargetImage) == "" && c.o.Confirmed, "it is created early")
	}},
	{"a contract that has not run yet does not outlast the gate, once pods of another release are surely back", func(c *situation) bool {
		contract := c.o.Jobs[Contract]
		return (c.s.Phase == RollingUpdate || c.s.Phase == Contracting) && Check(c.s, c.d) == nil && !Aborts(c.s, c.d) && c.d.Image.String() == c.s.TargetImage && contract.Standing == Current && contract.idle() &&
			(c.o.Deployment.Release != "" && c.o.Deployment.Release != c.s.Target || slices.ContainsFunc(c.o.Deployment.Releases, func(release string) bool { return release != c.s.Target }))
	}, func(c *situation) string {
		if !c.o.Confirmed {
			return unless(c.got.Step == Wait, "it is deleted by what caches show")
		}
		return unless(c.got.Step == DeleteJob && slices.Equal(c.got.Delete, []Task{Contract}) && c.got.Database.Trouble, "it stays")
	}},
	{"pods do not follow to a database that is not ready for them", func(c *situation) bool { return c.o.Deployment.Elsewhere && c.got.Serve != "" }, func(c *situation) string {
		switch {
		case Check(c.s, c.d) != nil:
			return "the wish is refused"
		case c.s.Phase == Expanding || c.s.Phase == Migrating:
			return "it is not migrated yet"
		case !c.s.Walking():
			return unless(done(c.o.Jobs[Sync]), "it is not synced")
		}
		return ""
	}},
	{"contracting begins only if nothing holds it and that is confirmed", func(c *situation) bool { return c.got.Step == Move && c.got.Next.Phase == Contracting }, func(c *situation) string {
		return unless(Held(c.o.Deployment, c.s.TargetImage) == "" && c.o.Confirmed, "the phase begins early")
	}},
	{"the one-pass sync never starts beside pods of another release, and that is confirmed", func(c *situation) bool { return c.got.Task == Sync }, func(c *situation) string {
		for _, seen := range append(slices.Clone(c.o.Deployment.Releases), c.o.Deployment.Release) {
			if seen != "" && seen != WorkOf(c.s, c.d, Sync).To {
				return "pods serve " + seen
			}
		}
		if !c.o.Confirmed {
			return "the pods were not read past the caches"
		}
		return ""
	}},
	{"only Jobs of ours are deleted, and outside of an abort none that works, has worked or has failed for good", func(c *situation) bool { return c.got.Step == DeleteJob }, func(c *situation) string {
		aborts := Aborts(c.s, c.d)
		for _, task := range c.got.Delete {
			job := c.o.Jobs[task]
			if !job.ours() {
				return "it deletes what is not ours or is gone: " + string(task)
			}
			if aborts {
				continue
			}
			if !job.idle() && !job.finished() || job.Standing == Current && (job.Progress == Complete || job.Progress == Failed && !job.Revised) {
				return "it deletes " + string(task)
			}
		}
		return ""
	}},
	{"nothing is synced while the schema is ahead of the installed release, and people are told", func(c *situation) bool {
		return c.s.Ahead != "" && !c.s.Walking() && Check(c.s, c.d) == nil && equal(c.s.Installed, c.d.Release) && !recovers(c)
	}, func(c *situation) string {
		return unless(c.got.Step != RunJob && c.got.Step != Move && c.got.Database.Reason == DowngradeNotSupported && strings.Contains(c.got.Database.Message, "expanded for "+c.s.Ahead) &&
			len(c.got.Database.Remedies) > 0 && equal(c.got.Database.Remedies[0].Release, c.s.Ahead) && (c.got.Event != nil) == (c.o.Reported != DowngradeNotSupported), "it works on it, or keeps silent")
	}},
	{"the schema stays ahead until a walk is promoted", func(c *situation) bool { return c.s.Ahead != "" && c.got.Step == Move && !recovers(c) }, func(c *situation) string {
		promoted := done(c.o.Jobs[Contract]) && c.got.Next.Installed == c.s.Target && !c.got.Next.Walking()
		return unless(promoted == (c.got.Next.Ahead == ""), "it is forgotten early, or kept")
	}},
	{"a failed Job waits for a person and says so", func(c *situation) bool {
		task, _ := PhaseTask(c.s.Phase)
		if !c.s.Walking() {
			task = Sync
		}
		job := c.o.Jobs[task]
		goesOn := (c.s.Ahead == "" || c.s.Walking()) && Check(c.s, c.d) == nil && !Aborts(c.s, c.d) && !recovers(c) && (c.s.Walking() && c.d.Image.String() == c.s.TargetImage || !c.s.Walking() && c.s.Installed == c.d.Release)
		for _, other := range Tasks {
			beside := c.o.Jobs[other]
			goesOn = goesOn && (other == task || beside.Standing != Leaving && (beside.Standing == Absent || beside.finished()))
		}
		return goesOn && job.Standing == Current && job.Progress == Failed && !job.Revised
	}, func(c *situation) string {
		return unless(c.got.Step == Wait && c.got.Retry && c.got.Database.Trouble && slices.Contains(FailureReasons, c.got.Database.Reason) && strings.Contains(c.got.Database.Message, "delete Job"), "it goes on")
	}},
	{"an abort deletes, waits and ends, and ends only when no phase Job is left", func(c *situation) bool { return Aborts(c.s, c.d) && Check(c.s, c.d) == nil && !recovers(c) }, func(c *situation) string {
		if c.got.Step == RunJob {
			return "it starts schema work"
		}
		if c.got.Step != Move || c.got.Next.Installed == c.s.Target && c.s.Installed != c.s.Target {
			return ""
		}
		for _, task := range PhaseTasks {
			if job := c.o.Jobs[task]; job.ours() || job.Standing == Leaving {
				return "it ends with " + job.Name
			}
		}
		want := State{Installed: c.s.Installed, InstalledImage: c.s.InstalledImage, AbortedImage: c.s.TargetImage, Attempt: c.s.Attempt, Ahead: c.s.Ahead}
		if c.d.Facts.ReadsOwnSchemaOnly {
			want.Ahead = c.s.Target
		}
		return unless(c.o.Confirmed && c.got.Next == want, "it ends early, or elsewhere")
	}},
	{"pods stay on the installed image until migrate is complete, and a walk's pods stay where they are", func(c *situation) bool { return c.got.Serve != "" }, func(c *situation) string {
		rolled := c.o.Recorded != nil && c.o.Recorded.Target == c.s.Target && c.s.Target != "" && c.got.Serve == c.o.Recorded.TargetImage
		switch c.s.Phase {
		case RollingUpdate, Contracting:
			return unless(c.got.Serve == c.s.TargetImage, "pods leave the target")
		case Expanding, Migrating:
			return unless(c.got.Serve == c.s.InstalledImage || rolled, "pods roll early")
		default:
			return unless(c.got.Serve == c.s.InstalledImage, "pods roll without a record")
		}
	}},
	{"the condition speaks in whole and closed words", always, func(c *situation) string {
		db := c.got.Database
		progress, failure := slices.Contains(ProgressReasons, db.Reason), slices.Contains(FailureReasons, db.Reason)
		switch {
		case db.Message == "" || !progress && !failure && db.Reason != DatabaseSynced:
			return "no reason or no words"
		case db.Ready != (db.Reason == DatabaseSynced):
			return "ready and reason disagree"
		case failure && (!db.Trouble || c.got.Step != Wait && (c.s.Ahead == "" || c.got.Step != DeleteJob)):
			return "a failure that is no trouble"
		case !utf8.ValidString(db.Message) || strings.Contains(db.Message, "%!") || strings.Contains(db.Message, "\n"):
			return "the message is broken"
		case progress && c.s.Walking() && c.got.Step != Move && !strings.Contains(db.Message, c.s.Installed+" → "+c.s.Target):
			return "a walk without its releases"
		case failure && c.s.Ahead != "" && !c.s.Walking() && c.got.Rejection == nil && db.Reason == DowngradeNotSupported:
		case failure && (c.got.Rejection == nil) == (c.got.Database.Reason != c.o.Jobs[taskNow(c.s)].failedReason(taskNow(c.s))):
			return "a failure that is neither a rejection nor a failed Job"
		}
		return ""
	}},
}

func always(*situation) bool { return true }

func done(j Job) bool { return j.Standing == Current && j.Progress == Complete }

func (j Job) failedReason(task Task) Reason {
	if j.Standing == Current && j.Progress == Failed {
		return wordsOf[task].failed
	}
	return ""
}

func taskNow(s State) Task {
	if task, ok := PhaseTask(s.Phase); ok {
		return task
	}
	return Sync
}

func unless(holds bool, what string) string {
	if holds {
		return ""
	}
	return what
}

// recovers tells whether there is a lost status to recover first.
func recovers(c *situation) bool {
	return lost(c.s) && (c.o.Deployment.Standing != Absent || upgraded(c.o) != "")
}

func TestDecideHoldsItsInvariantsEverywhere(t *testing.T) {
	t.Parallel()
	const shares, enough = 2, 1
	var total atomic.Int64
	applied := make([]atomic.Int64, len(invariants))
	t.Run("sweep", func(t *testing.T) {
		for share := range shares {
			t.Run(fmt.Sprint(share), func(t *testing.T) {
				t.Parallel()
				failures := make([]int, len(invariants))
				everySituation(share, shares, func(c *situation) {
					total.Add(1)
					for i, law := range invariants {
						if failures[i] >= enough || !law.applies(c) {
							continue
						}
						applied[i].Add(1)
						if what := law.broken(c); what != "" {
							failures[i]++
							t.Errorf("%s: %s\n%s", law.says, what, c)
						}
					}
				})
			})
		}
	})
	for i, law := range invariants {
		t.Run(law.says, func(t *testing.T) {
			assert.NotZero(t, applied[i].Load(), "no situation puts it to the test")
			t.Logf("%d of %d situations", applied[i].Load(), total.Load())
		})
	}
}

func TestDecideNeverPanicsAndNeverBreaksAMessageForAnyText(t *testing.T) {
	t.Parallel()
	const rounds = 10_000
	texts := []string{"", " ", "\x00", "\xff\xfe", "２０２６.１", "2026.1", "2026.2", "9999.2", "0000.1", "2026.1\n", strings.Repeat("x", 5000), "%s%d%!", "→", "Expanding", "r:", "r@", ":", "r:2026.1", "r@sha256:a", "\u202e"}
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		if random.IntN(8) > 0 {
			return texts[random.IntN(len(texts))]
		}
		letters := make([]byte, random.IntN(12))
		for i := range letters {
			letters[i] = byte(random.Uint32())
		}
		return string(letters)
	}
	state := func() State {
		s := State{Installed: text(), Target: text(), Phase: Phase(text()), InstalledImage: text(), TargetImage: text(), AbortedImage: text(), Attempt: random.Int64() - random.Int64()}
		if random.IntN(2) == 0 {
			s.Phase = somePhases[random.IntN(len(somePhases))]
		}
		return s
	}
	for range rounds {
		s, d := state(), Desired{Release: text(), Generation: random.Int64()}
		d.Image.Repository, d.Image.Tag, d.Image.Digest = text(), text(), text()
		o := Observed{Confirmed: random.IntN(2) == 0, Jobs: map[Task]Job{}, Reported: Reason(text()), RecordedDone: random.IntN(2) == 0}
		if random.IntN(2) == 0 {
			noted := state()
			o.Recorded = &noted
		}
		for _, task := range append([]Task{Task(text())}, Tasks...) {
			o.Jobs[task] = Job{Name: text(), Standing: Standing([]string{text(), "Stale", "Current"}[random.IntN(3)]), Progress: Progress(text()), Note: text()}
		}
		o.Deployment = Deployment{Name: text(), Standing: Standing([]string{text(), "Current"}[random.IntN(2)]), Image: text(), Replicas: random.Int32() - random.Int32(), Outdated: []string{text()}, Release: text(), Releases: []string{text()}}
		got := Decide(s, d, o)
		assert.NotEmpty(t, got.Database.Message)
		assert.NotEmpty(t, got.Database.Reason, "%+v %+v", s, d)
		Advise(s, &d, d)
		Held(o.Deployment, text())
		WorkOf(s, d, Task(text()))
	}
	assert.NotPanics(t, func() { Decide(State{}, Desired{}, Observed{}) })
}
