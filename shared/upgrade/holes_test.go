package upgrade

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/test/faults/share"
)

// hole is a planner with something wrong with it, or a controller that asks it with wrong answers: the model must find
// what that leads to. steps is the length of the shortest way there.
type hole struct {
	says   string
	decide planner
	in     exploration
	found  string
	steps  int
}

// seeing is Decide with another view of what was observed.
func seeing(change func(*Observed)) planner {
	return func(s State, d Desired, o Observed) Decision {
		o.Jobs = maps.Clone(o.Jobs)
		change(&o)
		return Decide(s, d, o)
	}
}

// deciding is Decide with another decision.
func deciding(change func(s State, d Desired, o Observed, got *Decision)) planner {
	return func(s State, d Desired, o Observed) Decision {
		got := Decide(s, d, o)
		change(s, d, o, &got)
		return got
	}
}

func holes() []hole {
	plain := exploration{begins: upgraded2026(1)}
	aborted := exploration{begins: upgraded2026(1), acts: []interference{backward}, people: 1}
	taken := exploration{begins: upgraded2026(1), acts: []interference{backward}, people: 1, kills: 1, stops: 1, trusts: true}
	twice := exploration{begins: upgraded2026(1), acts: []interference{upward, backward}, people: 2, stops: 1, forgets: true}
	return []hole{
		{"old pods are not seen", seeing(func(o *Observed) { o.Deployment.Outdated = nil }), plain, "db-contract of 2026.2 runs while a pod of 2026.1 lives", 19},
		{"Deployments are always finished", seeing(func(o *Observed) {
			d := &o.Deployment
			d.Unobserved, d.Total, d.Updated, d.Available, d.Outdated = false, d.Replicas, d.Replicas, d.Replicas, nil
		}), plain, "db-contract of 2026.2 runs while a pod of 2026.1 lives", 15},
		{"caches are believed", seeing(func(o *Observed) { o.Confirmed = true }), exploration{begins: world{replicas: 1, wish: wish("2026.1", "r:2026.1")}, opens: "rollout", acts: []interference{upward}, people: 1, stops: 1}, "lives", 28},
		{"a Job that is going is gone", seeing(func(o *Observed) {
			maps.DeleteFunc(o.Jobs, func(_ Task, job Job) bool { return job.Standing == Leaving })
		}), aborted, "side by side", 8},
		{"a Job of other work counts", seeing(func(o *Observed) {
			for task, job := range o.Jobs {
				if job.Standing == Stale {
					job.Standing = Current
					o.Jobs[task] = job
				}
			}
		}), exploration{begins: upgraded2026(1), acts: []interference{rebuilt}, people: 1}, "a bad end", 23},
		{"the release of pods is not seen", seeing(func(o *Observed) { o.Deployment.Release, o.Deployment.Releases = "", nil }), aborted, "db-sync of 2026.1 runs while a pod of 2026.2 lives", 20},
		{"what the schema is ahead for is forgotten", deciding(func(_ State, _ Desired, _ Observed, got *Decision) { got.Next.Ahead = "" }),
			exploration{begins: upgradedKeyed(), opens: keyedOpening, acts: []interference{turns("r:2026.1")}, people: 1}, "sync of 2026.1 runs on a schema that 2026.2 has expanded", 11},
		{"migrate is left out", deciding(func(_ State, _ Desired, _ Observed, got *Decision) {
			if got.Next.Phase == Migrating {
				got.Next.Phase = RollingUpdate
			}
		}), plain, "a pod of 2026.2 lives on a schema of", 9},
		{"an abort forgets a contract that is done", deciding(func(s State, d Desired, _ Observed, got *Decision) {
			if Aborts(s, d) && got.Step == Move {
				got.Next = s.atRest()
			}
		}), aborted, "a pod of 2026.1 lives on a schema of", 27},
		{"a failed Job is said to be fine", deciding(func(_ State, _ Desired, _ Observed, got *Decision) {
			if got.Retry {
				got.Database.Reason = ExpandInProgress
			}
		}), exploration{begins: upgraded2026(1), failures: 1}, "a bad end", 4},
		{"migrate is never run", deciding(func(_ State, _ Desired, _ Observed, got *Decision) {
			if got.Task == Migrate {
				got.Step, got.Task = Wait, ""
			}
		}), plain, "a bad end", 6},
		{"a walk that waits begins anew", deciding(func(s State, _ Desired, o Observed, got *Decision) {
			if s.Phase == Migrating && o.Jobs[Migrate].Standing == Absent {
				*got = Decision{Step: Move, Next: upgrading(Expanding), Database: Report{Reason: ExpandInProgress}}
				got.Next.Attempt = s.Attempt
			}
		}), plain, "circles", 5},
		// So was the controller, until the model showed where it leads.
		{"caches are believed after a hand-over", Decide, taken, "db-sync of 2026.1 runs while a pod of 2026.2 lives", 34},
		{"our own Job is forgotten", Decide, twice, "side by side", 9},
	}
}

func TestTheModelFindsEveryKindOfHole(t *testing.T) {
	t.Parallel()
	for _, h := range holes() {
		t.Run(h.says, func(t *testing.T) {
			t.Parallel()
			if whole := h.in; !h.in.forgets && !h.in.trusts || share.Whole() {
				whole.forgets, whole.trusts = false, false
				require.Empty(t, whole.by(Decide).problem, "without the hole nothing is wrong")
			}
			m := h.in.by(h.decide)
			assert.Contains(t, m.problem, h.found)
			assert.Len(t, m.shortest, h.steps)
			golden := filepath.Join("testdata", "holes", strings.ReplaceAll(h.says, " ", "-")+".plan")
			got := strings.ReplaceAll(h.in.plan(m.shortest), "; ", "\n") + "\n"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err, "write it with: go test ./shared/upgrade -run EveryKindOfHole -update")
			assert.Equal(t, string(want), got, "if this is meant: go test ./shared/upgrade -run EveryKindOfHole -update")
		})
	}
}
