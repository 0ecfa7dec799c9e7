package replay

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/faults/story"
	"github.com/c5c3/openstack-upgrade/test/faults/wire"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// patience is how long something is waited for that need not come: longer than the controller waits after a deletion, and
// the deletion takes.
const patience = 12 * time.Second

// performance is one plan on its way.
type performance struct {
	*story.Play
	t     testing.TB
	plan  []statement
	seen  int               // of the points of the play
	held  map[string]func() // what scripts hold: tasks whose pods hang, tags whose pods do not go
	stops stops
}

// stops are how many caches were stopped, and how many of these were kept from showing anything.
type stops struct{ froze, judged, kept int }

// judge counts the cache that was stopped last, if it has not been counted yet.
func (s *stops) judge(shows bool) {
	if s.judged < s.froze && shows {
		s.kept++
	}
	s.judged = s.froze
}

func (s stops) all() bool { return s.kept == s.froze }

// of is the plan as a story. in tells, when it is over, whether every cache that was to stand still had anything to show.
func of(t testing.TB, text string, plan []statement) (as story.Story, in func() bool) {
	p := &performance{t: t, plan: plan, held: map[string]func(){}}
	prepare := func(play *story.Play) {
		p.Play = play
		for _, tag := range []string{"2026.1", "2026.2", "2026.2-p1"} {
			p.held["pod "+tag] = play.Script(render.ComponentAPI, ":"+tag, harness.Lost())
		}
		if plan[0].deed != install {
			p.hold(upgrade.Tasks...)
		}
	}
	return story.Told(kindOf(plan), text, prepare, func(*story.Play) { p.perform() }), func() bool { return p.stops.all() }
}

// kindOf is the service that a plan is about: with one of them a release is asked for by its tag alone.
func kindOf(plan []statement) story.Kind {
	for _, s := range plan {
		if s.deed == ask && !strings.Contains(s.rest, " with ") {
			return story.Keystone
		}
	}
	return story.Glance
}

func (p *performance) perform() {
	p.t.Helper()
	if p.plan[0].deed == install {
		p.Installed()
		p.plan, p.seen = p.plan[1:], len(p.Points())
		p.hold(upgrade.Tasks...)
	}
	p.planKill(0)
	came := make([]bool, len(p.plan))
	for i, s := range p.plan { // later statements are done whether or not earlier ones came about
		p.holds(i)
		came[i] = p.does(s)
		if s.deed == kill {
			p.planKill(i + 1)
		}
	}
	for i, s := range p.plan {
		if !came[i] && s.canMiss() {
			p.t.Logf("it did not come about: %s", s)
		}
	}
	for _, lack := range lacking(p.plan, came) {
		p.t.Errorf("the schedule has shown nothing: %s", lack)
	}
	p.judgeFreeze()
	p.Wire.Plan()
	p.Wire.Thaw(wire.Everything)
	for _, letGo := range p.held {
		letGo()
	}
	p.settle()
	p.Ends()
}

// settle waits until no Job works any more, and nothing has come of the last that did for a while.
func (p *performance) settle() {
	p.t.Helper()
	count, since := -1, time.Now()
	p.Await("what was begun to be over", func(story.Object) string {
		if points := p.Points(); len(points) != count {
			count, since = len(points), time.Now()
		}
		for _, task := range upgrade.Tasks {
			if job := p.Job(task); job != nil && story.OutcomeOf(job) == "" {
				since = time.Now()
				return "Job " + job.Name + " works"
			}
		}
		if time.Since(since) < patience {
			return "something was written a moment ago"
		}
		return ""
	})
}

// hold has the pods of tasks hang.
func (p *performance) hold(tasks ...upgrade.Task) {
	for _, task := range tasks {
		p.held[string(task)] = p.Script(string(task), "", harness.Hang())
	}
}

// planKill plans for the next kill, whose write may come at any time from now on.
func (p *performance) planKill(from int) {
	p.t.Helper()
	for _, s := range p.plan[from:] {
		if s.deed != kill {
			continue
		}
		points, err := s.points()
		if err != nil {
			p.t.Fatal(err)
		}
		p.Plan(wire.Fault{Deed: wire.KillAfter, At: p.next(points[len(points)-1])})
		return
	}
	p.Wire.Plan()
}

// next is the next time that a write comes.
func (p *performance) next(at wire.Point) wire.Point {
	at.Nth = 1
	for _, made := range p.Points() {
		if made.Verb == at.Verb && made.Resource == at.Resource && made.Name == at.Name {
			at.Nth++
		}
	}
	return at
}

// does brings a statement about, or waits for it; false when it has not come.
func (p *performance) does(s statement) bool {
	p.t.Helper()
	switch s.deed {
	case ask:
		p.asks(s)
	case freeze, thaw:
		p.freezes(s)
	case write:
		return p.writes(s)
	case kill:
		return p.writes(s) && p.within(func() bool { return len(p.Wire.Unmet()) == 0 })
	case job:
		return p.works(s)
	case pod:
		if strings.HasSuffix(s.rest, "is gone") {
			p.letGo("pod " + s.tag())
			return p.within(func() bool { return p.pods(render.ComponentAPI, ":"+s.tag()) == 0 })
		}
		return p.within(func() bool { return p.pods(render.ComponentAPI, ":"+s.tag()) > 0 })
	case clean:
		p.cleanUp()
	case lose:
		p.lose()
	case restart:
		p.Kill()
	case rollout:
	case install, configure, pause:
		return false
	}
	return true
}

// asks edits the spec.
func (p *performance) asks(s statement) {
	p.t.Helper()
	before := p.Now()
	after := before.DeepCopyObject().(story.Object)
	switch o := after.(type) {
	case *v1alpha1.Glance:
		release, _, _ := strings.Cut(s.rest, " ")
		build.Change(o, build.Release(release), build.Tag(s.tag()))
	case *v1alpha1.Keystone:
		o.Spec.Image.Tag, o.Spec.Image.Digest = s.tag(), ""
	}
	if err := p.Client.Patch(p.t.Context(), after, client.MergeFrom(before)); err != nil {
		p.t.Fatalf("%s: %v", s, err)
	}
}

// lose takes the status away.
func (p *performance) lose() {
	p.t.Helper()
	o := p.Now()
	*o.Record() = v1alpha1.ServiceStatus{}
	if err := p.Client.Status().Update(p.t.Context(), o); err != nil {
		p.t.Logf("the status is not lost: %v", err)
	}
}

// holds waits, where a cache is about to stop, for what the controller is then said to make of just that kind, and keeps
// it on its way: the cache must have shown what went before it, and no hand is quick enough for the moment between.
func (p *performance) holds(i int) {
	p.t.Helper()
	if p.plan[i].deed != freeze || i+1 == len(p.plan) || p.plan[i+1].deed != write {
		return
	}
	points, err := p.plan[i+1].points()
	if err != nil {
		p.t.Fatal(err)
	}
	if len(points) == 0 || points[0].Verb != "create" || points[0].Resource != p.plan[i].rest {
		return
	}
	var held atomic.Bool
	p.Wire.OnHold(func() { held.Store(true) })
	p.Plan(wire.Fault{Deed: wire.Hold, At: p.next(points[0])})
	p.within(held.Load)
	p.planKill(i + 1)
}

func (p *performance) freezes(s statement) {
	resource := s.rest
	if resource == "own" {
		resource = p.Resource
	}
	if s.deed == freeze {
		p.judgeFreeze()
		p.stops.froze++
		p.Wire.Freeze(resource)
		p.Wire.Release() // what holds has kept on its way
		return
	}
	p.Wire.Thaw(resource)
}

// judgeFreeze counts the cache that was stopped last, if anything was kept from it.
func (p *performance) judgeFreeze() { p.stops.judge(p.Wire.Kept(p.Name) > 0) }

// writes waits for each write of a statement, after those that were waited for before. How often the status is written
// for words alone, no model knows: where nothing else is written, any will do.
func (p *performance) writes(s statement) bool {
	points, err := s.points()
	if err != nil {
		p.t.Fatal(err)
	}
	after := p.seen
	if !s.canMiss() {
		return p.within(func() bool {
			return slices.ContainsFunc(p.Points()[after:], func(made wire.Point) bool { return made.Resource == p.Resource+"/status" })
		})
	}
	for _, wanted := range points {
		if strings.HasSuffix(wanted.Resource, "/status") {
			continue
		}
		came := p.within(func() bool {
			for i, made := range p.Points()[after:] {
				if made.Verb == wanted.Verb && made.Resource == wanted.Resource && made.Name == wanted.Name {
					p.seen = max(p.seen, after+i+1)
					return true
				}
			}
			return false
		})
		if !came {
			return false
		}
	}
	return true
}

// works leads the Job of a task on.
func (p *performance) works(s statement) bool {
	task, stage, _ := strings.Cut(s.rest, " ")
	outcome := func(wanted batchv1.JobConditionType) func() bool {
		return func() bool {
			found := p.Job(upgrade.Task(task))
			return found != nil && story.OutcomeOf(found) == wanted
		}
	}
	switch stage {
	case "ends":
		p.letGo(task)
		return true
	case "is complete":
		defer p.hold(upgrade.Task(task))
		return p.within(outcome(batchv1.JobComplete))
	case "fails":
		fails := p.Script(task, "", harness.Fail(1, "no right to create triggers"))
		p.letGo(task)
		defer func() { fails(); p.hold(upgrade.Task(task)) }()
		return p.within(outcome(batchv1.JobFailed))
	}
	return p.within(func() bool { return p.pods(task, "") > 0 })
}

func (p *performance) letGo(what string) {
	if letGo := p.held[what]; letGo != nil {
		letGo()
		delete(p.held, what)
	}
}

// pods counts those that run.
func (p *performance) pods(component, image string) (count int) {
	for _, pod := range p.PodsOf(p.t, harness.Pods{Namespace: p.NS, Instance: p.Name, Component: component, Image: image}) {
		if pod.Status.Phase == corev1.PodRunning {
			count++
		}
	}
	return count
}

// cleanUp deletes the Jobs that are over.
func (p *performance) cleanUp() {
	for _, task := range upgrade.Tasks {
		found := p.Job(task)
		if found == nil || story.OutcomeOf(found) == "" {
			continue
		}
		if err := p.Client.Delete(p.t.Context(), found, client.PropagationPolicy("Background")); client.IgnoreNotFound(err) != nil {
			p.t.Errorf("delete Job %s: %v", found.Name, err)
		}
	}
}

// within waits for a while; it also sees to it that a killed controller comes back.
func (p *performance) within(comes func() bool) bool {
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		p.Now()
		if comes() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}
