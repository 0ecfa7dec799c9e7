package upgrade

import (
	"fmt"
	"strings"
)

// moment is a world together with the controller in it: what its caches show, and where it is between the writes of one
// look. The numbers stand for worlds and thoughts of the model, so that moments are small.
type moment struct {
	now     int32
	past    [2]int32 // what stopped caches show: of objects, and of pods
	stopped cache
	knows   memory // what the controller has written that stopped caches do not show, and it reads past them
	doubt   bool   // it leads since caches have stopped, and knows nothing of what was done before
	thought int32  // what is being done, if something is: the controller was paused between its look and a write
	done    int8   // how many writes of it
	kills   int8   // how often the controller may still be killed,
	stops   int8   // a cache may stop, each for as long as it likes,
	pauses  int8   // and the controller may pause
}

// thought is what the controller made of a sight.
type thought struct{ writes []write }

type sightKey struct {
	now     int32
	past    [2]int32
	stopped cache
	knows   memory
	doubt   bool
}

// model visits every moment that can come about, the nearest first. Its demands: nothing is ever wrong; every end is a
// good one; and what happens by itself never returns to where it was, so whatever has happened, a good end is reached.
type model struct {
	decide planner
	good   func(*world) string
	acts   []interference
	// forgets is set for a controller that believes caches that are behind its own writes, trusts for one that believes
	// those that it has taken over with the lead.
	forgets, trusts bool

	worlds   []world
	known    map[world]int32
	around   map[int32][]onward
	thoughts []thought
	thinks   map[sightKey]int32
	moments  []moment
	numbers  map[moment]int32
	came     []origin
	next     []int32 // what follows by itself, one moment after the other
	nextFrom []int32
	ends     int
	problem  string
	shortest []string
}

// onward leads from one moment to another; origin is what a moment was first reached by.
type onward struct {
	says string
	to   int32
}

type origin struct {
	from int32
	says string
}

func newModel(decide planner, good func(*world) string, acts ...interference) *model {
	return &model{decide: decide, good: good, acts: acts, known: map[world]int32{}, around: map[int32][]onward{},
		thinks: map[sightKey]int32{}, numbers: map[moment]int32{}, thoughts: []thought{{}}}
}

func (m *model) number(w world) int32 {
	w = w.sorted()
	n, known := m.known[w]
	if !known {
		n = int32(len(m.worlds))
		m.worlds = append(m.worlds, w)
		m.known[w] = n
	}
	return n
}

// from visits everything that can come about from a world.
func (m *model) from(w world, kills, stops, pauses int8) *model {
	m.reach(moment{now: m.number(w), past: [2]int32{m.number(world{}), m.number(world{})}, kills: kills, stops: stops, pauses: pauses}, origin{from: -1})
	for i := 0; i < len(m.moments) && m.problem == ""; i++ {
		m.visit(int32(i))
	}
	if m.problem == "" {
		m.nextFrom = append(m.nextFrom, int32(len(m.next)))
		m.findCircle()
	}
	return m
}

func (m *model) reach(at moment, by origin) int32 {
	n, known := m.numbers[at]
	if known {
		return n
	}
	n = int32(len(m.moments))
	m.numbers[at] = n
	m.moments, m.came = append(m.moments, at), append(m.came, by)
	if what := m.worlds[at.now].wrong(); what != "" && m.problem == "" {
		m.complain(what, n)
	}
	return n
}

func (m *model) visit(n int32) {
	at := m.moments[n]
	m.nextFrom = append(m.nextFrom, int32(len(m.next)))
	byItself := func(says string, then moment) {
		if then != at {
			m.next = append(m.next, m.reach(then, origin{n, says}))
		}
	}
	w := m.worlds[at.now]
	m.work(at, byItself)
	for _, happening := range m.surroundings(at.now) {
		then := at
		then.now = happening.to
		byItself(happening.says, then)
	}
	for _, c := range caches {
		if at.stopped&c != 0 {
			byItself("thaw "+resourceOf[c], m.stop(at, at.stopped&^c))
		}
	}
	if int(m.nextFrom[n]) == len(m.next) {
		m.ends++
		if what := m.good(&w); what != "" && m.problem == "" {
			m.complain("a bad end: "+what, n)
		}
	}
	m.interfere(n, at, &w)
}

// interfere does what people and accidents may still do.
func (m *model) interfere(n int32, at moment, w *world) {
	for _, act := range m.acts {
		then := *w
		if act.do(&then); w.people > 0 && then != *w {
			then.people--
			after := at
			after.now = m.number(then)
			m.reach(after, origin{n, act.says})
		}
	}
	if at.kills > 0 {
		m.kill(n, at)
	}
	if at.thought != 0 {
		return
	}
	for _, c := range caches {
		if at.stops > 0 && at.stopped&c == 0 {
			then := m.stop(at, at.stopped|c)
			then.stops--
			m.reach(then, origin{n, "freeze " + resourceOf[c]})
		}
	}
	if at.pauses > 0 {
		then := at
		then.thought, then.done = m.think(at), 0
		then.pauses--
		if len(m.thoughts[then.thought].writes) > 0 {
			m.reach(then, origin{n, "pause"})
		}
	}
}

// work is what the controller does by itself: a whole look with all that follows, or the next write after a pause.
func (m *model) work(at moment, byItself func(string, moment)) {
	if at.thought != 0 {
		writes, w := m.thoughts[at.thought].writes, m.worlds[at.now]
		next := writes[at.done]
		refused := next.do(&w)
		then := at
		if !refused {
			then.knows |= m.remembers(at, next)
		}
		then.now = m.number(w)
		if then.done++; refused || int(then.done) == len(writes) {
			then.thought, then.done = 0, 0
		}
		says := "late: " + next.says
		if refused {
			says += " (refused)"
		}
		byItself(says, then)
		return
	}
	w, made, known, _ := m.write(at, len(m.thoughts[m.think(at)].writes))
	then := at
	then.knows |= known
	then.now = m.number(w)
	byItself("write "+strings.Join(made, ", "), then)
}

// remembers is what is known of a write that no cache shows.
func (m *model) remembers(at moment, made write) memory {
	if m.forgets || at.stopped&made.to == 0 {
		return 0
	}
	return made.of
}

// write makes so many writes of the controller's next look, until one is refused.
func (m *model) write(at moment, most int) (w world, made []string, known memory, refused bool) {
	w = m.worlds[at.now]
	for _, next := range m.thoughts[m.think(at)].writes[:most] {
		if next.do(&w) {
			return w, made, known, true
		}
		made = append(made, next.says)
		known |= m.remembers(at, next)
	}
	return w, made, known, false
}

// kill ends the controller between two writes, after the last of which it may not have heard. The next one has caches
// that are as far behind, and remembers nothing.
func (m *model) kill(n int32, at moment) {
	then := at
	then.kills--
	then.knows, then.doubt = 0, at.stopped != 0 && !m.trusts
	if at.thought != 0 || at.knows != 0 {
		then.thought, then.done = 0, 0
		m.reach(then, origin{n, "kill"})
	}
	if at.thought != 0 {
		return
	}
	for most := 1; most < len(m.thoughts[m.think(at)].writes); most++ {
		w, made, _, refused := m.write(at, most)
		if refused {
			return
		}
		then.now = m.number(w)
		m.reach(then, origin{n, "kill after: " + strings.Join(made, ", ")})
	}
}

// stop has some caches show the past, as it was when each of them stopped.
func (m *model) stop(at moment, stopped cache) moment {
	objects, pods := m.worlds[at.past[0]], m.worlds[at.past[1]]
	now, nothing := m.worlds[at.now], world{}
	for _, c := range caches {
		shown := &nothing
		switch {
		case stopped&c == at.stopped&c:
			continue
		case stopped&c != 0:
			shown = &now
		}
		switch c {
		case ownCache:
			objects.showOwn(shown)
		case jobCache:
			objects.jobs = shown.jobs
		case deploymentCache:
			objects.api = shown.api
		case podCache:
			pods.jobs, pods.api.pods = shown.jobs, shown.api.pods
		}
	}
	at.past, at.stopped = [2]int32{m.number(objects), m.number(pods)}, stopped
	at.knows &= knowableOf(stopped)
	at.doubt = at.doubt && stopped != 0
	return at
}

func (m *model) think(at moment) int32 {
	key := sightKey{at.now, at.past, at.stopped, at.knows, at.doubt}
	n, known := m.thinks[key]
	if !known {
		s := looks(m.worlds[at.now], m.worlds[at.past[0]], m.worlds[at.past[1]], at.stopped)
		s.remember(at.knows)
		decision, o := s.decide(m.decide, at.doubt)
		n = int32(len(m.thoughts))
		m.thoughts = append(m.thoughts, thought{s.writes(decision, o)})
		m.thinks[key] = n
	}
	return n
}

func (m *model) surroundings(now int32) []onward {
	steps, known := m.around[now]
	if !known {
		w := m.worlds[now]
		for _, h := range w.surroundings() {
			steps = append(steps, onward{h.says, m.number(h.then)})
		}
		m.around[now] = steps
	}
	return steps
}

// findCircle takes away moments that nothing leads to by itself, until none is left, or only circles and what follows.
func (m *model) findCircle() {
	into := make([]int32, len(m.moments))
	for _, to := range m.next {
		into[to]++
	}
	var free []int32
	for n, count := range into {
		if count == 0 {
			free = append(free, int32(n))
		}
	}
	left := len(m.moments)
	for len(free) > 0 {
		n := free[len(free)-1]
		free = free[:len(free)-1]
		left--
		for _, to := range m.next[m.nextFrom[n]:m.nextFrom[n+1]] {
			if into[to]--; into[to] == 0 {
				free = append(free, to)
			}
		}
	}
	for n, count := range into {
		if left > 0 && count > 0 {
			m.complain("this can go round in circles", int32(n))
			return
		}
	}
}

func (m *model) complain(what string, n int32) {
	path := m.path(n)
	m.problem = fmt.Sprintf("%s\nafter %s\nin %+v", what, strings.Join(path, "; "), m.worlds[m.moments[n].now])
	m.shortest = path
}

func (m *model) path(n int32) []string {
	var path []string
	for ; m.came[n].from >= 0; n = m.came[n].from {
		path = append([]string{m.came[n].says}, path...)
	}
	return path
}
