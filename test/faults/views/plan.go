package views

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/faults/story"
	"github.com/c5c3/openstack-upgrade/test/faults/wire"
)

// plan is a story and what is done to the sight of its controller.
type plan struct {
	story.Story
	sight
}

// String is how a plan is asked for.
func (p plan) String() string { return p.Story.String() + ": " + p.sight.String() }

// command runs a plan again.
func (p plan) command() string {
	return fmt.Sprintf("make faults RUN=WhateverTheControllerSees PLAN='%s'", p)
}

// sight is a disturbance, and the moment at which it begins.
type sight struct {
	what     what
	resource string
	at       moment
}

type what string

const (
	stale       what = "stale view"
	missed      what = "missed edges"
	unreachable what = "unreachable"
	wiped       what = "status wiped"
)

// relisting is how long it may take until a watch that broke is there again: pauses grow while a server is away.
const relisting = time.Minute

// moment is when a disturbance begins: when the object is first seen in a phase.
type moment string

const (
	first moment = "the beginning"
	after moment = "the end of the walk"
)

func (s sight) String() string {
	if s.resource == "" {
		return fmt.Sprintf("%s at %s", s.what, s.at)
	}
	return fmt.Sprintf("%s of %s at %s", s.what, s.resource, s.at)
}

// moments are those that a story comes to: its phases and, where a walk ends, what follows.
func moments(phases []upgrade.Phase) []moment {
	if len(phases) == 0 {
		return []moment{first}
	}
	found := make([]moment, 0, len(phases)+1)
	for _, phase := range phases {
		found = append(found, moment(phase))
	}
	return append(found, after)
}

// waiter tells when its moment has come, and calls once.
type waiter struct {
	at     moment
	walked bool
	ready  func() bool // for what is to be done
	once   sync.Once
	do     func()
	met    bool
	kept   func() bool // whether anything was kept from the controller
}

// look is what a play shows of its object.
func (w *waiter) look(o story.Object) {
	phase := o.State().Phase
	come := w.at == first || moment(phase) == w.at && phase != upgrade.Steady || w.at == after && w.walked && phase == upgrade.Steady
	w.walked = w.walked || phase != upgrade.Steady
	if come && w.ready() {
		w.once.Do(func() { w.met = true; w.do() })
	}
}

// disturb has a play disturbed at the moment, and undisturbed a while later at the latest when its story has ended.
func (s sight) disturb(p *story.Play, lasting time.Duration) *waiter {
	watches, edges, kept := 0, 0, s.kept(0, 0, 0)
	w := &waiter{at: s.at, ready: func() bool { return true }, kept: func() bool { return kept }}
	if s.what == wiped {
		w.ready = p.Heard // before that, nothing but the record tells of the walk that it is of
	}
	var over <-chan struct{}
	begin, end := s.deeds(p)
	w.do = func() {
		done := make(chan struct{})
		over = done
		watches = p.Wire.Watches()
		begin()
		p.CatchUp() // what was there before was not missed
		before := p.Moments(s.resource)
		time.AfterFunc(lasting, func() {
			edges = p.Moments(s.resource) - before
			end()
			close(done)
		})
	}
	p.Look = w.look
	p.Calm = func() {
		if over != nil {
			<-over
			// Who saw nothing looks again after a pause that has grown meanwhile.
			for deadline := time.Now().Add(relisting); p.Wire.Watches() < watches && time.Now().Before(deadline); {
				time.Sleep(100 * time.Millisecond)
			}
			kept = s.kept(p.Wire.Kept(p.Name), p.Wire.Relists(), edges)
		}
		if over != nil && s.what == unreachable {
			time.Sleep(story.Retold)
		}
		if s.what == wiped {
			p.Await("that a status was lost not to be said any more, which is held back for a while", func(o story.Object) string {
				for _, c := range o.Record().Conditions {
					if strings.Contains(c.Message, "Status was lost") {
						return c.Message
					}
				}
				return ""
			})
		}
	}
	return w
}

// kept is whether anything was kept from the controller: words that were held back, or moments of what had to be listed
// anew. Whoever lists anew what has stayed as it was has missed nothing.
func (s sight) kept(held, relists, edges int) bool {
	switch s.what {
	case stale:
		return held > 0
	case missed:
		return relists > 0 && edges > 0
	default:
		return true
	}
}

func (s sight) deeds(p *story.Play) (begin, end func()) {
	switch s.what {
	case stale:
		return func() { p.Wire.Freeze(s.resource) }, func() { p.Wire.Thaw(s.resource) }
	case missed:
		return func() { p.Wire.Blind(s.resource) }, func() { p.Wire.See(s.resource) }
	case unreachable:
		return p.Wire.Down, p.Wire.Up
	case wiped:
		return p.Wipe, func() {}
	}
	return func() {}, func() {}
}

// resources are what a controller sees: the object itself and its children, each alone, and all of it.
func resources(s story.Story) []string {
	return []string{s.Resource, "jobs", "pods", "deployments", wire.Everything}
}
