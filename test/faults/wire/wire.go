package wire

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// Wire is the line between one controller and the API server.
type Wire struct {
	server   *httptest.Server
	upstream *url.URL
	client   http.RoundTripper
	config   *rest.Config

	mu       sync.Mutex
	changed  *sync.Cond
	kill     func()
	faults   []Fault
	hits     []int // how often each fault was done
	refused  func(Point) bool
	writes   []Write
	counts   map[Point]int
	number   int
	events   map[string]string // what they tell, by their names
	streams  map[*stream]struct{}
	frozen   map[string]bool
	blind    map[string]bool
	missed   map[string]bool // of which a watch was cut or turned away while blind
	outdated map[string]bool
	kept     []byte // what was held back since Freeze
	relists  int    // how often a watch had to list anew since Blind
	down     bool
	holding  bool
	dropped  bool
	onHold   func()
}

// Everything names all resources where some can be named.
const Everything = "*"

// Open lays the wire of somebody who would talk to the API server with this configuration. It is closed after the test.
func Open(t testing.TB, as *rest.Config) *Wire {
	t.Helper()
	upstream, err := url.Parse(as.Host)
	if err != nil {
		t.Fatalf("read the address of the API server: %v", err)
	}
	tls, err := rest.TLSConfigFor(as)
	if err != nil {
		t.Fatalf("trust the API server: %v", err)
	}
	w := &Wire{
		upstream: upstream,
		// What the process accepts is passed on as it is, packed or not.
		client:  &http.Transport{TLSClientConfig: tls, ForceAttemptHTTP2: true, DisableCompression: true, MaxIdleConnsPerHost: 16},
		kill:    func() {},
		onHold:  func() {},
		refused: func(Point) bool { return false }, counts: map[Point]int{},
		events: map[string]string{}, streams: map[*stream]struct{}{},
		frozen: map[string]bool{}, blind: map[string]bool{}, missed: map[string]bool{}, outdated: map[string]bool{},
	}
	w.changed = sync.NewCond(&w.mu)
	w.server = httptest.NewServer(w)
	w.config = rest.CopyConfig(as)
	w.config.Host, w.config.TLSClientConfig = w.server.URL, rest.TLSClientConfig{}
	t.Cleanup(func() {
		w.mu.Lock()
		w.frozen, w.holding = map[string]bool{}, false
		w.changed.Broadcast()
		w.mu.Unlock()
		w.server.CloseClientConnections()
		w.server.Close()
		w.client.(*http.Transport).CloseIdleConnections()
	})
	return w
}

// Config is what the controller is to talk to the API server with.
func (w *Wire) Config() *rest.Config { return rest.CopyConfig(w.config) }

// OnKill says how the process is ended. It must be dead when kill returns.
func (w *Wire) OnKill(kill func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kill = kill
}

// OnHold says what is to happen, beside everything else, when a write is held.
func (w *Wire) OnHold(then func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onHold = then
}

// hold waits for Release or Drop, and tells which of them came.
func (w *Wire) hold() (dropped bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holding, w.dropped = true, false
	go w.onHold()
	for w.holding {
		w.changed.Wait()
	}
	return w.dropped
}

// Release lets a write that is held go on its way.
func (w *Wire) Release() { w.letGo(false) }

// Drop loses a write that is held, and the connection that it was sent on.
func (w *Wire) Drop() { w.letGo(true) }

func (w *Wire) letGo(dropped bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holding, w.dropped = false, dropped
	w.changed.Broadcast()
}

// Plan has these faults happen, and forgets those planned before.
func (w *Wire) Plan(faults ...Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults, w.hits = slices.Clone(faults), make([]int, len(faults))
}

// Refuse answers such writes as conflicts and takes no note of them, so that something can be prepared under the eyes of
// the process. Nil ends it.
func (w *Wire) Refuse(such func(Point) bool) {
	if such == nil {
		such = func(Point) bool { return false }
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused = such
}

func (w *Wire) refuses(at Point) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused(at)
}

// Unmet are the planned faults whose write has not come, or not as often as planned.
func (w *Wire) Unmet() []Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	var unmet []Fault
	for i, f := range w.faults {
		if w.hits[i] < max(1, f.Times) {
			unmet = append(unmet, f)
		}
	}
	return unmet
}

// Writes are those that have come so far, in the order in which they came, leases aside.
func (w *Wire) Writes() []Write {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.writes)
}

// arrive numbers a write and finds what is to be done to it. A fault that is about what was committed is met only then.
func (w *Wire) arrive(at Point) (index int, deed Deed, kill func(), met func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at.Nth = 0
	w.counts[at]++
	at.Nth = w.counts[at]
	if !at.Event() {
		w.number++
	}
	write := Write{Point: at, Number: w.number}
	w.writes = append(w.writes, write)
	met = func() {}
	for i, f := range w.faults {
		switch {
		case !f.meets(write):
		case f.Deed == KillAfter || f.Deed == LoseReply || f.Deed == TimeOut:
			deed, met = f.Deed, w.hit(w.hits, i)
		default:
			deed = f.Deed
			w.hits[i]++
		}
	}
	return len(w.writes) - 1, deed, w.kill, met
}

// hit counts for a plan, also if another has been made since.
func (w *Wire) hit(hits []int, fault int) func() {
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		hits[fault]++
	}
}

func (w *Wire) answered(index, code int, committed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes[index].Code = code
	w.writes[index].Committed = w.writes[index].Committed || committed
}

// Freeze holds back what watches tell of these resources ("pods"; Everything for all) until Thaw. A watch that begins
// meanwhile still tells what is there when it begins.
func (w *Wire) Freeze(resources ...string) { w.mark(w.frozen, resources) }

// Kept is how often a name was told by watches that were held back since Freeze. Zero is that nothing about it was kept
// from the process.
func (w *Wire) Kept(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Count(w.kept, []byte(name))
}

// Relists is how often a watch had to list anew since Blind. Whether anything had happened that it was not told, only who
// has seen it knows.
func (w *Wire) Relists() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.relists
}

// Thaw lets go what was held back, in its order, and all that follows.
func (w *Wire) Thaw(resources ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	unmark(w.frozen, resources)
	w.changed.Broadcast()
}

// Cut ends the watches of these resources; the process may begin them anew.
func (w *Wire) Cut(resources ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut(resources)
}

// Blind cuts the watches of these resources and lets none begin until See.
func (w *Wire) Blind(resources ...string) {
	w.mark(w.blind, resources)
	w.Cut(resources...)
}

// See lets watches of these resources begin again, but not from where they were: the process must list, and so does not
// learn of what came and went meanwhile.
func (w *Wire) See(resources ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for resource := range w.missed {
		if slices.Contains(resources, resource) || slices.Contains(resources, Everything) {
			w.outdated[resource] = true
			delete(w.missed, resource)
		}
	}
	unmark(w.blind, resources)
}

// Watches is how many are open.
func (w *Wire) Watches() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.streams)
}

// Down makes the API server unreachable: every connection is cut, and no request is answered until Up.
func (w *Wire) Down() {
	w.mu.Lock()
	w.down = true
	w.mu.Unlock()
	w.server.CloseClientConnections()
}

// Up ends it.
func (w *Wire) Up() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = false
}

func (w *Wire) mark(set map[string]bool, resources []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept, w.relists = nil, 0
	for _, resource := range resources {
		set[resource] = true
	}
}

func unmark(set map[string]bool, resources []string) {
	for _, resource := range resources {
		delete(set, resource)
		if resource == Everything {
			clear(set)
		}
	}
}

func marked(set map[string]bool, resource string) bool { return set[resource] || set[Everything] }

// hangUp is what a process sees of a network that is gone.
func hangUp(out http.ResponseWriter) {
	if conn := hijack(out); conn != nil {
		conn.Close()
	}
}

func hijack(out http.ResponseWriter) net.Conn {
	hijacker, ok := out.(http.Hijacker)
	if !ok {
		return nil
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		return nil // it is gone already
	}
	return conn
}
