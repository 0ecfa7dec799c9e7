// Package ledger keeps the books of a stream of requests: how many were sent and how many failed, by kind and by kind
// of connection, how long they took, and the first failures word for word. Whoever sends requests against a service
// that must not fail reports with it, so that all of them count alike.
package ledger

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// keptFailures is how many failures are kept in words; all are counted.
const keptFailures = 20

// Ledger is safe for use by many senders.
type Ledger struct {
	mu       sync.Mutex
	started  time.Time
	kinds    map[string]*account
	failures []Failure
	lost     int
	recent   []time.Duration
}

type account struct {
	sent, failed int
	took         []time.Duration
}

// Failure is one request that failed, or one row that was lost.
type Failure struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"`
	What string    `json:"what"`
}

// Figures are the counts and the latencies of one kind.
type Figures struct {
	Sent   int     `json:"sent"`
	Failed int     `json:"failed"`
	P50    float64 `json:"p50_ms"`
	P99    float64 `json:"p99_ms"`
	Max    float64 `json:"max_ms"`
}

// Summary is the whole of it.
type Summary struct {
	Final    bool               `json:"final"`
	Started  time.Time          `json:"started"`
	Seconds  float64            `json:"seconds"`
	Sent     int                `json:"sent"`
	Failed   int                `json:"failed"`
	Created  int                `json:"created"`
	Lost     int                `json:"lost"`
	Total    Figures            `json:"total"`
	Kinds    map[string]Figures `json:"kinds"`
	Failures []Failure          `json:"failures,omitempty"`
}

// Second is the line that is written every second.
type Second struct {
	Second int     `json:"second"`
	Sent   int     `json:"sent"`
	Failed int     `json:"failed"`
	Lost   int     `json:"lost"`
	P99    float64 `json:"p99_ms"`
	Max    float64 `json:"max_ms"`
}

// Open begins the books.
func Open(now time.Time) *Ledger {
	return &Ledger{started: now, kinds: map[string]*account{}}
}

// Enter books one request; err is why it failed.
func (l *Ledger) Enter(now time.Time, kind string, took time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.kinds[kind]
	if a == nil {
		a = &account{}
		l.kinds[kind] = a
	}
	a.sent++
	a.took = append(a.took, took)
	l.recent = append(l.recent, took)
	if err != nil {
		a.failed++
		l.keep(Failure{now, kind, err.Error()})
	}
}

// Lose books a row that was answered for and is not there.
func (l *Ledger) Lose(now time.Time, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost++
	l.keep(Failure{now, "lost", what})
}

func (l *Ledger) keep(f Failure) {
	if len(l.failures) < keptFailures {
		l.failures = append(l.failures, f)
	}
}

// Sent is how many requests are booked.
func (l *Ledger) Sent() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	sent := 0
	for _, a := range l.kinds {
		sent += a.sent
	}
	return sent
}

// Second sums up since the last time it was asked.
func (l *Ledger) Second(now time.Time) Second {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Second{Second: int(now.Sub(l.started).Seconds()), Lost: l.lost}
	for _, a := range l.kinds {
		s.Sent += a.sent
		s.Failed += a.failed
	}
	figures := figuresOf(l.recent)
	s.P99, s.Max = figures.P99, figures.Max
	l.recent = l.recent[:0]
	return s
}

// Close sums up everything; created is how many rows were answered for.
func (l *Ledger) Close(now time.Time, created int) Summary {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Summary{Final: true, Started: l.started, Seconds: now.Sub(l.started).Seconds(), Created: created, Lost: l.lost,
		Kinds: map[string]Figures{}, Failures: l.failures}
	var all []time.Duration
	for kind, a := range l.kinds {
		figures := figuresOf(a.took)
		figures.Sent, figures.Failed = a.sent, a.failed
		s.Kinds[kind] = figures
		s.Sent += a.sent
		s.Failed += a.failed
		all = append(all, a.took...)
	}
	s.Total = figuresOf(all)
	s.Total.Sent, s.Total.Failed = s.Sent, s.Failed
	return s
}

func figuresOf(took []time.Duration) Figures {
	if len(took) == 0 {
		return Figures{}
	}
	sorted := slices.Sorted(slices.Values(took))
	at := func(share float64) float64 {
		i := min(int(share*float64(len(sorted))), len(sorted)-1)
		return float64(sorted[i].Microseconds()) / 1000
	}
	return Figures{P50: at(0.5), P99: at(0.99), Max: at(1)}
}

// Good tells whether nothing failed and nothing was lost.
func (s Summary) Good() bool { return s.Failed == 0 && s.Lost == 0 }

// String is the line that everybody reads.
func (s Summary) String() string {
	return fmt.Sprintf("requests: %d sent, %d failed", s.Sent, s.Failed)
}

// Lines tells the rest: by kind, and the first failures.
func (s Summary) Lines() []string {
	lines := []string{fmt.Sprintf("in %.0f s; %d rows created, %d lost; latency p50 %.0f ms, p99 %.0f ms, max %.0f ms",
		s.Seconds, s.Created, s.Lost, s.Total.P50, s.Total.P99, s.Total.Max)}
	for _, kind := range slices.Sorted(maps.Keys(s.Kinds)) {
		f := s.Kinds[kind]
		lines = append(lines, fmt.Sprintf("%-12s %6d sent, %d failed, p50 %.0f ms, p99 %.0f ms, max %.0f ms", kind, f.Sent, f.Failed, f.P50, f.P99, f.Max))
	}
	for _, f := range s.Failures {
		lines = append(lines, fmt.Sprintf("%s %s: %s", f.At.UTC().Format("15:04:05.000"), f.Kind, f.What))
	}
	return lines
}
