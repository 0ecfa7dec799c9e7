package upgrade

import (
	"github.com/c5c3/openstack-upgrade/shared/image"
	"github.com/c5c3/openstack-upgrade/shared/release"
)

// Phase is where a walk stands. The empty phase means that no walk is active.
type Phase string

// The four phases, in the order of the walk.
const (
	Steady        Phase = ""
	Expanding     Phase = "Expanding"
	Migrating     Phase = "Migrating"
	RollingUpdate Phase = "RollingUpdate"
	Contracting   Phase = "Contracting"
)

// Phases lists the walk in order.
var Phases = []Phase{Expanding, Migrating, RollingUpdate, Contracting}

// next is the walk itself; what follows Contracting is promotion.
var next = map[Phase]Phase{
	Expanding:     Migrating,
	Migrating:     RollingUpdate,
	RollingUpdate: Contracting,
}

// Task names one piece of schema work by the suffix of its Job.
type Task string

// The tasks. Sync is the one-pass schema sync of the steady path; the other
// three belong to the phase that PhaseTask gives.
const (
	Sync     Task = "db-sync"
	Expand   Task = "db-expand"
	Migrate  Task = "db-migrate"
	Contract Task = "db-contract"
)

// Tasks lists all of them; PhaseTasks the three of a walk.
var (
	Tasks      = []Task{Sync, Expand, Migrate, Contract}
	PhaseTasks = []Task{Expand, Migrate, Contract}
)

// taskOf is the task of each phase that runs one.
var taskOf = map[Phase]Task{Expanding: Expand, Migrating: Migrate, Contracting: Contract}

// PhaseTask is the task that a phase runs; RollingUpdate runs none.
func PhaseTask(p Phase) (Task, bool) {
	task, ok := taskOf[p]
	return task, ok
}

// State is what the status records. Texts are kept as recorded, because a
// status can be edited or restored from anywhere; Check says when one cannot
// be read.
type State struct {
	// Installed is the release that the schema and the pods are at, empty
	// before the first install, Unnamed when no image has ever told. Target is
	// the release walked to.
	Installed string
	Target    string
	Phase     Phase
	// InstalledImage serves Installed; TargetImage is pinned for the walk.
	InstalledImage string
	TargetImage    string
	// AbortedImage is the target image of the last aborted walk. With a tag
	// that names no release nothing else tells that it is not a build of
	// Installed. Where tags alone tell releases it is, after a walk that went
	// through, the image from before, if it can be asked for without a tag.
	AbortedImage string
	// Ahead is the release that the schema has been, or is being, expanded for,
	// where the tools of Installed cannot read such a schema: set when a walk
	// begins, kept by its abort, empty once a walk is promoted.
	Ahead string
	// Attempt tells walks apart: the object generation that began the last
	// walk or made it re-enter at Expanding, or one more than the attempt
	// before where that is higher. Jobs carry it.
	Attempt int64
	// ContractBegun is set when a walk was started over after its contract had
	// begun: from then on its abort is as dangerous as in Contracting.
	ContractBegun bool
}

// Desired is what the spec asks for.
type Desired struct {
	Release string
	Image   image.Reference
	// Generation is the object's metadata.generation.
	Generation int64
	// ByTag is set when Release was read from the tag of the image (Tagged), so
	// that nothing but the image can be changed.
	ByTag bool
	// Facts are those of the service.
	Facts Facts
}

// Facts are what the planner must know of a service. The zero value is a
// service whose tools can read what the next release has expanded.
type Facts struct {
	// ReadsOwnSchemaOnly is set when the tools of a release fail on a schema that
	// the next release has expanded. Its pods go on serving; but after an abort
	// nothing may be synced until the walk is taken up again.
	ReadsOwnSchemaOnly bool
}

// Walking tells whether a walk is active.
func (s State) Walking() bool { return s.Phase != Steady }

// contracting tells whether contract has begun in the active walk.
func (s State) contracting() bool { return s.Phase == Contracting || s.ContractBegun }

// atRest is the state without its walk.
func (s State) atRest() State {
	return State{Installed: s.Installed, InstalledImage: s.InstalledImage, AbortedImage: s.AbortedImage, Ahead: s.Ahead, Attempt: s.Attempt}
}

// serves is the image that API pods run according to the record alone.
func (s State) serves() string {
	switch s.Phase {
	case RollingUpdate, Contracting:
		return s.TargetImage
	case Steady, Expanding, Migrating:
	}
	return s.InstalledImage
}

// equal compares two releases. Unnamed is equal to itself, a text that cannot
// be read to nothing.
func equal(a, b string) bool {
	if a == Unnamed || b == Unnamed {
		return a == b
	}
	left, errLeft := release.Parse(a)
	right, errRight := release.Parse(b)
	return errLeft == nil && errRight == nil && left == right
}
