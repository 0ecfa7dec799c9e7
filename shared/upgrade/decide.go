package upgrade

import (
	"cmp"
	"fmt"

	"github.com/c5c3/openstack-upgrade/shared/image"
)

// Step is the one thing that a decision asks for.
type Step string

// A decision either moves the recorded state (Move) or touches the world
// (the others), never both.
const (
	Wait      Step = "Wait"
	RunJob    Step = "RunJob"
	DeleteJob Step = "DeleteJob"
	Move      Step = "Move"
)

// Decision is the one next step, and what to tell people about it.
type Decision struct {
	Step Step
	// Task is what RunJob runs; Delete is what DeleteJob removes.
	Task   Task
	Delete []Task
	// Next is the state that Move records.
	Next State
	// Serve is the image that the API pods are kept at; empty when the
	// Deployment is left alone.
	Serve string
	// Database is the DatabaseReady condition.
	Database Report
	// Event is emitted once Next, or Database, has been recorded.
	Event *Event
	// Rejection is set when the wish is refused.
	Rejection *Rejection
	// Retry asks for another look with growing pauses, although nothing that
	// is watched may change.
	Retry bool
}

// Report is a condition in the making.
type Report struct {
	Ready   bool
	Reason  Reason
	Message string
	// Trouble is set when people should read the message soon.
	Trouble bool
	// Remedies are the ways out that the message speaks of, for a command.
	Remedies []Remedy
}

// Event is something worth telling once.
type Event struct {
	Reason  Reason
	Warning bool
	Message string
}

// Decide gives the one next step from the recorded state towards the wish,
// given what was seen. It is a function of its arguments alone.
func Decide(s State, d Desired, o Observed) Decision {
	if lost(s) && (o.Deployment.Standing != Absent || upgraded(o) != "") {
		return adopt(d, o)
	}
	if rejection := Check(s, d); rejection != nil {
		return refuse(s, o, rejection)
	}
	if s.Walking() && d.Facts.ReadsOwnSchemaOnly {
		// A record written by hand may not tell, and an abort must not forget.
		s.Ahead = s.Target
	}
	switch {
	case Aborts(s, d):
		return abort(s, d, o)
	case s.Walking():
		return walk(s, d, o)
	case names(s, d):
		return name(s, d)
	case s.Installed != "" && !equal(s.Installed, d.Release):
		if stay, err := image.Parse(s.InstalledImage); err == nil && o.Deployment.Elsewhere && s.Ahead == "" {
			return follow(s, d, o, stay)
		}
		return initiate(s, d, o)
	}
	return settle(s, d, o)
}

// WorkOf says which work a task is at this moment. A Job that was made for
// other work does not count.
func WorkOf(s State, d Desired, task Task) Work {
	if task != Sync {
		return Work{Task: task, From: s.Installed, To: s.Target, Attempt: s.Attempt, Image: s.TargetImage}
	}
	release, imageName := d.Release, d.Image.String()
	if s.Installed != "" {
		release = s.Installed
	}
	if !equal(release, d.Release) {
		imageName = s.InstalledImage
	}
	return Work{Task: Sync, From: release, To: release, Attempt: s.Attempt, Image: imageName}
}

// Work is the identity of one piece of schema work.
type Work struct {
	Task     Task
	From, To string
	Attempt  int64
	Image    string
}

// lost tells whether nothing at all is recorded: a new object, or one whose
// status was lost.
func lost(s State) bool { return s.Installed == "" && s.Target == "" && s.Phase == Steady }

// upgraded names a Job of ours that only an upgrade leaves behind, empty when
// there is none: then nothing shows that anything was ever installed.
func upgraded(o Observed) string {
	for _, task := range PhaseTasks {
		if job := o.Jobs[task]; job.ours() {
			return job.Name
		}
	}
	return ""
}

// adopt recovers a lost status from what was noted on our Deployment. The
// one-pass sync is never an answer here: pods of an unknown release serve, or
// a database of an unknown release is waiting for them.
func adopt(d Desired, o Observed) Decision {
	name := o.Deployment.Name
	if o.Deployment.Standing == Absent {
		return refuse(State{}, o, &Rejection{Reason: VersionParseError, Field: FieldRelease, Record: true,
			Message: fmt.Sprintf("the status records no release and there is no Deployment, but Job %s is left of an upgrade: set status.installedRelease and status.installedImage to what the database holds, or delete that Job if the database is a new one", upgraded(o))})
	}
	if o.Deployment.Standing == Foreign {
		return Decision{Step: Wait, Database: Report{Reason: DBSyncInProgress, Trouble: true,
			Message: fmt.Sprintf("not installed: Deployment %s exists and belongs to %s; remove or rename it, or choose another name", name, whose(o.Deployment.Owner))}}
	}
	if o.Deployment.Standing == Leaving {
		return Decision{Step: Wait, Database: Report{Reason: DBSyncInProgress,
			Message: fmt.Sprintf("not installed: waiting until Deployment %s is deleted", name)}}
	}
	if o.Recorded == nil || o.Recorded.Installed == "" || recordFault(resumed(*o.Recorded, o.RecordedDone)) != "" {
		return refuse(State{}, o, &Rejection{Reason: VersionParseError, Field: FieldRelease, Record: true,
			Message: fmt.Sprintf("the status records no release, and neither does Deployment %s: set status.installedRelease and status.installedImage to what its pods run", name)})
	}
	to := resumed(*o.Recorded, o.RecordedDone)
	if to.Installed != o.Recorded.Installed {
		to = promotedFor(d, *o.Recorded)
	}
	report := Report{Ready: to.Ahead == "", Reason: DatabaseSynced, Message: fmt.Sprintf("Status was lost; adopted %s from Deployment %s", to.Installed, name)}
	if !report.Ready {
		report.Reason = DBSyncInProgress
	}
	if to.Walking() {
		report = Report{Reason: progressOf[to.Phase], Message: fmt.Sprintf("Status was lost; adopted the rolling update from Deployment %s: %s", name, arrow(to))}
	}
	return Decision{Step: Move, Next: to, Database: report}
}

// Note is what to note on our Deployment. It names a walk only once pods have
// left the installed image: before that a lost walk must begin anew.
func Note(s State, o Observed) State {
	switch {
	case s.Phase == RollingUpdate || s.Phase == Contracting:
		s.Phase = RollingUpdate
		return s
	case s.Walking() && rolled(s, o):
		return *o.Recorded
	case s.Walking() && s.ContractBegun:
		s.Phase = RollingUpdate
		return s
	}
	return s.atRest()
}

// Noted tells whether what is noted would do to recover the state. If not, the
// note is written, with the pods if they roll, otherwise alone. A promotion
// needs no note while the Job of its contract proves it.
func Noted(s State, o Observed) bool {
	if o.Recorded == nil {
		return false
	}
	note, recorded := Note(s, o), *o.Recorded
	if !note.Walking() {
		recorded = resumed(recorded, o.RecordedDone)
		recorded.Attempt = note.Attempt // only walks are told apart by it
	}
	return note == recorded
}

// resumed is where a walk noted on the Deployment stands. It was noted when
// the pods were rolled, so it is at least there, and at least as far as a Job
// proves.
func resumed(recorded State, done bool) State {
	switch {
	case recorded.Target == "" || recorded.Phase == Expanding || recorded.Phase == Migrating:
		return recorded.atRest()
	case done:
		return promoted(recorded)
	}
	recorded.Phase = RollingUpdate
	return recorded
}

func promoted(s State) State {
	return State{Installed: s.Target, InstalledImage: s.TargetImage, Attempt: s.Attempt}
}

func refuse(s State, o Observed, r *Rejection) Decision {
	decision := Decision{Step: Wait, Serve: serving(s, o), Rejection: r, Retry: r.Reason != ImageReleaseMismatch,
		Database: Report{Reason: r.Reason, Message: r.Message, Trouble: true}}
	if r.Record || o.Deployment.Elsewhere {
		decision.Serve = "" // nobody has synced the other database
	}
	if s.Ahead != "" && !s.Walking() && len(r.Remedies) > 0 {
		decision.Database.Remedies = r.Remedies[:1]
	}
	decision.Event = unlessReported(o, r.Reason, r.Message)
	return decision
}

// unlessReported is a Warning that has not been given for this generation.
func unlessReported(o Observed, reason Reason, message string) *Event {
	if o.Reported == reason {
		return nil
	}
	return &Event{Reason: reason, Warning: true, Message: message}
}

// serving is the image that API pods are kept at. While a walk repeats expand
// and migrate with another build of the target, pods that had already rolled
// stay where they are: contract may have run, and then the installed release
// cannot serve any more. Nor do pods follow to another database before it is
// synced, or expanded and migrated.
func serving(s State, o Observed) string {
	early := s.Phase == Expanding || s.Phase == Migrating
	switch {
	case (early || !s.Walking()) && o.Deployment.Elsewhere:
		return ""
	case early && rolled(s, o):
		return o.Recorded.TargetImage
	case early && s.ContractBegun:
		return s.TargetImage
	}
	return s.serves()
}

// rolled tells whether pods have already been rolled to a build of the target.
func rolled(s State, o Observed) bool {
	return o.Recorded != nil && o.Recorded.Target == s.Target && resumed(*o.Recorded, false).Walking() && o.Recorded.TargetImage != ""
}

func initiate(s State, d Desired, o Observed) Decision {
	to := s
	to.Target, to.TargetImage, to.Phase, to.Attempt = d.Release, d.Image.String(), Expanding, attempt(s, d, o)
	if d.Facts.ReadsOwnSchemaOnly {
		to.Ahead = d.Release
	}
	return Decision{Step: Move, Next: to,
		Database: Report{Reason: ExpandInProgress, Message: "Expand phase running: " + arrow(to)},
		Event:    &Event{Reason: UpgradeInitiated, Message: fmt.Sprintf("Upgrade initiated: %s with image %s", arrow(to), to.TargetImage)}}
}

// follow brings what is installed to another database first, when that and the
// release are changed together: no pod may meet a schema that is not there yet.
func follow(s State, d Desired, o Observed, stay image.Reference) Decision {
	installed := d
	installed.Release, installed.Image = s.Installed, stay
	decision := settle(s, installed, o)
	if decision.Database.Reason == DBSyncInProgress {
		decision.Database.Message += fmt.Sprintf("; the upgrade %s → %s begins once the pods have followed to the other database", s.Installed, d.Release)
	}
	return decision
}

// attempt numbers a walk that begins. The generation alone would not do: a
// status that was set back by hand leaves it as it was, and the finished Jobs
// of the walk before must not count for a database that was restored.
func attempt(s State, d Desired, o Observed) int64 {
	last := s.Attempt
	if o.Recorded != nil {
		last = max(last, o.Recorded.Attempt)
	}
	return max(d.Generation, last+1)
}

// abort ends a walk: first its Jobs, then, when no pod of them is left, its
// record. A contract that has completed cannot be taken back, so it is
// promoted, and the law then sees the wish for what it is: a downgrade. That
// holds in any phase: a status that was lost may be behind its own contract.
func abort(s State, d Desired, o Observed) Decision {
	if contract := o.Jobs[Contract]; contract.Standing == Current {
		switch contract.Progress {
		case Complete:
			return promote(s, d)
		case Ending:
			return wait(s, o, fmt.Sprintf("the abort comes too late, Job %s is completing", contract.Name), false)
		case Pending, Running, Failed:
		}
	}
	var doomed []Task
	var leaving []string
	for _, task := range PhaseTasks {
		switch job := o.Jobs[task]; {
		case job.ours():
			doomed = append(doomed, task)
		case job.Standing == Leaving:
			leaving = append(leaving, job.Name)
		}
	}
	switch {
	case len(doomed) > 0:
		decision := wait(s, o, "aborting, the phase Jobs are being deleted", false)
		decision.Step, decision.Delete = DeleteJob, doomed
		return decision
	case len(leaving) > 0:
		note := "aborting, waiting until no pod is left of " + list(leaving)
		if said := o.Jobs[leavingTask(o)].Note; said != "" {
			note += " (" + said + ")"
		}
		return wait(s, o, note, false)
	case !o.Confirmed:
		return wait(s, o, "aborting, looking for pods of the phase Jobs", false)
	}
	to := s.atRest()
	to.AbortedImage = s.TargetImage
	return Decision{Step: Move, Next: to,
		Database: Report{Reason: DBSyncInProgress, Message: fmt.Sprintf("Upgrade aborted: %s; back to %s", arrow(s), s.InstalledImage)},
		Event:    &Event{Reason: UpgradeAborted, Message: fmt.Sprintf("Upgrade aborted in phase %s: %s; pods go back to %s", s.Phase, arrow(s), s.InstalledImage)}}
}

func leavingTask(o Observed) Task {
	for _, task := range PhaseTasks {
		if o.Jobs[task].Standing == Leaving {
			return task
		}
	}
	return ""
}

// walk takes the next step of an active walk.
func walk(s State, d Desired, o Observed) Decision {
	changed := d.Image.String() != s.TargetImage
	task, hasTask := PhaseTask(s.Phase)
	back := strange(o.Deployment, s.Target)
	switch {
	case !changed && back != "" && (s.Phase == RollingUpdate || s.Phase == Contracting) && o.Jobs[Contract].Standing == Current && o.Jobs[Contract].idle():
		return withdraw(s, o, back)
	case !hasTask && !changed:
		return roll(s, o)
	case !hasTask:
		task = Contract // a status that was lost may be behind its own contract
	}
	job := o.Jobs[task]
	if job.Standing == Current && job.Progress == Complete && (!changed || task == Contract) {
		return advance(s, d, task)
	}
	if changed {
		return replace(s, d, o, task)
	}
	decision := run(s, d, o, task, progressReport(s, job))
	if decision.Step == RunJob && task == Contract {
		if held := Held(o.Deployment, s.TargetImage); held != "" || !o.Confirmed {
			return wait(s, o, "contract is held back; "+orConfirming(held), o.Deployment.standsStill())
		}
	}
	return decision
}

// withdraw takes a contract away that does nothing yet, where pods of another
// release have come back since the gate let it pass: whatever keeps it from
// starting may end at any time. The gate makes it again. In the rollout there is
// one only where the record was set back.
func withdraw(s State, o Observed, back string) Decision {
	job := o.Jobs[Contract]
	if !o.Confirmed {
		return wait(s, o, fmt.Sprintf("looking for pods of %s, which would hold back Job %s", back, job.Name), false)
	}
	decision := wait(s, o, fmt.Sprintf("Job %s is deleted before it can run, for it must not meet a pod of %s; %s", job.Name, back, orConfirming(Held(o.Deployment, s.TargetImage))), true)
	decision.Step, decision.Delete = DeleteJob, []Task{Contract}
	return decision
}

// replace leads from one build of the target to another: a Job that does nothing
// yet, or no more, is taken away first, so that a contract can never run unseen behind
// a walk that has been started over; one that runs is let finish.
func replace(s State, d Desired, o Observed, task Task) Decision {
	job := o.Jobs[task]
	hold := func(what string) Decision {
		return wait(s, o, fmt.Sprintf("the image changed to %s; Job %s %s, then the walk re-enters at %s", d.Image, job.Name, what, Expanding), false)
	}
	switch {
	case job.Standing == Leaving:
		return hold("and its pods are going")
	case !job.ours() || job.finished():
		return reenter(s, d, o)
	case !job.idle():
		decision := hold("runs to its end")
		if job.Trouble { // the end may be far
			decision.Database.Message += "; " + job.Note
			decision.Database.Trouble = true
		}
		return decision
	}
	what := "is deleted before it starts"
	if job.Stuck {
		what = "cannot go on and is deleted"
	}
	decision := hold(what)
	decision.Step, decision.Delete = DeleteJob, []Task{task}
	return decision
}

// reenter starts the walk over with another build of the target; the phases
// are idempotent.
func reenter(s State, d Desired, o Observed) Decision {
	to := s
	to.Phase, to.TargetImage, to.Attempt = Expanding, d.Image.String(), attempt(s, d, o)
	to.ContractBegun = s.contracting()
	return Decision{Step: Move, Next: to,
		Database: Report{Reason: ExpandInProgress, Message: "Expand phase running: " + arrow(to)},
		Event:    &Event{Reason: UpgradeInitiated, Message: fmt.Sprintf("Upgrade re-enters at %s: %s with image %s", Expanding, arrow(to), to.TargetImage)}}
}

// roll waits for the rollout gate.
func roll(s State, o Observed) Decision {
	held := Held(o.Deployment, s.TargetImage)
	if held == "" && o.Confirmed {
		to := s
		to.Phase = next[s.Phase]
		return Decision{Step: Move, Next: to,
			Database: Report{Reason: progressOf[to.Phase], Message: "Contract phase running: " + arrow(s)},
			Event:    &Event{Reason: DeploymentRolloutComplete, Message: "Rolling update complete: " + arrow(s)}}
	}
	note := orConfirming(held)
	if o.Deployment.Note != "" {
		note += "; " + o.Deployment.Note
	}
	return wait(s, o, note, o.Deployment.standsStill())
}

func orConfirming(held string) string {
	if held == "" {
		return "looking for pods of the previous template"
	}
	return "waiting: " + held
}

// advance records that a phase's task is complete.
func advance(s State, d Desired, task Task) Decision {
	if task == Contract {
		return promote(s, d)
	}
	to := s
	to.Phase = next[s.Phase]
	message := "Rolling update running: " + arrow(s)
	if following, ok := PhaseTask(to.Phase); ok {
		message = wordsOf[following].title + " running: " + arrow(s)
	}
	return Decision{Step: Move, Next: to,
		Database: Report{Reason: progressOf[to.Phase], Message: message},
		Event:    &Event{Reason: wordsOf[task].complete, Message: wordsOf[task].title + " complete: " + arrow(s)}}
}

// promotedFor is promoted where a wish is waiting. Where tags alone tell a
// release, an image that can be asked for without one is remembered as what it
// is not: an abort may have come too late, and would otherwise be taken for a
// patch of the new release.
func promotedFor(d Desired, s State) State {
	to := promoted(s)
	if before, err := image.Parse(s.InstalledImage); d.ByTag && err == nil {
		if _, named := before.Release(); !named || before.Digest != "" {
			to.AbortedImage = s.InstalledImage
		}
	}
	return to
}

// promote ends a walk.
func promote(s State, d Desired) Decision {
	return Decision{Step: Move, Next: promotedFor(d, s),
		Database: Report{Ready: true, Reason: DatabaseSynced, Message: fmt.Sprintf("Schema is at %s", s.Target)},
		Event:    &Event{Reason: UpgradeComplete, Message: "Upgrade complete: " + arrow(s)}}
}

// settle is the steady path: install, follow a patch image, or rest.
func settle(s State, d Desired, o Observed) Decision {
	wished := d.Image.String()
	if s.Ahead != "" {
		return ahead(s, d, o)
	}
	fresh := s.Installed == ""
	job := o.Jobs[Sync]
	current := !fresh && s.InstalledImage == wished
	synced := Report{Ready: true, Reason: DatabaseSynced, Message: fmt.Sprintf("Schema is at %s", inWords(d.Release, wished))}
	if job.Standing == Current && job.Progress == Complete {
		if current {
			return Decision{Step: Wait, Serve: s.InstalledImage, Database: synced}
		}
		to := s
		to.Installed, to.InstalledImage = d.Release, wished
		return Decision{Step: Move, Next: to, Database: synced}
	}
	report := Report{Reason: DBSyncInProgress, Message: "Database sync running: " + inWords(d.Release, wished)}
	if current && o.Ready && !o.Deployment.Elsewhere {
		report = synced
	}
	if job.Note != "" && (!report.Ready || job.Trouble) {
		report.Message += "; " + job.Note
		report.Trouble = job.Trouble
	}
	decision := run(s, d, o, Sync, report)
	if decision.Step == RunJob {
		held := alone(o.Deployment, d.Release)
		if held != "" || !o.Confirmed {
			decision.Step, decision.Task = Wait, ""
		}
		if held != "" && !decision.Database.Ready {
			decision.Database.Message = fmt.Sprintf("Database sync of %s waits until %s", inWords(d.Release, wished), held)
			decision.Database.Trouble = decision.Database.Trouble || o.Deployment.Paused
		}
	}
	return decision
}

// ahead keeps the installed release serving on a schema that an aborted walk
// has expanded and that its own tools cannot read: no Job is run. Jobs of a
// walk whose record was lost are taken away if they have not started.
func ahead(s State, d Desired, o Observed) Decision {
	message := fmt.Sprintf("The database is ahead: it may have been expanded for %s by an upgrade that was aborted, and %s, which is installed and serves, could not sync it then. "+
		"Go forward to %s; or restore a backup made before that upgrade, or make sure that no pod of its expand ever ran, and then remove status.expandedRelease", s.Ahead, inWords(s.Installed, s.InstalledImage), s.Ahead)
	decision := Decision{Step: Wait, Serve: serving(s, o),
		Database: Report{Reason: DowngradeNotSupported, Message: message, Trouble: true, Remedies: forwardOrStay(s, d)[:1]},
		Event:    unlessReported(o, DowngradeNotSupported, message)}
	for _, task := range Tasks {
		if job := o.Jobs[task]; job.ours() && job.idle() {
			decision.Step = DeleteJob
			decision.Delete = append(decision.Delete, task)
		}
	}
	return decision
}

// name records the release of the installed image, now that it is named.
func name(s State, d Desired) Decision {
	to := s
	to.Installed, to.InstalledImage = d.Release, d.Image.String()
	return Decision{Step: Move, Next: to,
		Database: Report{Ready: true, Reason: DatabaseSynced, Message: "Schema is at " + d.Release}}
}

// alone says what the one-pass sync of a release must wait for, empty for
// nothing: pods that serve another, or are about to.
func alone(d Deployment, release string) string {
	held := ""
	if strange := strange(d, release); strange != "" {
		held = fmt.Sprintf("no pod of %s is left", strange)
	} else if d.Standing == Current && d.Unobserved {
		// Until then its controller may go on making pods of the template before.
		held = fmt.Sprintf("the newest template of Deployment %s is observed", d.Name)
	}
	if held != "" && d.Paused {
		held += "; " + d.PausedWords()
	}
	return held
}

// strange is a release that API pods serve, or are about to, and that is not
// the given one.
func strange(d Deployment, release string) string {
	for _, seen := range append([]string{d.Release}, d.Releases...) {
		if seen != "" && !equal(seen, release) {
			return seen
		}
	}
	return ""
}

// run brings about the Job of a task, under the rule that no two pieces of
// schema work ever run side by side for one object.
func run(s State, d Desired, o Observed, task Task, report Report) Decision {
	waiting := func(format string, args ...any) Decision {
		if !report.Ready || report.Trouble {
			report.Message += "; " + fmt.Sprintf(format, args...)
		}
		return Decision{Step: Wait, Serve: serving(s, o), Database: report}
	}
	var doomed []Task
	for _, other := range Tasks {
		job := o.Jobs[other]
		switch {
		case other == task || job.Standing == Absent:
		case job.Standing == Leaving:
			return waiting("waiting until Job %s and its pods are gone", job.Name)
		case job.finished():
		case job.Standing == Foreign:
			return waiting("waiting for Job %s, which belongs to %s, to end or be removed", job.Name, whose(job.Owner))
		case !job.idle():
			return waiting("waiting for Job %s to end first", job.Name)
		default:
			doomed = append(doomed, other)
		}
	}
	job := o.Jobs[task]
	switch job.Standing {
	case Foreign:
		report.Trouble = true
		return waiting("Job %s exists and belongs to %s: remove it or wait until it is gone", job.Name, whose(job.Owner))
	case Leaving:
		return waiting("waiting until the previous Job %s and its pods are gone", job.Name)
	case Stale:
		if !job.finished() && !job.idle() {
			return waiting("waiting for an earlier Job %s to end first", job.Name)
		}
		doomed = append(doomed, task)
	case Current:
		switch {
		case job.Revised && (job.Progress == Failed || job.idle()):
			doomed = append(doomed, task)
		case job.Progress == Failed:
			return failed(s, d, o, task, job)
		}
	case Absent:
	}
	decision := Decision{Step: Wait, Serve: serving(s, o), Database: report}
	switch {
	case len(doomed) > 0:
		decision.Step, decision.Delete = DeleteJob, doomed
	case job.Standing == Absent:
		decision.Step, decision.Task = RunJob, task
	}
	return decision
}

func whose(owner string) string { return cmp.Or(owner, "somebody else") }

// failed reports a Job that has used up its retries. It is never run again by
// itself: the person who fixes the cause says so by deleting it.
func failed(s State, d Desired, o Observed, task Task, job Job) Decision {
	w := wordsOf[task]
	message := w.title + " failed"
	if s.Walking() {
		message += ": " + arrow(s)
	}
	if job.Note != "" {
		message += ": " + job.Note
	}
	message += fmt.Sprintf(". Fix the cause and delete Job %s to retry", job.Name)
	if s.Walking() {
		message += ", or set the " + back(s, d) + " to abort"
	}
	return Decision{Step: Wait, Serve: serving(s, o), Retry: true,
		Database: Report{Reason: w.failed, Message: message, Trouble: true},
		Event:    unlessReported(o, w.failed, message)}
}

// back says which part of the wish takes a walk back, and to what.
func back(s State, d Desired) string {
	if d.ByTag {
		return "image back to " + orUnknown(s.InstalledImage)
	}
	return fmt.Sprintf("release back to %s and the image to %s", s.Installed, orUnknown(s.InstalledImage))
}

// wait keeps a walk where it is and says what for.
func wait(s State, o Observed, note string, trouble bool) Decision {
	title := "Rolling update"
	if task, ok := PhaseTask(s.Phase); ok {
		title = wordsOf[task].title
	}
	return Decision{Step: Wait, Serve: serving(s, o),
		Database: Report{Reason: progressOf[s.Phase], Message: fmt.Sprintf("%s running: %s; %s", title, arrow(s), note), Trouble: trouble}}
}

func progressReport(s State, job Job) Report {
	task, _ := PhaseTask(s.Phase)
	report := Report{Reason: wordsOf[task].running, Message: wordsOf[task].title + " running: " + arrow(s)}
	if job.Note != "" {
		report.Message += "; " + job.Note
		report.Trouble = job.Trouble
	}
	return report
}

func arrow(s State) string { return s.Installed + " → " + s.Target }
