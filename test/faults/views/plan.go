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

// retold is within what time client-go tells an event again that did not get through.
const retold = 12 * time.Second

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
	w := &waiter{at: s.at, ready: func() bool { return true }, kept: func() bool { return true }}
	kept, watches := 0, 0
	p.Disturbed = "(" + s.String() + ")"
	if s.what == stale || s.what == missed {
		w.kept = func() bool { return kept > 0 }
	}
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
		time.AfterFunc(lasting, func() { end(); close(done) })
	}
	p.Look = w.look
	p.Calm = func() {
		if over != nil {
			<-over
			// Who saw nothing looks again after a pause that has grown meanwhile.
			for deadline := time.Now().Add(relisting); p.Wire.Watches() < watches && time.Now().Before(deadline); {
				time.Sleep(100 * time.Millisecond)
			}
			kept = p.Wire.Kept(p.Name)
		}
		if over != nil && s.what == unreachable {
			time.Sleep(retold)
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
