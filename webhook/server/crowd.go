package server

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// How many connections are held at a time. An API server changes at most a few
// hundred objects at once, and each connection costs some 50 KiB.
const (
	reviewPlaces = 256
	otherPlaces  = 64
	// patience is how long a connection may be busy before it counts as one
	// that only holds a place: a review takes milliseconds.
	patience = 250 * time.Millisecond
)

// crowd is a listener with a bounded number of connections. When all places
// are taken, the newcomer is let in nevertheless and another makes room: of
// the peer that holds the most, the connection that has been quiet the
// longest. So whoever opens connections without end pushes out his own, and
// an API server still gets its turn.
type crowd struct {
	net.Listener
	places  int
	crowded func()

	lock   sync.Mutex
	guests map[*guest]bool
	freed  chan struct{}
}

// guest is one connection that holds a place.
type guest struct {
	net.Conn
	crowd *crowd
	peer  string
	busy  bool
	since time.Time
}

func newCrowd(listener net.Listener, places int, crowded func()) *crowd {
	return &crowd{Listener: listener, places: places, crowded: crowded, guests: map[*guest]bool{}, freed: make(chan struct{}, 1)}
}

// Accept takes a connection, and a place for it.
func (c *crowd) Accept() (net.Conn, error) {
	connection, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g := &guest{Conn: connection, crowd: c, peer: peerOf(connection)}
	for !c.admit(g) {
		// Everybody is being served: a place is free in a moment.
		select {
		case <-c.freed:
		case <-time.After(patience / 10):
		}
	}
	return g, nil
}

func (c *crowd) admit(g *guest) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	now := time.Now()
	if len(c.guests) >= c.places {
		out := c.quietest(now)
		if out == nil {
			return false
		}
		delete(c.guests, out)
		c.crowded()
		// Close may wait for nothing here: it is a plain TCP connection.
		_ = out.Conn.Close()
	}
	g.since = now
	c.guests[g] = true
	return true
}

// quietest is the guest to make room, nil while all of its peer are being
// served. A peer that holds less is left alone even then.
func (c *crowd) quietest(now time.Time) *guest {
	held := map[string]int{}
	most := ""
	for g := range c.guests {
		if held[g.peer]++; held[g.peer] > held[most] {
			most = g.peer
		}
	}
	var out *guest
	for g := range c.guests {
		switch {
		case g.peer != most, g.busy && now.Sub(g.since) < patience:
		case out == nil, g.since.Before(out.since):
			out = g
		}
	}
	return out
}

// Close gives the place back.
func (g *guest) Close() error {
	c := g.crowd
	c.lock.Lock()
	delete(c.guests, g)
	c.lock.Unlock()
	select {
	case c.freed <- struct{}{}:
	default:
	}
	return g.Conn.Close()
}

// follow is told by the HTTP server what its connections do.
func (c *crowd) follow(connection net.Conn, state http.ConnState) {
	if secured, ok := connection.(*tls.Conn); ok {
		connection = secured.NetConn()
	}
	g, ours := connection.(*guest)
	if !ours || state != http.StateActive && state != http.StateIdle {
		return
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	g.busy, g.since = state == http.StateActive, time.Now()
}

// held counts the places that are taken.
func (c *crowd) held() int {
	c.lock.Lock()
	defer c.lock.Unlock()
	return len(c.guests)
}

func peerOf(connection net.Conn) string {
	if address, ok := connection.RemoteAddr().(*net.TCPAddr); ok {
		return address.IP.String()
	}
	return connection.RemoteAddr().String()
}
