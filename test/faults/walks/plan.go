package walks

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/faults/history"
)

// Deed is one thing that people or accidents do. What it comes to depends on what is recorded when it is done.
type Deed string

// Edits of the wish.
const (
	Upgrade     Deed = "upgrade to the next release"
	Patch       Deed = "another build of what is installed"
	Rebuild     Deed = "another build of the target"
	Revert      Deed = "back to what is installed"
	ReleaseBack Deed = "the release alone back"
	Skip        Deed = "skip a release"
	Downgrade   Deed = "a release back from what is installed"
	Third       Deed = "a third release"
	Mismatch    Deed = "a release without its image"
	Garbage     Deed = "no release at all"
)

// Everything else.
const (
	Scale    Deed = "other replicas"
	Label    Deed = "a label"
	Recreate Deed = "delete and create again"
	HookOff  Deed = "webhook off"
	HookOn   Deed = "webhook on"
	Fail     Deed = "pods fail"
	Hang     Deed = "pods hang"
	Heal     Deed = "pods behave, failed Jobs are deleted"
	Crash    Deed = "crash"
	Conflict Deed = "conflicts"
	Freeze   Deed = "stale view"
	Thaw     Deed = "view thawed"
	Blind    Deed = "watch cut"
	See      Deed = "watch back"
	Wipe     Deed = "status lost"
)

// Until is what is waited for after a deed.
type Until string

// What can be waited for; a phase is another.
const (
	AMoment Until = "a moment"
	Rest    Until = "rest"
)

// Step is a deed and the wait after it.
type Step struct {
	Deed Deed
	// Task is whose pods misbehave, empty for the API; Resource is whose view is disturbed; Times is how often.
	Task     upgrade.Task
	Resource string
	Times    int
	// Build tells images of one release apart.
	Build int
	Until Until
	// AtMost is how long to wait.
	AtMost time.Duration
}

// Walk is a seeded sequence.
type Walk struct {
	Seed    uint64
	Service string
	// ByDigest has images named by digest: alone where the release is asked for beside it, else with the tag.
	ByDigest bool
	Replicas int32
	Steps    []Step
	// Onward is whether the repair goes on with a walk that is under way, and upgrades what is at rest.
	Onward bool
}

const (
	fewest, most = 4, 8
	// phaseWait bounds the wait for a phase that may never come.
	phaseWait = 8 * time.Second
)

// weighted are the deeds by how often chance takes them.
var weighted = []struct {
	deed   Deed
	weight int
}{
	{Upgrade, 26}, {Patch, 6}, {Rebuild, 6}, {Revert, 9}, {ReleaseBack, 4}, {Skip, 4}, {Downgrade, 4}, {Third, 4}, {Mismatch, 4}, {Garbage, 3},
	{Scale, 3}, {Label, 2}, {Recreate, 4}, {HookOff, 5}, {HookOn, 4}, {Fail, 7}, {Hang, 7}, {Heal, 5}, {Crash, 10}, {Conflict, 6},
	{Freeze, 9}, {Blind, 6}, {Wipe, 7},
}

// New is the walk of a seed.
func New(seed uint64) Walk {
	random := rand.New(rand.NewPCG(seed, 0x77a1c5))
	w := Walk{Seed: seed, Service: history.Glance, ByDigest: random.IntN(5) == 0, Replicas: int32(1 + random.IntN(2)), Onward: random.IntN(2) == 0}
	if random.IntN(2) == 0 {
		w.Service = history.Keystone
	}
	undo := map[Deed]Deed{Freeze: Thaw, Blind: See}
	for range fewest + random.IntN(most-fewest+1) {
		step := w.chance(random)
		w.Steps = append(w.Steps, step)
		back, disturbs := undo[step.Deed]
		if !disturbs {
			continue
		}
		// Something happens while the view is disturbed, and then it is not any more.
		w.Steps = append(w.Steps, w.happens(random), Step{Deed: back, Resource: step.Resource, Until: AMoment, AtMost: moment(random)})
	}
	return w
}

// happens is a step that disturbs no view.
func (w Walk) happens(random *rand.Rand) Step {
	for {
		if step := w.chance(random); step.Deed != Freeze && step.Deed != Blind {
			return step
		}
	}
}

func (w Walk) chance(random *rand.Rand) Step {
	total := 0
	for _, each := range weighted {
		total += each.weight
	}
	step, at := Step{Until: AMoment, AtMost: moment(random), Build: 1 + random.IntN(3)}, random.IntN(total)
	for _, each := range weighted {
		if at -= each.weight; at < 0 {
			step.Deed = each.deed
			break
		}
	}
	switch step.Deed {
	case Upgrade:
		step.Build = random.IntN(2)
		step.Until, step.AtMost = w.somewhere(random), phaseWait
	case Rebuild, Patch:
		if random.IntN(2) == 0 {
			step.Until, step.AtMost = w.somewhere(random), phaseWait
		}
	case Fail, Hang:
		step.Task = append([]upgrade.Task{""}, upgrade.Tasks...)[random.IntN(1+len(upgrade.Tasks))]
	case Conflict:
		step.Times = []int{1, 3, 10}[random.IntN(3)]
	case Freeze, Blind:
		step.Resource = []string{"pods", "jobs", "deployments", w.Service + "s", "*"}[random.IntN(5)]
	default:
	}
	return step
}

// somewhere is where a walk is to be met by what follows.
func (w Walk) somewhere(random *rand.Rand) Until {
	places := []Until{Rest, AMoment}
	for _, phase := range upgrade.Phases {
		places = append(places, Until(phase))
	}
	return places[random.IntN(len(places))]
}

func moment(random *rand.Rand) time.Duration {
	return time.Duration(random.IntN(15)) * 100 * time.Millisecond
}

// String is the walk as a list of what is done.
func (w Walk) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "walk %d: %s, by digest %t, %d replicas, onward %t\n", w.Seed, w.Service, w.ByDigest, w.Replicas, w.Onward)
	for i, step := range w.Steps {
		fmt.Fprintf(&out, "  %2d. %s\n", i+1, step)
	}
	return out.String()
}

// String is the deed with what it is about.
func (s Step) String() string {
	text := string(s.Deed)
	switch s.Deed {
	case Fail, Hang:
		text += " of " + component(s.Task)
	case Freeze, Thaw, Blind, See:
		text += " of " + s.Resource
	case Conflict:
		text += fmt.Sprintf(" %d in a row", s.Times)
	default:
	}
	return fmt.Sprintf("%s, then %s (%s)", text, s.Until, s.AtMost)
}

func component(task upgrade.Task) string {
	if task == "" {
		return "api"
	}
	return string(task)
}
