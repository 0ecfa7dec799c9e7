package upgrade

import "cmp"

// cache is what a controller sees of one sort of object through a watch. One that has stopped goes on showing what was
// there when it did.
type cache uint8

const (
	ownCache cache = 1 << iota
	jobCache
	deploymentCache
	podCache
)

var caches = []cache{ownCache, jobCache, deploymentCache, podCache}

var resourceOf = map[cache]string{ownCache: "own", jobCache: "jobs", deploymentCache: "deployments", podCache: "pods"}

// memory is of what a controller has written itself and a cache does not show: the object, the Deployment, each Job.
type memory uint8

const (
	ownWritten memory = 1 << iota
	deploymentWritten
	firstJobWritten
)

func jobWritten(task Task) memory { return firstJobWritten << indexOf(task) }

// knowableOf is what stopped caches may leave to be remembered.
func knowableOf(stopped cache) (all memory) {
	if stopped&ownCache != 0 {
		all |= ownWritten
	}
	if stopped&deploymentCache != 0 {
		all |= deploymentWritten
	}
	if stopped&jobCache != 0 {
		for _, task := range Tasks {
			all |= jobWritten(task)
		}
	}
	return all
}

// remember has the sight show past the caches what they are known to be behind of.
func (s *sight) remember(what memory) {
	if what&ownWritten != 0 {
		s.cached.showOwn(&s.live)
	}
	if what&deploymentWritten != 0 {
		s.cached.api = s.live.api
	}
	for i, task := range Tasks {
		if what&jobWritten(task) != 0 {
			s.cached.jobs[i] = s.live.jobs[i]
		}
	}
}

// sight is what one look at the cluster goes by. The pods of Jobs and of the API are seen apart from the Jobs and the
// Deployment that they belong to, and both apart from what is there when a look is repeated past the caches.
type sight struct {
	cached world // the object itself, Jobs and Deployment, with the status that their controllers have given them
	pods   world // of these only the pods
	live   world
}

// looks is the sight of a world some caches of which have stopped.
func looks(now, objects, pods world, stopped cache) sight {
	s := sight{cached: now, pods: now, live: now}
	if stopped&ownCache != 0 {
		s.cached.showOwn(&objects)
	}
	if stopped&jobCache != 0 {
		s.cached.jobs = objects.jobs
	}
	if stopped&deploymentCache != 0 {
		s.cached.api = objects.api
	}
	if stopped&podCache != 0 {
		s.pods.jobs, s.pods.api.pods = pods.jobs, pods.api.pods
	}
	return s
}

// showOwn makes the object itself look as it does in another world.
func (w *world) showOwn(other *world) {
	w.state, w.wish, w.config = other.state, other.wish, other.config
	w.reported, w.told, w.ready = other.reported, other.told, other.ready
}

// decide is what the controller does with a sight: it goes by the caches, and looks again past them where a stale answer
// would make another decision; in doubt, at everything before it does anything.
func (s *sight) decide(decide planner, doubt bool) (Decision, Observed) {
	state, desired := s.cached.state, s.cached.asked()
	o := s.observe()
	sure := o
	sure.Confirmed = true
	decided, surely := decide(state, desired, o), decide(state, desired, sure)
	switch {
	case doubt && (s.acts(decided, o) || s.acts(surely, sure)):
		*s = looks(s.live, world{}, world{}, 0)
		o = s.observe()
		o.Confirmed = true
		return decide(s.cached.state, s.cached.asked(), o), o
	case doubt, decided.Step == surely.Step:
		return decided, o
	}
	if Aborts(state, desired) {
		for _, task := range Tasks {
			if job := s.live.job(task); o.Jobs[task].Standing == Absent && job.exists {
				s.cached.jobs[indexOf(task)] = *job
				o.Jobs[task] = s.observeJob(task, playedJob{})
			}
		}
	}
	if !s.cached.api.exists || surely.Step == RunJob {
		s.cached.api = s.live.api
	}
	for _, task := range Tasks {
		if pod := s.live.job(task); o.Jobs[task].Standing == Absent && pod.alive() {
			o.Jobs[task] = Job{Name: "glance-" + string(task), Standing: Leaving, Progress: Running}
		}
	}
	s.pods.api.pods = s.live.api.pods
	s.observeDeployment(&o)
	o.Confirmed = true
	return decide(state, desired, o), o
}

// acts tells whether a decision would change anything but words.
func (s *sight) acts(decision Decision, o Observed) bool {
	_, changes := s.cached.served(decision, o)
	return decision.Step != Wait || changes
}

// planner is Decide, or one with a hole in it.
type planner func(State, Desired, Observed) Decision

func (s *sight) observe() Observed {
	w := &s.cached
	o := Observed{Jobs: map[Task]Job{}, Ready: w.ready}
	if w.told == w.wish.Generation {
		o.Reported = w.reported
	}
	for _, task := range Tasks {
		if job := s.observeJob(task, *s.pods.job(task)); job.Standing != Absent {
			o.Jobs[task] = job
		}
	}
	s.observeDeployment(&o)
	return o
}

// observeJob is one Job by its cached status and by the pod that is seen of it, or of one before it.
func (s *sight) observeJob(task Task, pod playedJob) Job {
	w, played := &s.cached, s.cached.job(task)
	job := Job{Name: "glance-" + string(task), Standing: w.standing(*played, task), Progress: played.progress, Revised: played.config != w.config}
	switch {
	case !played.exists && pod.alive():
		return Job{Name: job.Name, Standing: Leaving, Progress: Running}
	case !played.exists:
		return Job{}
	}
	if !job.finished() && !pod.foreign && pod.exists {
		switch {
		case pod.progress == Ending || pod.progress == Complete || played.progress == Ending:
			job.Progress = Ending
		case pod.progress == Running || pod.progress == Failed:
			job.Progress = Running
		}
	}
	if played.progress == Failed {
		job.Note = "the pod ended with exit code 1"
	}
	return job
}

// observeDeployment compares the Deployment and the pods that are seen with what would be rendered now, and reads what is
// noted there.
func (s *sight) observeDeployment(o *Observed) {
	w, image := &s.cached, s.cached.state.InstalledImage
	if w.state.Walking() {
		image = w.state.TargetImage
	}
	rendered := playedPod{image: image, config: w.config, release: cmp.Or(w.state.Target, w.state.Installed)}
	same := func(pod playedPod) bool {
		return pod.image == rendered.image && pod.config == rendered.config && renderedFor(pod.release, pod.image) == rendered.release
	}
	d := w.api.observe(w.config, int32(w.replicas))
	d.Unrendered = !same(playedPod{image: w.api.image, config: w.api.config, release: w.api.release})
	seen := playedDeployment{pods: s.pods.api.pods}
	pods := seen.observe(w.config, 0)
	d.Pods, d.Releases, d.Outdated = pods.Pods, pods.Releases, nil
	for _, pod := range s.pods.api.pods {
		if pod.stage != gone && !same(pod) {
			d.Outdated = append(d.Outdated, "glance-old")
		}
	}
	o.Deployment, o.Recorded, o.RecordedDone = d, nil, false
	if !w.api.exists {
		return
	}
	note := w.api.note
	contract, sync := w.job(Contract), w.job(Sync)
	follows := Work{Task: Sync, From: note.Target, To: note.Target, Attempt: note.Attempt, Image: note.TargetImage}
	o.Recorded = &note
	o.RecordedDone = note.Target != "" && (contract.exists && contract.progress == Complete && contract.work == WorkOf(note, w.wish, Contract) || sync.exists && sync.work == follows)
}
