package upgrade

import (
	"fmt"
	"hash/maphash"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// interference is something that people, or accidents, do to a world.
type interference struct {
	says string
	do   func(*world)
}

func asks(release, image string) interference {
	return interference{"ask for " + release + " with " + image, func(w *world) { w.ask(release, image) }}
}

// explorer visits every world that can come about. It demands that nothing is
// ever wrong, that no chain of happenings returns to where it was, and that
// every end is a good one: so each walk ends, in whatever order things happen.
type explorer struct {
	seed    maphash.Seed
	seen    map[uint64]bool // true while the worlds after it are being visited
	acts    []interference
	path    []string
	ends    int
	good    func(*world) string
	problem string
}

func explore(good func(*world) string, acts ...interference) *explorer {
	return &explorer{seed: maphash.MakeSeed(), seen: map[uint64]bool{}, acts: acts, good: good}
}

func (e *explorer) from(says string, w world) *explorer {
	e.visit(says, &w)
	return e
}

func (e *explorer) visit(says string, w *world) {
	if e.problem != "" {
		return
	}
	e.path = append(e.path, says)
	defer func() { e.path = e.path[:len(e.path)-1] }()
	key := maphash.Comparable(e.seed, *w)
	if open, known := e.seen[key]; known {
		if open {
			e.complain("this goes round in circles", w)
		}
		return
	}
	if what := w.wrong(); what != "" {
		e.complain(what, w)
		return
	}
	e.seen[key] = true
	happenings := w.happenings()
	for i := range happenings {
		e.visit(happenings[i].says, &happenings[i].then)
	}
	if len(happenings) == 0 {
		e.ends++
		if what := e.good(w); what != "" {
			e.complain("a bad end: "+what, w)
		}
	}
	for _, act := range e.acts {
		then := *w
		if act.do(&then); w.people > 0 && then != *w {
			then.people--
			e.visit(strings.ToUpper(act.says), &then)
		}
	}
	e.seen[key] = false
}

func (e *explorer) complain(what string, w *world) {
	if e.problem == "" {
		e.problem = fmt.Sprintf("%s\nafter %s\nin %+v", what, strings.Join(e.path, "; "), *w)
	}
}

func (e *explorer) report(t *testing.T) {
	t.Helper()
	t.Logf("%d worlds, %d ends", len(e.seen), e.ends)
	require.Empty(t, e.problem)
	assert.NotZero(t, e.ends)
}
