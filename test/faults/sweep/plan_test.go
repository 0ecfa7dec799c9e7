package sweep

import (
	"fmt"
	"slices"
	"strings"

	"github.com/c5c3/openstack-upgrade/test/faults/share"
	"github.com/c5c3/openstack-upgrade/test/faults/story"
	"github.com/c5c3/openstack-upgrade/test/faults/wire"
)

// plan is a story and what is done to it.
type plan struct {
	story.Story
	faults []wire.Fault
}

// String is how a plan is asked for. The beginning of it asks for all that begin so: "Glance upgrade: kill before".
func (p plan) String() string {
	texts := make([]string, 0, len(p.faults))
	for _, f := range p.faults {
		texts = append(texts, f.String())
	}
	return p.Story.String() + ": " + strings.Join(texts, "; ")
}

// command runs a plan again.
func (p plan) command() string { return fmt.Sprintf("make faults RUN=WhateverIsDone PLAN='%s'", p) }

// crash is whether the controller is killed first of all.
func (p plan) crash() bool {
	return p.faults[0].Deed == wire.KillBefore || p.faults[0].Deed == wire.KillAfter
}

// faultsAt is everything that is done to a write. An event is told beside the work, which neither waits for it nor
// repeats it.
func faultsAt(at wire.Point) (all []wire.Fault) {
	all = append(all, wire.Fault{Deed: wire.KillBefore, At: at}, wire.Fault{Deed: wire.KillAfter, At: at})
	if at.Event() {
		return all
	}
	all = append(all, wire.Fault{Deed: wire.LoseReply, At: at}, wire.Fault{Deed: wire.TimeOut, At: at})
	if at.UpdateLike() {
		for _, times := range []int{1, 5, 50} {
			all = append(all, wire.Fault{Deed: wire.Conflict, At: at, Times: times})
		}
	}
	return all
}

// once are the plans for all writes of the undisturbed stories, each met by one fault.
func (s *sweep) once(stories []story.Story) (found []plan) {
	for _, each := range stories {
		for _, at := range s.known[each.String()].points {
			for _, fault := range faultsAt(at) {
				found = append(found, plan{each, []wire.Fault{fault}})
			}
		}
	}
	return found
}

// again are the plans for the writes that no undisturbed story has: those that came because of a crash, at which there
// is another. A second crash brings writes as well, and so on without end; the sweep ends here.
func (s *sweep) again([]story.Story) []plan {
	slices.SortFunc(s.further, func(a, b plan) int { return strings.Compare(a.String(), b.String()) })
	return s.further
}

// further is what a crash that has brought a new write leads to.
func (p plan) further(at wire.Point) []plan {
	if !p.crash() || len(p.faults) > 1 || at.Event() {
		return nil
	}
	first := p.faults[0]
	return []plan{
		{p.Story, []wire.Fault{first, {Deed: wire.KillBefore, At: at}}},
		{p.Story, []wire.Fault{first, {Deed: wire.KillAfter, At: at}}},
	}
}

// share leaves out plans that are not asked for.
func (s *sweep) share(plans []plan) []plan {
	second := len(plans) > 0 && len(plans[0].faults) > 1
	most := len(plans)
	switch {
	case share.Plan() != "":
		return slices.DeleteFunc(plans, func(p plan) bool { return !p.asked() })
	case share.Whole() && second:
		most = min(most, mostPairs)
	case second:
		most = 0
	case !share.Whole():
		most = min(most, shareOfPlans)
	}
	// In any order: what fails shows early, wherever it is.
	s.rand.Shuffle(len(plans), func(i, j int) { plans[i], plans[j] = plans[j], plans[i] })
	return plans[:most]
}

// asked is whether PLAN asks for a plan: by all of it, or by the beginning of many, which does not end in a count. To come
// to a second crash, the first must have been seen.
func (p plan) asked() bool {
	asked, text := share.Plan(), p.String()
	whole := strings.ContainsRune("0123456789", rune(asked[len(asked)-1]))
	return text == asked || (!whole && strings.HasPrefix(text, asked)) || (p.crash() && strings.HasPrefix(asked, text+"; "))
}
