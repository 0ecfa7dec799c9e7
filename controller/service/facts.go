package service

import (
	"fmt"
	"maps"
	"slices"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// Facts are what the machine must know of an OpenStack service to walk it from
// one release to the next. They are data: nothing in them does anything.
//
// The table holds more than the machine walks today, so that it need not change
// its shape for the services to come. Unwalked tells which part that is.
type Facts struct {
	// Upgrade is what the planner must know.
	Upgrade upgrade.Facts
	// ReleaseField is the field of the spec that names the release, empty where
	// the tag of the image does.
	ReleaseField string
	// Sync brings a schema to a release in one pass: on the first installation,
	// for a patch, and after an upgrade.
	Sync Step
	// Phases are the steps of a walk. A phase that is missing runs no Job.
	Phases map[upgrade.Phase]Step
	// Rollout lists the Deployments by component, in the order in which they
	// are rolled: one is complete before the next begins.
	Rollout []string
}

// Step is a piece of schema work: command lines that run one after the other
// in one Job, and what their exit codes mean.
type Step struct {
	Commands [][]string
	// Exits are the exit codes other than 0 that mean something else than
	// Failure.
	Exits map[int]Meaning
	// OnlyIf is a command line that is asked first: the step runs only when it
	// exits 0, and is held back otherwise.
	OnlyIf []string
}

// Meaning is what an exit code says.
type Meaning string

// What a command may say by its exit code.
const (
	// Done is what 0 always means.
	Done Meaning = "done"
	// Failure is retried by the Job and then reported.
	Failure Meaning = "failure"
	// Again means that a part is done and the command is to be called again.
	Again Meaning = "again"
	// Stuck means that calling again is of no use: a person is needed.
	Stuck Meaning = "stuck"
)

// Means is the meaning of an exit code of the step.
func (s Step) Means(exit int) Meaning {
	if exit == 0 {
		return Done
	}
	if meaning, told := s.Exits[exit]; told {
		return meaning
	}
	return Failure
}

func (s Step) unwalked(what string) []string {
	var found []string
	if s.OnlyIf != nil {
		found = append(found, what+" only if a command agrees")
	}
	for _, exit := range slices.Sorted(maps.Keys(s.Exits)) {
		if s.Means(exit) != Failure {
			found = append(found, fmt.Sprintf("%s: exit code %d means %s", what, exit, s.Means(exit)))
		}
	}
	return found
}

// Side is where a step stands to the rolling update.
type Side string

// Before the rolling update pods of the old release serve, after it pods of
// the new one.
const (
	Before Side = "before the rolling update"
	During Side = "the rolling update itself"
	After  Side = "after the rolling update"
)

// SideOf is the side that a phase runs on.
func SideOf(phase upgrade.Phase) Side {
	switch phase {
	case upgrade.RollingUpdate:
		return During
	case upgrade.Contracting:
		return After
	case upgrade.Steady, upgrade.Expanding, upgrade.Migrating:
	}
	return Before
}

// Tasks are the command lines by the task that a Job is made for.
func (f Facts) Tasks() map[upgrade.Task][][]string {
	tasks := map[upgrade.Task][][]string{upgrade.Sync: f.Sync.Commands}
	for phase, step := range f.Phases {
		if task, ok := upgrade.PhaseTask(phase); ok {
			tasks[task] = step.Commands
		}
	}
	return tasks
}

// Faults lists what makes no sense in the facts.
func (f Facts) Faults() []string {
	var found []string
	fault := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	judge := func(what string, step Step) {
		if len(step.Commands) == 0 {
			fault("%s has no command: leave the phase out if it runs no Job", what)
		}
		for _, command := range append(slices.Clone(step.Commands), step.OnlyIf) {
			if step.OnlyIf == nil && command == nil {
				continue
			}
			if len(command) == 0 || slices.Contains(command, "") {
				fault("%s has a command with an empty word", what)
			}
		}
		for exit, meaning := range step.Exits {
			if exit < 1 || exit > 255 || !slices.Contains([]Meaning{Failure, Again, Stuck}, meaning) {
				fault("%s: exit code %d cannot mean %q", what, exit, meaning)
			}
		}
	}
	judge("the sync", f.Sync)
	for _, phase := range slices.Sorted(maps.Keys(f.Phases)) {
		if _, ok := upgrade.PhaseTask(phase); !ok {
			fault("phase %q runs no Job", phase)
			continue
		}
		judge("phase "+string(phase), f.Phases[phase])
	}
	if len(f.Rollout) == 0 {
		fault("nothing is rolled")
	}
	for i, component := range f.Rollout {
		if component == "" || slices.Contains(f.Rollout[:i], component) {
			fault("component %q is rolled twice, or has no name", component)
		}
	}
	return found
}

// Unwalked lists what the facts ask for that the machine does not do yet. A
// service with an empty list can be added with nothing but its facts and its
// rendering.
func (f Facts) Unwalked() []string {
	found := f.Sync.unwalked("the sync")
	for _, phase := range upgrade.Phases {
		step, runs := f.Phases[phase]
		if _, wanted := upgrade.PhaseTask(phase); wanted && !runs {
			found = append(found, fmt.Sprintf("phase %s without a Job", phase))
		}
		found = append(found, step.unwalked("phase "+string(phase))...)
	}
	if len(f.Rollout) > 1 {
		found = append(found, fmt.Sprintf("%d Deployments rolled in order", len(f.Rollout)))
	}
	return found
}
