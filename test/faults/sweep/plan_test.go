package sweep

import (
	"github.com/c5c3/openstack-upgrade/test/faults/share"
	"github.com/c5c3/openstack-upgrade/test/faults/story"
	"github.com/c5c3/openstack-upgrade/test/faults/wire"
)

// plan is a story and what is done to it.
type plan struct {
	story.Story
	fault wire.Fault
}

// String is how a plan is asked for.
func (p plan) String() string { return p.Story.String() + ": " + p.fault.String() }

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

// plans are those for all writes that are known by now and were not planned before. Those that only a disturbed run has
// shown come in the next round, until a round shows none.
func (s *sweep) plans(stories []story.Story) (found []plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, each := range stories {
		known := s.known[each.String()]
		if known == nil {
			continue // it failed undisturbed
		}
		for _, at := range known.points {
			for _, fault := range faultsAt(at) {
				p := plan{each, fault}
				if !s.planned[p.String()] && (share.Plan() == "" || share.Plan() == p.String()) {
					found = append(found, p)
					s.planned[p.String()] = true
				}
			}
		}
	}
	switch {
	case share.Whole() || share.Plan() != "":
		return found
	case s.shared:
		return nil
	}
	s.shared = true
	s.rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	return found[:min(len(found), shareOfPlans)]
}
