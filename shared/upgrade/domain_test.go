package upgrade

import (
	"fmt"
	"slices"

	"github.com/c5c3/openstack-upgrade/shared/image"
	"github.com/c5c3/openstack-upgrade/shared/release"
)

// The small complete domains that the exhaustive tests combine.
var (
	someReleases = []string{"", "2026.1", "2026.2", "2027.1", "26.1"}
	somePhases   = append([]Phase{Steady, "Shrinking"}, Phases...)
	someImages   = []string{
		"", "r:2026.1", "r:2026.1-p1", "r:2026.2", "r:2026.2-p1", "r:2027.1", "r:stable", "r:next", "r",
		"r@sha256:a", "r@sha256:b", "r:2026.1@sha256:a", "r:2026.2@sha256:a", "r:stable@sha256:b",
	}
)

// ref reads an image that a test has written; nothing stands for no image.
func ref(text string) image.Reference {
	if text == "" {
		return image.Reference{}
	}
	reference, err := image.Parse(text)
	if err != nil {
		panic(err)
	}
	return reference
}

func wish(release, image string) Desired {
	return Desired{Release: release, Image: ref(image), Generation: 2}
}

func installed(release, image string) State {
	return State{Installed: release, InstalledImage: image, Attempt: 1}
}

// upgrading is the walk that most tests speak of.
func upgrading(p Phase) State {
	return State{Installed: "2026.1", Target: "2026.2", Phase: p, InstalledImage: "r:2026.1", TargetImage: "r:2026.2", Attempt: 1}
}

// everyState combines all releases and phases that a status can hold, most of
// it nonsense; what can be read also with all images that matter there.
func everyState(use func(State)) {
	for _, installed := range append(slices.Clone(someReleases), Unnamed) {
		for _, target := range someReleases {
			for _, phase := range somePhases {
				s := State{Installed: installed, Target: target, Phase: phase, InstalledImage: "r:stable", Attempt: 1}
				use(s)
				s.TargetImage = "r:next"
				if recordFault(s) != "" {
					use(s)
					continue
				}
				for _, s.InstalledImage = range []string{"", "r:2026.1", "r:stable", "r:2026.1@sha256:a", "r@sha256:a"} {
					if _, named := ref(s.InstalledImage).Release(); named && installed == Unnamed {
						continue
					}
					if phase == Steady {
						for _, s.AbortedImage = range []string{"", "r:next", "r:2026.2@sha256:b"} {
							use(s)
						}
						for _, s.Ahead = range aheadOf(s.Installed) {
							for _, s.AbortedImage = range []string{"r:next", "r@sha256:b", "r:2026.2@sha256:b"} {
								use(s)
							}
						}
						s.AbortedImage, s.Ahead = "", ""
						continue
					}
					for _, s.TargetImage = range []string{"r:2026.2", "r:next", "r@sha256:b"} {
						use(s)
						s.Ahead = target
						use(s)
						s.Ahead = ""
					}
				}
			}
		}
	}
}

// aheadOf are the releases that a schema may be expanded for.
func aheadOf(installed string) []string {
	switch r, err := release.Parse(installed); {
	case err == nil:
		return []string{r.Next().String()}
	case installed == Unnamed:
		return []string{"2026.2"}
	}
	return nil
}

// everyWish combines every release with every image, and has every image once
// more name the release by its tag.
func everyWish(s State, use func(Desired)) {
	for _, image := range someImages {
		for _, release := range someReleases {
			use(wish(release, image))
		}
		use(byTag(s, image))
	}
}

// byTag is the wish for an image of a service that is keyed by its tag and
// whose tools read their own schema alone.
func byTag(s State, image string) Desired {
	d := Tagged(s, ref(image), 2)
	d.Facts.ReadsOwnSchemaOnly = true
	return d
}

// again is the same kind of wish for what a remedy offers.
func (d Desired) again(s State, r Remedy) Desired {
	if d.ByTag {
		d = Tagged(s, r.Image, d.Generation)
		return d
	}
	d.Release, d.Image = r.Release, r.Image
	return d
}

// jobClasses are all the ways in which one Job can be seen.
var jobClasses = []Job{
	{},
	{Standing: Foreign, Progress: Running}, {Standing: Foreign, Progress: Complete},
	{Standing: Leaving}, {Standing: Leaving, Progress: Running}, {Standing: Leaving, Progress: Complete},
	{Standing: Stale, Progress: Pending}, {Standing: Stale, Progress: Running}, {Standing: Stale, Progress: Running, Stuck: true}, {Standing: Stale, Progress: Complete}, {Standing: Stale, Progress: Failed},
	{Standing: Current, Progress: Pending}, {Standing: Current, Progress: Pending, Revised: true}, {Standing: Current, Progress: Running},
	{Standing: Current, Progress: Running, Revised: true}, {Standing: Current, Progress: Running, Revised: true, Stuck: true}, {Standing: Current, Progress: Ending}, {Standing: Current, Progress: Complete},
	{Standing: Current, Progress: Complete, Revised: true}, {Standing: Current, Progress: Failed}, {Standing: Current, Progress: Failed, Revised: true},
}

// jobSituations shows the task's own Job and one other in every class; the
// other two are absent, or what the last walk left behind.
func jobSituations(own Task) []map[Task]Job {
	var all []map[Task]Job
	named := func(class Job, task Task) Job { class.Name = "glance-" + string(task); return class }
	for _, left := range []Job{{}, {Standing: Stale, Progress: Complete}} {
		for _, class := range jobClasses {
			for i, other := range Tasks {
				for j, beside := range jobClasses {
					if other == own || (j == 0 && i > 1) {
						continue
					}
					jobs := map[Task]Job{}
					for _, task := range Tasks {
						switch task {
						case own:
							jobs[task] = named(class, task)
						case other:
							jobs[task] = named(beside, task)
						default:
							jobs[task] = named(left, task)
						}
					}
					all = append(all, jobs)
				}
			}
		}
	}
	return all
}

// rolledTo is a Deployment whose pods all run the image.
func rolledTo(image string) Deployment {
	return Deployment{Name: "glance", Standing: Current, Image: image, Replicas: 2, Total: 2, Updated: 2, Available: 2, Pods: 2, Release: releaseOf(image), Releases: []string{releaseOf(image)}}
}

// releaseOf is what the pods of an image were rendered for in these tests.
func releaseOf(image string) string {
	if tagged, ok := ref(image).Release(); ok {
		return tagged.String()
	}
	return map[string]string{"r:stable": "2026.1", "r:next": "2026.2", "r@sha256:b": "2026.2"}[image]
}

// deploymentClasses are the situations that the gate tells apart, from one
// image to the other.
func deploymentClasses(from, to string) []Deployment {
	var all []Deployment
	add := func(change func(*Deployment)) {
		d := rolledTo(to)
		change(&d)
		all = append(all, d)
	}
	add(func(*Deployment) {})
	add(func(d *Deployment) { *d = Deployment{} })
	add(func(d *Deployment) { *d = Deployment{Releases: []string{releaseOf(from)}, Pods: 1} })
	add(func(d *Deployment) { d.Image, d.Release, d.Releases = from, releaseOf(from), []string{releaseOf(from)} })
	add(func(d *Deployment) { d.Standing = Foreign })
	add(func(d *Deployment) { d.Standing = Leaving })
	add(func(d *Deployment) { d.Elsewhere = true })
	add(func(d *Deployment) { d.Releases = append(d.Releases, Unknown) })
	add(func(d *Deployment) { d.Paused = true })
	add(func(d *Deployment) { d.Unobserved = true })
	add(func(d *Deployment) { d.Unrendered = true })
	add(func(d *Deployment) {
		d.Updated, d.Total, d.Outdated, d.Pods, d.Releases = 1, 3, []string{"glance-old"}, 3, []string{releaseOf(from), releaseOf(to)}
	})
	add(func(d *Deployment) {
		d.Outdated, d.Pods, d.Releases = []string{"glance-old"}, 3, []string{releaseOf(from), releaseOf(to)}
	})
	add(func(d *Deployment) {
		d.Replicas, d.Total, d.Updated, d.Available, d.Pods, d.Releases = 0, 0, 0, 0, 0, nil
	})
	return all
}

// situation is one combination, with what was decided.
type situation struct {
	s   State
	d   Desired
	o   Observed
	got Decision
}

func (c *situation) String() string {
	event := "none"
	if c.got.Event != nil {
		event = fmt.Sprintf("%+v", *c.got.Event)
	}
	return fmt.Sprintf("state %+v\nwish %+v\nobserved %+v\ndecision %+v\nevent %s", c.s, c.d, c.o, c.got, event)
}

// everySituation calls use with every state and wish under a few observations,
// then with each kind of state and wish under every observation that matters
// to it. It is cut into shares, so that both cores have work.
func everySituation(share, shares int, use func(*situation)) {
	turn := 0
	decide := func(s State, d Desired, o Observed) { use(&situation{s, d, o, Decide(s, d, o)}) }
	few := fewObservations()
	everyState(func(s State) {
		if turn++; turn%shares != share {
			return
		}
		unreadable := recordFault(s) != ""
		everyWish(s, func(d Desired) {
			if unreadable && d.Image.Tag != "next" {
				return // then no wish is looked at
			}
			for _, o := range few {
				decide(s, d, o)
			}
		})
	})
	for _, k := range kindsOfWalk() {
		if turn++; turn%shares != share {
			continue
		}
		noted := k.s
		noted.Phase = RollingUpdate
		from, to := k.s.InstalledImage, k.s.TargetImage
		if to == "" {
			from, to = "r:2026.2", k.s.InstalledImage
		}
		deployments := deploymentClasses(from, to)
		judged := Check(k.s, k.d) == nil
		gated := judged && (k.s.Phase == RollingUpdate || k.s.Phase == Contracting) && k.d.Image.String() == k.s.TargetImage
		switch {
		case !k.s.Walking() && judged:
			deployments = deployments[:6]
		case !gated:
			deployments = deployments[:1]
		}
		situations := jobSituations(taskNow(k.s))
		for i, jobs := range situations {
			if !judged && i >= len(jobClasses) {
				break
			}
			if i == len(situations)/2 {
				deployments = deployments[:min(2, len(deployments))]
			}
			for _, deployment := range deployments {
				for _, confirmed := range []bool{false, true} {
					decide(k.s, k.d, Observed{Jobs: jobs, Deployment: deployment, Confirmed: confirmed})
					decide(k.s, k.d, Observed{Jobs: jobs, Deployment: deployment, Confirmed: confirmed, Recorded: &noted, RecordedDone: true,
						Ready: true, Reported: DatabaseSynced})
				}
			}
		}
	}
}

func fewObservations() []Observed {
	complete, broken := map[Task]Job{}, map[Task]Job{}
	for _, task := range Tasks {
		complete[task] = Job{Name: "glance-" + string(task), Standing: Current, Progress: Complete}
		broken[task] = Job{Name: "glance-" + string(task), Standing: Current, Progress: Failed, Note: "exit code 1"}
	}
	rolled := upgrading(RollingUpdate)
	elsewhere := rolledTo("r:2026.1")
	elsewhere.Elsewhere = true
	return []Observed{
		{},
		{Deployment: elsewhere, Confirmed: true},
		{Jobs: complete, Deployment: rolledTo("r:2026.2"), Confirmed: true, Recorded: &rolled, Ready: true, Reported: DatabaseSynced},
		{Jobs: broken, Deployment: rolledTo("r:2026.1"), Confirmed: true, Reported: ExpandFailed},
	}
}

type kindOfWalk struct {
	name string
	s    State
	d    Desired
}

// kindsOfWalk are the pairs of state and wish that Decide tells apart.
func kindsOfWalk() []kindOfWalk {
	left := installed("2026.1", "r:stable")
	left.AbortedImage = "r:next"
	all := []kindOfWalk{
		{"fresh", State{}, wish("2026.1", "r:2026.1")},
		{"steady", installed("2026.1", "r:2026.1"), wish("2026.1", "r:2026.1")},
		{"patch", installed("2026.1", "r:2026.1"), wish("2026.1", "r:2026.1-p1")},
		{"upgrade", installed("2026.1", "r:2026.1"), wish("2026.2", "r:2026.2")},
		{"skip", installed("2026.1", "r:2026.1"), wish("2027.1", "r:2027.1")},
		{"downgrade", installed("2026.2", "r:2026.2"), wish("2026.1", "r:2026.1")},
		{"mismatch", installed("2026.1", "r:2026.1"), wish("2026.1", "r:2026.2")},
		{"left at the target", left, wish("2026.1", "r:next")},
	}
	keyed := func(name string, s State, image string) kindOfWalk { return kindOfWalk{name, s, byTag(s, image)} }
	ahead, opaque := installed("2026.1", "r:2026.1"), installed(Unnamed, "r@sha256:a")
	ahead.AbortedImage, ahead.Ahead = "r:2026.2", "2026.2"
	all = append(all,
		keyed("by tag: fresh", State{}, "r:2026.1"), keyed("by tag: fresh, opaque", State{}, "r@sha256:a"),
		keyed("by tag: steady", installed("2026.1", "r:2026.1"), "r:2026.1"), keyed("by tag: patch", installed("2026.1", "r:2026.1"), "r:2026.1-p1"),
		keyed("by tag: opaque patch", installed("2026.1", "r:2026.1"), "r@sha256:b"), keyed("by tag: upgrade", installed("2026.1", "r:2026.1"), "r:2026.2"),
		keyed("by tag: opaque at rest", opaque, "r@sha256:a"), keyed("by tag: opaque to named", opaque, "r:2026.2"),
		keyed("by tag: opaque is named", opaque, "r:2026.1@sha256:a"), keyed("by tag: opaque to opaque", opaque, "r@sha256:b"),
		keyed("ahead: at rest", ahead, "r:2026.1"), keyed("ahead: forward", ahead, "r:2026.2-p1"), keyed("ahead: patch", ahead, "r:2026.1-p1"),
	)
	for _, p := range Phases {
		walk := upgrading(p)
		walk.Ahead = walk.Target
		all = append(all, keyed("by tag: go on", walk, "r:2026.2"), keyed("by tag: abort", walk, "r:2026.1"), keyed("by tag: who knows", walk, "r@sha256:b"))
		all = append(all,
			kindOfWalk{"go on", upgrading(p), wish("2026.2", "r:2026.2")},
			kindOfWalk{"abort", upgrading(p), wish("2026.1", "r:2026.1")},
			kindOfWalk{"another build", upgrading(p), wish("2026.2", "r:2026.2-p1")},
			kindOfWalk{"third release", upgrading(p), wish("2027.1", "r:2027.1")},
		)
	}
	return all
}
