package upgrade

import (
	"cmp"
	"fmt"
	"slices"
)

// world is a cluster in small: the recorded status, Jobs that run and finish,
// a Deployment that rolls pod by pod while old pods linger, and the schema. It
// plays everything that Decide cannot see into, and is a value: two worlds can
// be compared, and every world that can come about can be told apart.
type world struct {
	state    State
	wish     Desired
	config   int8 // what the spec asks for beside release and image
	jobs     [4]playedJob
	api      playedDeployment
	schema   schema
	reported Reason
	told     int64 // the generation that reported belongs to
	ready    bool
	replicas int8
	failures int8 // how many Jobs may still fail
	people   int8 // how often people may still interfere
	lost     bool // the status was lost at some time
	blind    bool // people have deleted the proof that contract was done
}

// playedJob is one Job of ours, or of somebody else.
type playedJob struct {
	exists   bool
	foreign  bool
	leaving  bool
	work     Work
	config   int8
	progress Progress
}

type playedPod struct {
	image   string
	config  int8
	stage   stage
	release string // what it was rendered for; empty: what the image holds
}

type stage int8

const (
	gone stage = iota
	starting
	ready
	terminating
)

type playedDeployment struct {
	exists  bool
	image   string
	config  int8
	seen    bool
	note    State
	pods    [6]playedPod
	release string
}

// schema is what the database holds: the newest release that each half of a
// schema change was done for.
type schema struct{ expanded, migrated, contracted string }

// truth is the release that an image really holds, also where its tag does not
// tell.
var truth = map[string]string{
	"r:2026.1": "2026.1", "r:2026.1-p1": "2026.1", "r:stable": "2026.1",
	"r:2026.2": "2026.2", "r:2026.2-p1": "2026.2", "r:next": "2026.2", "r:newer": "2026.2",
	"r@sha256:a": "2026.1", "r@sha256:c": "2026.1", "r:2026.1@sha256:a": "2026.1",
	"r:2027.1": "2027.1", "r:2025.2": "2025.2", "r:stable@sha256:a": "2026.1", "r:2026.2@sha256:b": "2026.2",
}

// rest lets everything happen that happens by itself.
func (w *world) rest() {
	const enough = 1000
	for range enough {
		happenings := w.happenings()
		if len(happenings) == 0 {
			return
		}
		*w = happenings[0].then
	}
	panic(fmt.Sprintf("the world does not come to rest: %+v", *w))
}

// ask edits the spec.
func (w *world) ask(release, image string) {
	if w.wish.Release == release && w.wish.Image == ref(image) {
		return
	}
	w.wish.Release, w.wish.Image = release, ref(image)
	w.wish.Generation++
}

// asked is the wish as the planner is given it.
func (w *world) asked() Desired {
	d := w.wish
	if d.ByTag {
		d = Tagged(w.state, w.wish.Image, w.wish.Generation)
		d.Facts = w.wish.Facts
	}
	return d
}

// renderedFor is the release noted on pods: that of the state they were rendered
// at, which is what the image holds wherever an image names its release.
func renderedFor(noted, image string) string { return cmp.Or(noted, truth[image]) }

func (w *world) reconfigure() { w.config++; w.wish.Generation++ }

func (w *world) loseStatus() {
	w.state, w.reported, w.ready, w.lost = State{}, "", false, true
}

// deleteFinished is how people repair a failed Job, and what clean-up does.
func (w *world) deleteFinished() {
	for i := range w.jobs {
		if job := &w.jobs[i]; job.progress == Complete || job.progress == Failed {
			w.blind = w.blind || Tasks[i] == Contract && job.progress == Complete && (w.state.Phase == Contracting || w.api.note.Walking())
			job.remove()
		}
	}
}

func (w *world) job(task Task) *playedJob { return &w.jobs[slices.Index(Tasks, task)] }

// alive tells whether a pod of the Job can touch the schema.
func (j playedJob) alive() bool {
	return j.exists && !j.foreign && (j.progress == Running || j.progress == Ending)
}

// remove deletes a Job in the foreground: it stays until its pod is gone.
func (j *playedJob) remove() {
	if j.alive() {
		j.leaving = true
		return
	}
	*j = playedJob{}
}

// observe reduces the world to what a decision needs.
func (w *world) observe() Observed {
	o := Observed{Jobs: map[Task]Job{}, Confirmed: true, Ready: w.ready}
	if w.told == w.wish.Generation {
		o.Reported = w.reported
	}
	for _, task := range Tasks {
		played := w.job(task)
		if !played.exists {
			continue
		}
		job := Job{Name: "glance-" + string(task), Progress: played.progress, Standing: w.standing(*played, task), Revised: played.config != w.config}
		if played.progress == Failed {
			job.Note = "the pod ended with exit code 1"
		}
		o.Jobs[task] = job
	}
	o.Deployment = w.api.observe(w.config, int32(w.replicas))
	if w.api.exists {
		note := w.api.note
		o.Recorded = &note
		contract := w.job(Contract)
		o.RecordedDone = contract.exists && !contract.leaving && contract.progress == Complete && contract.work == WorkOf(note, w.wish, Contract)
	}
	return o
}

// standing is how a Job that exists counts for a task.
func (w *world) standing(job playedJob, task Task) Standing {
	switch {
	case job.foreign:
		return Foreign
	case job.leaving:
		return Leaving
	case job.work == WorkOf(w.state, w.asked(), task):
		return Current
	}
	return Stale
}

func (a *playedDeployment) observe(config int8, replicas int32) Deployment {
	d := Deployment{Name: "glance", Replicas: replicas, Image: a.image, Release: renderedFor(a.release, a.image), Unobserved: !a.seen, Unrendered: a.config != config}
	if a.exists {
		d.Standing = Current
	}
	for i, pod := range a.pods {
		if pod.stage == gone {
			continue
		}
		d.Pods++
		if release := renderedFor(pod.release, pod.image); !slices.Contains(d.Releases, release) {
			d.Releases = append(d.Releases, release)
		}
		outdated := a.outdated(pod)
		if outdated {
			d.Outdated = append(d.Outdated, fmt.Sprintf("glance-%d", i))
		}
		if pod.stage == terminating {
			continue
		}
		d.Total++
		if pod.stage == ready {
			d.Available++
		}
		if !outdated {
			d.Updated++
		}
	}
	return d
}

// reconcile takes one look and does what was decided.
func (w *world) reconcile() Decision {
	o := w.observe()
	decision := Decide(w.state, w.asked(), o)
	w.apply(decision, o)
	return decision
}

func (w *world) apply(decision Decision, o Observed) {
	switch decision.Step {
	case Move:
		w.state = decision.Next
	case RunJob:
		*w.job(decision.Task) = playedJob{exists: true, work: WorkOf(w.state, w.asked(), decision.Task), config: w.config, progress: Pending}
	case DeleteJob:
		for _, task := range decision.Delete {
			w.job(task).remove()
		}
	case Wait:
	}
	if image := decision.Serve; image != "" {
		note := Note(w.state, o)
		release := cmp.Or(note.Target, note.Installed)
		if !w.api.exists || w.api.image != image || w.api.config != w.config || renderedFor(w.api.release, image) != release {
			w.api.exists, w.api.seen, w.api.image, w.api.config, w.api.note, w.api.release = true, false, image, w.config, note, ""
			if truth[image] != release {
				w.api.release = release
			}
		} else if !Noted(w.state, o) {
			w.api.note = Note(w.state, o)
		}
	}
	w.reported, w.ready, w.told = decision.Database.Reason, decision.Database.Ready, w.wish.Generation
}

// happening is one thing that happens, and the world after it.
type happening struct {
	says string
	then world
}

// happenings lists what can happen next by itself: a reconcile that changes
// something, a Job's progress, a step of the rollout.
func (w *world) happenings() []happening {
	var all []happening
	then := *w
	if then.reconcile(); then != *w {
		all = append(all, happening{"reconcile", then.sorted()})
	}
	return append(all, w.surroundings()...)
}

// surroundings are the happenings that are none of the controller's.
func (w *world) surroundings() []happening {
	var all []happening
	happen := func(says string, change func(*world)) {
		then := *w
		change(&then)
		if then != *w {
			all = append(all, happening{says, then.sorted()})
		}
	}
	for i, task := range Tasks {
		job := w.jobs[i]
		if !job.exists || !job.foreign && !job.leaving && (job.progress == Complete || job.progress == Failed) {
			continue
		}
		happen("Job "+string(task), func(w *world) { w.progress(&w.jobs[i]) })
		if w.failures > 0 && job.alive() && !job.leaving && job.progress == Running {
			happen("Job "+string(task)+" fails", func(w *world) { w.jobs[i].progress = Failed; w.failures-- })
		}
	}
	rolled := w.api
	if rolled.roll(int(w.replicas)); rolled != w.api {
		happen("rollout", func(w *world) { w.api = rolled })
	}
	for i, pod := range w.api.pods {
		switch pod.stage {
		case starting:
			happen("pod of "+pod.image+" serves", func(w *world) { w.api.pods[i].stage = ready })
		case terminating:
			happen("pod of "+pod.image+" is gone", func(w *world) { w.api.pods[i] = playedPod{} })
		case gone, ready:
		}
	}
	return all
}

// sorted is the world with its pods in an order that makes no difference.
func (w world) sorted() world {
	slices.SortFunc(w.api.pods[:], byStage)
	return w
}

func byStage(a, b playedPod) int {
	return cmp.Or(cmp.Compare(b.stage, a.stage), cmp.Compare(a.image, b.image), cmp.Compare(a.config, b.config), cmp.Compare(a.release, b.release))
}

// progress takes a Job one step on; what its pod does to the schema is done
// when the pod has ended well.
func (w *world) progress(j *playedJob) {
	switch {
	case !j.exists:
	case j.leaving:
		*j = playedJob{}
	case j.progress == Pending:
		j.progress = Running
	case j.progress == Running:
		j.progress = Ending
		if !j.foreign {
			w.schema.after(j.work.Task, truth[j.work.Image])
		}
	case j.progress == Ending:
		j.progress = Complete
	case j.foreign:
		*j = playedJob{}
	}
}

func (s *schema) after(task Task, release string) {
	switch task {
	case Expand:
		s.expanded = max(s.expanded, release)
	case Migrate:
		s.migrated = max(s.migrated, release)
	case Contract:
		s.contracted = max(s.contracted, release)
	case Sync:
		if release > s.migrated {
			*s = schema{release, release, release}
		}
	}
}

func (a *playedDeployment) outdated(pod playedPod) bool {
	return pod.image != a.image || pod.config != a.config || pod.release != a.release
}

// roll does one thing that a Deployment with maxSurge 1 and maxUnavailable 0
// would do.
func (a *playedDeployment) roll(replicas int) {
	if !a.exists {
		return
	}
	if !a.seen {
		a.seen = true
		return
	}
	active, updated, available, free := 0, 0, 0, -1
	for i, pod := range a.pods {
		if pod.stage == gone {
			free = i
		}
		if pod.stage != starting && pod.stage != ready {
			continue
		}
		active++
		if pod.stage == ready {
			available++
		}
		if !a.outdated(pod) {
			updated++
		}
	}
	if updated < replicas && active <= replicas && free >= 0 {
		a.pods[free] = playedPod{a.image, a.config, starting, a.release}
		return
	}
	for i, pod := range a.pods {
		if a.outdated(pod) && (pod.stage == starting || pod.stage == ready && available > replicas) {
			a.pods[i].stage = terminating
			return
		}
	}
}

// wrong says what must never be seen, empty when all is well.
func (w *world) wrong() string {
	toWork := 0
	for i, task := range Tasks {
		job := w.jobs[i]
		if job.exists && !job.foreign && job.progress != Complete && job.progress != Failed {
			toWork++
		}
		if !job.alive() {
			continue
		}
		release := truth[job.work.Image]
		if release != job.work.To && job.work.To != Unnamed {
			return fmt.Sprintf("%s for %s runs with an image of %s", task, job.work.To, release)
		}
		if task == Sync && job.progress == Running && w.wish.Facts.ReadsOwnSchemaOnly && release < w.schema.expanded {
			return fmt.Sprintf("sync of %s runs on a schema that %s has expanded", release, w.schema.expanded)
		}
		if job.progress == Running && (task == Migrate && w.schema.expanded < release || task == Contract && w.schema.migrated < release) {
			return fmt.Sprintf("%s of %s runs on a schema that is not ready for it", task, release)
		}
		for _, pod := range w.api.pods {
			if pod.stage != gone && (task == Contract && truth[pod.image] < release || task == Sync && truth[pod.image] != release && !w.blind) {
				return fmt.Sprintf("%s of %s runs while a pod of %s lives", task, release, truth[pod.image])
			}
		}
	}
	if toWork > 1 {
		return "two pieces of schema work run, or are about to, side by side"
	}
	for _, pod := range w.api.pods {
		if release := truth[pod.image]; pod.stage != gone && (release < w.schema.contracted && !w.blind || release > w.schema.migrated) {
			return fmt.Sprintf("a pod of %s lives on a schema of %+v", release, w.schema)
		}
	}
	return ""
}

// unsettled says why a world in which nothing more happens is not where it
// should be, empty when it is.
func (w *world) unsettled() string {
	if rejection := Check(w.state, w.asked()); rejection != nil {
		return unless(w.reported == rejection.Reason && !w.ready, "the rejection is not told")
	}
	for i, task := range Tasks {
		job := w.jobs[i]
		if job.progress == Failed && job.work == WorkOf(w.state, w.asked(), task) && w.reported == wordsOf[task].failed {
			return unless(!w.ready, "a failure that is ready")
		}
	}
	image := w.wish.Image.String()
	if s := w.state; s.Ahead != "" && !s.Walking() {
		d := w.api.observe(w.config, int32(w.replicas))
		return unless(w.reported == DowngradeNotSupported && !w.ready && s.InstalledImage == image && Held(d, image) == "", "the schema is ahead, and that is not told, or nobody serves")
	}
	want := State{Installed: w.asked().Release, InstalledImage: image, AbortedImage: w.state.AbortedImage, Attempt: w.state.Attempt}
	d := w.api.observe(w.config, int32(w.replicas))
	switch {
	case w.state != want:
		return fmt.Sprintf("the state is %+v, the wish %+v", w.state, w.asked())
	case !w.ready || w.reported != DatabaseSynced:
		return "the schema is not told to be ready"
	case Held(d, image) != "":
		return "the pods are not there: " + Held(d, image)
	case w.job(Sync).progress != Complete || w.job(Sync).work != WorkOf(w.state, w.asked(), Sync):
		return "the sync has not run"
	}
	return ""
}
