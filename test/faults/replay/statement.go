package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/c5c3/openstack-upgrade/test/faults/wire"
)

// deed is what a statement is about.
type deed string

const (
	install   deed = "install" // and wait until it is done
	ask       deed = "ask for"
	write     deed = "write"
	kill      deed = "kill after:"
	job       deed = "job"
	freeze    deed = "freeze"
	thaw      deed = "thaw"
	clean     deed = "finished Jobs are deleted"
	lose      deed = "the status is lost"
	rollout   deed = "rollout" // comes by itself
	pod       deed = "pod of"
	configure deed = "the configuration changes"
	pause     deed = "pause" // cannot be brought about from outside
	restart   deed = "kill"
)

var deeds = []deed{install, ask, write, kill, job, freeze, thaw, clean, lose, rollout, pod, configure, pause, restart}

// statement is one part of a plan.
type statement struct {
	deed deed
	rest string
}

func (s statement) String() string { return strings.TrimSpace(string(s.deed) + " " + s.rest) }

// parse reads a plan: statements between semicolons.
func parse(plan string) ([]statement, error) {
	var all []statement
	for _, text := range strings.Split(plan, ";") {
		text = strings.TrimSpace(text)
		at := slices.IndexFunc(deeds, func(d deed) bool { return text == string(d) || strings.HasPrefix(text, string(d)+" ") })
		if at < 0 {
			return nil, fmt.Errorf("%q is no statement: it must begin with one of %q", text, deeds)
		}
		all = append(all, statement{deeds[at], strings.TrimSpace(strings.TrimPrefix(text, string(deeds[at])))})
	}
	return all, nil
}

// points are the writes that a statement speaks of.
func (s statement) points() (all []wire.Point, err error) {
	for _, text := range strings.Split(s.rest, ", ") {
		if text == "" {
			continue
		}
		point, err := wire.ParsePoint(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
		all = append(all, point)
	}
	return all, nil
}

// tag is that of the image that a statement speaks of.
func (s statement) tag() string {
	_, tag, _ := strings.Cut(s.rest, "r:")
	tag, _, _ = strings.Cut(tag, " ")
	return tag
}

// lacking is why a schedule of which this came about has shown nothing: it holds what cannot be done, the controller was
// not killed where it says so, or too little came about of what it waits for. A planner without its hole leaves out what
// the hole brings, at the end; but that is not all that comes once a cache stands still or the controller was killed.
func lacking(plan []statement, came []bool) (lacks []string) {
	var all, late tried
	disturbed := false
	for i, s := range plan {
		switch {
		case s.deed == configure, s.deed == pause, s.deed == install:
			lacks = append(lacks, s.String()+": this cannot be done from outside")
		case s.deed == kill && !came[i]:
			lacks = append(lacks, s.String()+": the write did not come, so the controller was not killed")
		}
		if s.canMiss() {
			all.count(came[i])
		}
		if disturbed && (s.canMiss() || s.deed == write) {
			late.count(came[i])
		}
		disturbed = disturbed || s.deed == freeze || s.deed == kill || s.deed == restart
	}
	if 2*all.came < all.waited {
		lacks = append(lacks, fmt.Sprintf("only %d of %d statements came about", all.came, all.waited))
	}
	if late.waited > 0 && late.came == 0 {
		lacks = append(lacks, "nothing came about after the first disturbance")
	}
	return lacks
}

// tried counts what was waited for.
type tried struct{ waited, came int }

func (y *tried) count(came bool) {
	y.waited++
	if came {
		y.came++
	}
}

// canMiss is whether a statement may not come about: it waits for something of the controller, or of a Job that the
// controller has made.
func (s statement) canMiss() bool {
	switch s.deed {
	case write, kill:
		points, err := s.points()
		return err == nil && slices.ContainsFunc(points, func(p wire.Point) bool { return !strings.HasSuffix(p.Resource, "/status") })
	case job:
		return !strings.HasSuffix(s.rest, " ends")
	case pod:
		return true
	default:
		return false
	}
}
