package upgrade

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	upward     = asks("2026.2", "r:2026.2")
	backward   = asks("2026.1", "r:2026.1")
	documented = asks("2026.1", "r:2026.2")
	rebuilt    = asks("2026.2", "r:2026.2-p1")
	skipping   = asks("2027.1", "r:2027.1")
	patched    = asks("2026.1", "r:2026.1-p1")
	loss       = interference{"the status is lost", (*world).loseStatus}
	newConfig  = interference{"the configuration changes", (*world).reconfigure}
	cleanUp    = interference{"finished Jobs are deleted", (*world).deleteFinished}
)

// atRest2026 is a world at rest at 2026.1 with so many pods.
func atRest2026(image string, replicas int8) world {
	w := world{replicas: replicas, wish: Desired{Release: "2026.1", Image: ref(image), Generation: 1}}
	w.rest()
	return w
}

func TestEveryWalkEndsWhateverInterruptsItAndWhenever(t *testing.T) {
	t.Parallel()
	often := []interference{upward, backward, documented, rebuilt, loss, newConfig, cleanUp}
	once := append(slices.Clone(often), skipping, patched)
	for _, c := range []struct {
		replicas, interruptions, failures int8
		acts                              []interference
	}{{1, 2, 1, often}, {2, 1, 1, once}} {
		w := atRest2026("r:2026.1", c.replicas)
		upward.do(&w)
		w.people, w.failures = c.interruptions, c.failures
		explore((*world).unsettled, c.acts...).from("an upgrade is asked for", w).report(t)
	}
}

func TestAFreshInstallEndsWhateverInterruptsIt(t *testing.T) {
	t.Parallel()
	w := world{replicas: 1, wish: wish("2026.1", "r:2026.1"), people: 2, failures: 1}
	explore((*world).unsettled, patched, newConfig, cleanUp, loss).from("an install is asked for", w).report(t)
}

func TestAnAbortAtAnyMomentLeavesNoPhaseJobNoPodOfOneAndNoTarget(t *testing.T) {
	t.Parallel()
	clean := func(w *world) string {
		if w.wish.Release != "2026.1" || w.state.Installed != "2026.1" {
			return w.unsettled() // nobody aborted, or contract was complete before
		}
		for _, task := range PhaseTasks {
			if w.job(task).exists {
				return "a phase Job is left"
			}
		}
		pods := w.api.observe(w.config, int32(w.replicas))
		return unless(w.state.Target == "" && w.state.Phase == Steady && Held(pods, w.state.InstalledImage) == "", "the abort is not whole")
	}
	// The tag is set back with the release, or left behind at the target, also
	// where it names no release; then it is set back later, or never.
	for _, c := range []struct{ from, to string }{{"r:2026.1", "r:2026.2"}, {"r:stable", "r:next"}} {
		w := atRest2026(c.from, 1)
		w.ask("2026.2", c.to)
		w.reconcile()
		w.people, w.failures = 2, 1
		explore(func(w *world) string {
			if what := clean(w); what != "" {
				return what
			}
			if w.wish.Release == "2026.1" && w.wish.Image == ref(c.to) && w.state.Installed == "2026.1" {
				return unless(w.reported == ImageReleaseMismatch, "the tag left at the target is not held")
			}
			return w.unsettled()
		}, asks("2026.1", c.from), asks("2026.1", c.to)).from("an upgrade has begun", w).report(t)
	}
}

func TestAFailedJobIsRepairedByDeletionOrRevision(t *testing.T) {
	t.Parallel()
	failed := func(w *world) (found bool) {
		for _, job := range w.jobs {
			found = found || job.progress == Failed
		}
		return found
	}
	for _, repair := range []interference{cleanUp, newConfig, rebuilt} {
		w := atRest2026("r:2026.1", 1)
		upward.do(&w)
		w.people, w.failures = 1, 1
		repairs := interference{repair.says, func(w *world) {
			if failed(w) {
				repair.do(w)
			}
		}}
		explore(func(w *world) string {
			if w.people > 0 && w.failures == 0 {
				return unless(failed(w), "it goes on although nobody has repaired anything")
			}
			if failed(w) {
				return "it is repaired and still failed"
			}
			return w.unsettled()
		}, repairs).from("an upgrade is asked for", w).report(t)
	}
}

// TestFromAnyLegalStateTheWalkEnds puts worlds together from their parts
// instead of walking there: each phase, each class of Job, stages of a rollout.
func TestFromAnyLegalStateTheWalkEnds(t *testing.T) {
	t.Parallel()
	e := explore((*world).unsettled)
	begun, rebuiltBefore := 0, upgrading(RollingUpdate)
	rebuiltBefore.Attempt, rebuiltBefore.TargetImage = 1, "r:2026.2-p1"
	for _, phase := range append([]Phase{Steady}, Phases...) {
		for _, api := range deploymentsPlayed(rebuiltBefore) {
			if (phase == Expanding || phase == Migrating) && api.note.Attempt == 2 {
				continue // these pods roll later
			}
			for _, act := range []interference{upward, backward, rebuilt} {
				w := world{replicas: 1, config: 1, api: api, wish: wish("2026.2", "r:2026.2"), state: upgrading(phase)}
				w.state.Attempt = 2
				if phase == Steady {
					w.state = installed("2026.1", "r:2026.1")
				}
				w.schema = map[Phase]schema{
					Steady: {"2026.1", "2026.1", "2026.1"}, Expanding: {"2026.2", "2026.1", "2026.1"},
				}[phase]
				if w.schema == (schema{}) || api.exists && api.image != "r:2026.1" {
					w.schema = schema{"2026.2", "2026.2", "2026.1"}
				}
				act.do(&w)
				for _, jobs := range jobsPlayed(&w) {
					begin := w
					if begin.jobs = jobs; begin.legal() {
						begun++
						e.from(fmt.Sprintf("%q, %s", phase, act.says), begin)
					}
				}
			}
		}
	}
	t.Logf("from %d states", begun)
	e.report(t)
	assert.Greater(t, begun, 3000)
}

// legal tells whether no Job that is still to run, or runs, would be wrong.
func (w *world) legal() bool {
	if w.wrong() != "" {
		return false
	}
	rolledOut := Held(w.api.observe(w.api.config, int32(w.replicas)), w.state.TargetImage) == ""
	contract := w.job(Contract)
	contracts := contract.exists && !contract.foreign && contract.work.To == "2026.2"
	if contracts && contract.work != WorkOf(w.state, w.asked(), Contract) {
		return false
	}
	sync := w.job(Sync)
	if sync.exists && !sync.foreign && sync.progress != Complete && w.state.Phase != Steady && w.state.Phase != Expanding {
		return false
	}
	if !rolledOut && (contracts || w.state.Phase == Contracting) || contracts && w.state.Phase != RollingUpdate && w.state.Phase != Contracting {
		return false
	}
	for i, job := range w.jobs {
		alone := *w
		alone.jobs = [4]playedJob{}
		if alone.jobs[i] = job; job.progress == Pending {
			alone.jobs[i].progress = Running
		}
		if alone.wrong() != "" {
			return false
		}
		if task := Tasks[i]; job.exists && !job.foreign && (job.progress == Ending || job.progress == Complete) && job.work == WorkOf(w.state, w.asked(), task) {
			alone.schema.after(task, truth[job.work.Image])
			if alone.schema != w.schema && task != Sync {
				w.schema = alone.schema
			}
		}
	}
	return w.wrong() == ""
}

// deploymentsPlayed are stages on the way from one image to the other.
func deploymentsPlayed(note State) []playedDeployment {
	const before, after = "r:2026.1", "r:2026.2"
	all := []playedDeployment{{}, {exists: true, seen: true, image: before, config: 1, pods: [6]playedPod{{image: before, config: 1, stage: ready}}}}
	rolled := upgrading(RollingUpdate)
	rolled.Attempt = 2
	for _, pods := range [][6]playedPod{
		{{image: after, config: 1, stage: ready}},
		{{image: before, config: 1, stage: terminating}, {image: after, config: 1, stage: ready}},
	} {
		all = append(all, playedDeployment{exists: true, seen: true, image: after, config: 1, note: rolled, pods: pods})
	}
	again := playedDeployment{exists: true, image: "r:2026.2-p1", config: 1, note: note, pods: [6]playedPod{{image: "r:2026.2-p1", config: 1, stage: ready}}}
	all[1].note = installed("2026.1", before)
	return append(all, again)
}

// jobsPlayed shows the task's own Job in every class and one other in some.
func jobsPlayed(w *world) [][4]playedJob {
	var all [][4]playedJob
	own := taskNow(w.state)
	for _, job := range classesPlayed(w, own, Pending, Running, Ending, Complete, Failed) {
		for i, other := range Tasks {
			for j, beside := range classesPlayed(w, other, Pending, Running, Complete) {
				if other == own || j == 0 && i > 1 {
					continue
				}
				played := world{}
				*played.job(own), *played.job(other) = job, beside
				all = append(all, played.jobs)
			}
		}
	}
	return all
}

func classesPlayed(w *world, task Task, progress ...Progress) []playedJob {
	work := WorkOf(w.state, w.asked(), task)
	stale, last := work, Work{Task: task, From: "2025.2", To: "2026.1", Image: "r:2026.1"}
	stale.Attempt--
	all := []playedJob{{}, {exists: true, leaving: true, work: stale, progress: Running}}
	for _, p := range progress {
		if p == Complete || p == Failed {
			stale = last
		}
		all = append(all, playedJob{exists: true, work: stale, progress: p, config: 1}, playedJob{exists: true, work: work, progress: p, config: 1})
	}
	if slices.Contains(progress, Failed) {
		all = append(all, playedJob{exists: true, foreign: true, progress: Running},
			playedJob{exists: true, work: work, progress: Pending}, playedJob{exists: true, work: work, progress: Failed})
	}
	return all
}

// TestChanceFindsNoWrongWorld lets many hands and accidents interfere with
// larger Deployments, and lets things happen between a look and the deed.
func TestChanceFindsNoWrongWorld(t *testing.T) {
	t.Parallel()
	t.Run("a release beside the image", func(t *testing.T) {
		meetChance(t, []interference{upward, backward, documented, rebuilt, skipping, patched, asks("2026.1", "r:stable"), newConfig, cleanUp, loss}, func(random *rand.Rand) world {
			return atRest2026("r:2026.1", int8(1+random.IntN(3)))
		})
	})
	t.Run("a release by tag", func(t *testing.T) {
		starts := []string{"r:2026.1", "r@sha256:a", "r:2026.1@sha256:a", "r:stable"}
		// What an image is that was refused in a walk cannot be told any more once the walk is forgotten.
		toldLoss := interference{loss.says, func(w *world) {
			if w.asked().Release != Unknown {
				loss.do(w)
			}
		}}
		meetChance(t, []interference{turns("r:2026.2"), turns("r:2026.1"), turns("r:2026.2-p1"), turns("r:2026.1-p1"), turns("r:2027.1"), trusted("r@sha256:a"), trusted("r@sha256:c"),
			turns("r:2026.1@sha256:a"), turns("r:2026.2@sha256:b"), newConfig, cleanUp, toldLoss, restored()}, func(random *rand.Rand) world {
			return keyedAtRest(starts[random.IntN(len(starts))], int8(1+random.IntN(3)))
		})
	})
}

func meetChance(t *testing.T, acts []interference, begin func(*rand.Rand) world) {
	t.Helper()
	const walks, steps, interruptions = 150, 120, 6
	seed := rand.Uint64()
	if text := os.Getenv("WALK_SEED"); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		seed = given
	}
	t.Logf("WALK_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for range walks {
		w := begin(random)
		w.failures = int8(random.IntN(3))
		said := []string{w.wish.Image.String()}
		happened := func(what string) {
			said = append(said, what)
			require.Empty(t, w.wrong(), "WALK_SEED=%d: %s\n%+v", seed, strings.Join(said, "; "), w)
		}
		move := func() {
			if happenings := w.happenings(); len(happenings) > 0 {
				h := happenings[random.IntN(len(happenings))]
				w = h.then
				happened(h.says)
			}
		}
		for range steps {
			switch chance := random.IntN(steps); {
			case chance < interruptions:
				act := acts[random.IntN(len(acts))]
				act.do(&w)
				happened(strings.ToUpper(act.says))
			case chance < steps/4:
				seen, o := w, w.observe()
				decision := Decide(w.state, w.asked(), o)
				for range 1 + random.IntN(3) {
					move()
				}
				if w.allows(decision, &seen) {
					w.apply(decision, o)
					happened("late " + string(decision.Step) + " " + string(decision.Task))
				}
			default:
				move()
			}
		}
		w.failures = 0
		for range 1000 {
			if happenings := w.happenings(); len(happenings) == 0 {
				break
			}
			move()
		}
		require.Empty(t, w.unsettled(), "WALK_SEED=%d: %s\n%+v", seed, strings.Join(said, "; "), w)
	}
}

// allows plays the API server: a write is refused when what it is about has
// changed since it was seen: deletes carry the resource version, because a
// contract that was running may be complete by now.
func (w *world) allows(decision Decision, seen *world) bool {
	if w.state != seen.state || w.wish != seen.wish {
		return false
	}
	if decision.Step == RunJob && w.job(decision.Task).exists {
		return false
	}
	for _, task := range decision.Delete {
		if *w.job(task) != *seen.job(task) {
			return false
		}
	}
	return decision.Serve == "" || w.api.image == seen.api.image
}
