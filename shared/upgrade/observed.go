package upgrade

// Observed is what was seen in the cluster, reduced to what a decision needs.
type Observed struct {
	// Jobs by task; a task that is missing here has no Job and no pod of one.
	Jobs       map[Task]Job
	Deployment Deployment
	// Recorded is the Note found on our Deployment, nil when there is none.
	// RecordedDone is set when a Job of ours is Complete that did the contract
	// of the walk noted there: WorkOf(*Recorded, …, Contract).
	Recorded     *State
	RecordedDone bool
	// Confirmed is set when it was read past any cache that no phase Job and no
	// pod of one is left but those in Jobs, and what pods Deployment lists.
	Confirmed bool
	// Reported is the reason that the DatabaseReady condition carries for this
	// generation of the object, and Ready its status.
	Reported Reason
	Ready    bool
}

// Standing says whose a Job is and whether it counts.
type Standing string

// A Job counts only while it is Current.
const (
	// Absent: neither a Job nor a pod of one.
	Absent Standing = ""
	// Foreign: the name is taken by something that this object does not own.
	Foreign Standing = "Foreign"
	// Leaving: ours and being deleted, or gone with pods left behind.
	Leaving Standing = "Leaving"
	// Stale: ours, for other work than the one to do now.
	Stale Standing = "Stale"
	// Current: ours, for exactly the work to do now.
	Current Standing = "Current"
)

// Progress says how far a Job is.
type Progress string

// Only Complete and Failed are final.
const (
	// Pending: no container of it has run yet.
	Pending Progress = "Pending"
	// Running: a pod has started, or retries are left.
	Running Progress = "Running"
	// Ending: a pod has succeeded, and the Job is about to be Complete.
	Ending   Progress = "Ending"
	Complete Progress = "Complete"
	Failed   Progress = "Failed"
)

// Unknown stands for the release of a pod that does not tell.
const Unknown = "an unknown release"

// Job is one Job as seen.
type Job struct {
	Name     string
	Standing Standing
	Progress Progress
	// Owner says whose a Foreign one is, empty when that cannot be told.
	Owner string
	// Revised is set when the Job would be rendered differently now, in ways
	// that do not change its work (resources, placement, configuration).
	Revised bool
	// Stuck is set while none of its containers runs and one cannot start,
	// though others may have ended.
	Stuck bool
	// Note says in words what the Job waits for, or why it failed.
	Note string
	// Trouble is set when Note is about something that will not pass by itself.
	Trouble bool
}

func (j Job) ours() bool     { return j.Standing == Stale || j.Standing == Current }
func (j Job) finished() bool { return j.Progress == Complete || j.Progress == Failed }

// idle tells whether the Job has work left and does none of it, so that to
// delete it interrupts nothing.
func (j Job) idle() bool { return j.Progress == Pending || j.Progress == Running && j.Stuck }

// Deployment is the Deployment of the API as seen, with its pods.
type Deployment struct {
	Name     string
	Standing Standing // Absent, Foreign, Leaving or Current
	// Owner says whose a Foreign one is, empty when that cannot be told.
	Owner string
	// Image is the one in its template, and Release the one that the template
	// was rendered for.
	Image   string
	Release string
	Paused  bool
	// Unobserved is set while its controller has not seen the newest template.
	Unobserved bool
	// Unrendered is set while the template is not yet the one to be served.
	Unrendered bool
	// Replicas is spec.replicas; the rest is status.
	Replicas  int32
	Total     int32
	Updated   int32
	Available int32
	// Pods counts all pods of the API, terminating ones included; Outdated
	// names those of another template.
	Pods     int
	Outdated []string
	// Releases are those that the pods were rendered for, and those that are
	// ordered and not there yet; Unknown where one does not tell, or does not run
	// what it was rendered for.
	Releases []string
	// Elsewhere is set when its template is for another database than the one
	// asked for.
	Elsewhere bool
	// Note says in words what the pods wait for.
	Note    string
	Trouble bool
}

// PausedWords says of one that is paused what people can do about it.
func (d Deployment) PausedWords() string {
	return "Deployment " + d.Name + " is paused: resume it to go on"
}

// standsStill tells whether its rollout waits for a person.
func (d Deployment) standsStill() bool { return d.Trouble || d.Paused || d.Standing == Foreign }

// Rolled tells whether its controller has nothing left to do: all pods that are
// not ending are of the newest template, and no other ReplicaSet is to have any.
func (d Deployment) Rolled() bool {
	return d.Standing == Current && !d.Paused && !d.Unobserved && !d.Unrendered &&
		d.Updated == d.Replicas && d.Total == d.Replicas && d.Available == d.Replicas
}
