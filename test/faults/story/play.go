package story

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/faults/history"
	"github.com/c5c3/openstack-upgrade/test/faults/wire"
)

const (
	// bound is how long anything may take that is waited for: far more than it does on a machine that does a dozen
	// stories at a time, and something else besides.
	bound = 4 * time.Minute
	// silence is how long the controller must have written nothing for a story to be over.
	silence = 2 * time.Second
	// glimpse is the time between two looks: a dozen stories look at one API server.
	glimpse = 200 * time.Millisecond
	// Retold is within what time client-go tells an event again that did not get through: after 10 to 12.5 seconds.
	Retold = 13 * time.Second
	// alias stands for the name of the object in everything that is compared or planned.
	alias = "images"
)

// Play is one object that lives one story.
type Play struct {
	*Lane
	Story
	// Name is that of the object.
	Name string
	// Look, if set, sees the object each time that the story does, for what is to happen at a certain moment.
	Look func(Object)
	// Calm, if set, is called when the story has come to its end, and what it lets go must be quiet afterwards.
	Calm func()
	// Disturbed is the command that disturbs a story in the same way again, for people; empty where nothing was done.
	Disturbed string

	t       testing.TB
	first   int         // write of the lane
	repair  func()      // what was scripted to fail
	release func()      // what was scripted to hang
	heard   atomic.Bool // of the record that was written by hand
}

// Live lives the story with an object of this name, which must be new in the lane. disturb, if any, is called when
// everything is prepared and nothing has happened yet.
func (s Story) Live(t testing.TB, l *Lane, name string, disturb func(*Play)) (Outcome, *Play) {
	t.Helper()
	p := &Play{Lane: l, Story: s, Name: name, t: t}
	l.tend(t)
	// The controller may see the object from its first moment on, but do nothing about it before the record is written.
	l.Wire.Refuse(p.mine)
	p.create()
	p.first = len(l.Wire.Writes())
	if disturb != nil {
		disturb(p)
	}
	l.Wire.Refuse(p.premature())
	s.tell(p)
	if p.Calm != nil {
		p.Calm()
	}
	p.fallSilent()
	l.rest(p)
	return p.outcome(), p
}

func (p *Play) create() {
	p.t.Helper()
	if p.prepare != nil {
		p.prepare(p)
	}
	o := p.made(p.NS, p.Name)
	p.ask(o, p.wish)
	p.surely("create the "+p.Kind.Kind, func(ctx context.Context) error { return p.Client.Create(ctx, o) })
	if p.from.Installed == "" {
		return
	}
	p.Eventually(p.t, bound, "the record to be written", func(ctx context.Context) string {
		if err := p.Client.Get(ctx, p.key(), o); err != nil {
			return err.Error()
		}
		o.SetState(p.state())
		if err := p.Client.Status().Update(ctx, o); err != nil {
			return err.Error()
		}
		return ""
	})
}

// premature is what the controller would still do for an object without a record, if it has not heard of the record
// yet: the sync of a fresh install. What serves is made first by one who has.
func (p *Play) premature() func(wire.Point) bool {
	if p.from.Installed == "" {
		return nil
	}
	return func(at wire.Point) bool {
		if at.Resource == "deployments" && p.mine(at) {
			p.heard.Store(true)
		}
		return !p.heard.Load() && at.Resource == "jobs" && at.Name == v1alpha1.JobName(p.Name, upgrade.Sync)
	}
}

// Heard tells whether the controller has acted on the record that was written by hand, so that it is more than a record.
func (p *Play) Heard() bool { return p.from.Installed == "" || p.heard.Load() }

// state is the record with which the story begins.
func (p *Play) state() upgrade.State {
	s := p.from
	s.InstalledImage = p.Image(s.Installed)
	if s.Walking() {
		s.TargetImage, s.Attempt = p.Image(s.Target), 1
		if p.Facts.Upgrade.ReadsOwnSchemaOnly {
			s.Ahead = s.Target
		}
	}
	return s
}

// mine is whether a write is about the object of the play, or a child of it.
func (p *Play) mine(at wire.Point) bool {
	return at.Name == p.Name || strings.HasPrefix(at.Name, p.Name+"-")
}

// Plan disturbs the play by these faults, which speak of the object by its alias.
func (p *Play) Plan(faults ...wire.Fault) {
	planned := make([]wire.Fault, 0, len(faults))
	for _, f := range faults {
		if rest, is := strings.CutPrefix(f.At.Name, alias); is {
			f.At.Name = p.Name + rest
		}
		planned = append(planned, f)
	}
	p.Wire.Plan(planned...)
}

// Points are the writes of the play so far, by the alias of the object.
func (p *Play) Points() (points []wire.Point) {
	for _, w := range p.Wire.Writes()[p.first:] {
		if rest, is := strings.CutPrefix(w.Name, p.Name); is {
			w.Name = alias + rest
			points = append(points, w.Point)
		}
	}
	return points
}

func (p *Play) key() client.ObjectKey { return client.ObjectKey{Namespace: p.NS, Name: p.Name} }

// Now reads the object, and tends the lane.
func (p *Play) Now() Object {
	p.t.Helper()
	p.tend(p.t)
	o := p.Empty()
	p.surely("read the "+p.Kind.Kind, func(ctx context.Context) error { return p.Client.Get(ctx, p.key(), o) })
	if p.Look != nil {
		p.Look(o)
	}
	return o
}

// Await waits until the object lacks nothing.
func (p *Play) Await(what string, lack func(Object) string) {
	p.t.Helper()
	p.await(what, func() string { return lack(p.Now()) })
}

// AwaitPod waits until a pod of a component runs; image may be the end of its image.
func (p *Play) AwaitPod(component, image string) {
	p.t.Helper()
	p.await("a pod of "+component+" to run", func() string {
		p.Now()
		for _, pod := range p.pods(component, image) {
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				return ""
			}
		}
		return "none does"
	})
}

func (p *Play) await(what string, lack func() string) {
	p.t.Helper()
	for deadline, last := time.Now().Add(bound), ""; ; time.Sleep(glimpse) {
		if last = lack(); last == "" {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("waited %s for %s: %s\nthe whole history:\n%s", bound, what, last, history.Tell(p.Told.Whole(p.t, p.subject(p.NS, p.Name))))
		}
	}
}

// fallSilent waits until the controller has written nothing for a while.
func (p *Play) fallSilent() {
	p.t.Helper()
	count, since := -1, time.Now()
	p.await("the controller to write nothing any more", func() string {
		p.tend(p.t)
		points := p.Points()
		if len(points) != count {
			count, since = len(points), time.Now()
		}
		return lacks(time.Since(since) >= silence, "%v", points[max(0, len(points)-5):])
	})
}

// Wipe empties the status, as a restore without subresources does.
func (p *Play) Wipe() {
	p.t.Helper()
	p.Eventually(p.t, bound, "the status to be lost", func(ctx context.Context) string {
		o := p.Empty()
		if err := p.Client.Get(ctx, p.key(), o); err != nil {
			return err.Error()
		}
		*o.Record() = v1alpha1.ServiceStatus{}
		if err := p.Client.Status().Update(ctx, o); err != nil {
			return err.Error()
		}
		return ""
	})
}
