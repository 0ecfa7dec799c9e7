package upgrade

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/c5c3/openstack-upgrade/test/faults/line"
	"github.com/c5c3/openstack-upgrade/test/faults/share"
)

// exploration is a world, what may be done to it, and how often.
type exploration struct {
	name                 string
	begins               world
	opens                string // what leads from an object that is installed to where it begins, as a plan says it
	acts                 []interference
	people, failures     int8
	kills, stops, pauses int8
	forgets              bool // the controller does not know what it has written itself
	trusts               bool // it believes caches that it has taken over with the lead
}

func (e exploration) by(decide planner) *model {
	e.begins.people, e.begins.failures = e.people, e.failures
	m := newModel(decide, (*world).unsettled, e.acts...)
	m.forgets, m.trusts = e.forgets, e.trusts
	return m.from(e.begins, e.kills, e.stops, e.pauses)
}

// plan is a path through it as a plan that can be replayed.
func (e exploration) plan(path []string) string {
	opens := e.opens
	if opens == "" {
		opens = "install; ask for 2026.2 with r:2026.2"
	}
	return opens + "; " + plan(path)
}

func upgraded2026(replicas int8) world {
	w := atRest2026("r:2026.1", replicas)
	upward.do(&w)
	return w
}

const keyedOpening = "install; ask for r:2026.2"

func upgradedKeyed() world {
	w := keyedAtRest("r:2026.1", 1)
	turns("r:2026.2").do(&w)
	return w
}

// explorations are those of every `make test`, and those that take their time.
func explorations(whole bool) []exploration {
	keyed := []interference{turns("r:2026.2"), turns("r:2026.1"), turns("r:2026.2-p1")}
	some := []exploration{
		{name: "an upgrade", begins: upgraded2026(1), acts: []interference{backward, rebuilt}, people: 1, failures: 1, kills: 1, stops: 1, pauses: 1},
		{name: "an upgrade by tag", begins: upgradedKeyed(), opens: keyedOpening, acts: keyed[1:], people: 1, kills: 1, stops: 1, pauses: 1},
	}
	if !whole {
		return some
	}
	fresh := world{replicas: 1, wish: wish("2026.1", "r:2026.1")}
	often := []interference{upward, backward, documented, rebuilt, loss, newConfig, cleanUp}
	return append(some,
		exploration{name: "an upgrade and everything people do", begins: upgraded2026(1), acts: often, people: 1, failures: 1, kills: 1, stops: 1, pauses: 1},
		exploration{name: "an upgrade by tag and everything people do", begins: upgradedKeyed(), opens: keyedOpening, acts: append(slices.Clone(keyed), newConfig, cleanUp, loss), people: 1, failures: 1, kills: 1, stops: 1, pauses: 1},
		exploration{name: "two caches that stop", begins: upgraded2026(1), acts: often, people: 1, failures: 1, stops: 2},
		exploration{name: "two edits and a cache that stops", begins: upgraded2026(1), acts: []interference{upward, backward, rebuilt}, people: 2, stops: 1},
		exploration{name: "two edits and a controller that pauses", begins: upgraded2026(1), acts: often, people: 2, pauses: 1},
		exploration{name: "two kills", begins: upgraded2026(1), acts: often, people: 2, failures: 1, kills: 2},
		exploration{name: "two pods", begins: upgraded2026(2), acts: []interference{backward, rebuilt, cleanUp}, people: 1, kills: 1, stops: 1},
		exploration{name: "a fresh install", begins: fresh, opens: "rollout", acts: []interference{patched, newConfig, cleanUp, loss}, people: 2, failures: 1, kills: 1, stops: 1, pauses: 1},
	)
}

// TestEveryWalkEndsWhateverTheCachesShowAndWhereverTheControllerIsKilled explores with the controller's writes apart from
// each other, and with caches that lag. What a controller has written itself it does not forget.
func TestEveryWalkEndsWhateverTheCachesShowAndWhereverTheControllerIsKilled(t *testing.T) {
	t.Parallel()
	moments, ends, wrong, began := 0, 0, 0, time.Now()
	result := line.Result{Name: "model, moments visited"}
	for _, e := range explorations(share.Whole()) {
		start, m := time.Now(), e.by(Decide)
		t.Logf("%-45s %8d moments, %6d worlds, %5d ends, %s", e.name, len(m.moments), len(m.worlds), m.ends, time.Since(start).Round(time.Millisecond))
		moments, ends = moments+len(m.moments), ends+m.ends
		if m.problem != "" {
			t.Errorf("%s: %s\nThe same, on the real thing: make faults RUN=TheModelFound PLAN='%s'", e.name, m.problem, e.plan(m.shortest))
			wrong++
		}
	}
	assert.NotZero(t, ends)
	assert.Greater(t, moments, 100_000)
	result.Plans, result.Passed, result.Took = moments, moments-wrong, time.Since(began)
	result.Print()
}
