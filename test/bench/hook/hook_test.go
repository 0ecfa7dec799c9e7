package hook

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/certs/serving/mint"
	"github.com/c5c3/openstack-upgrade/webhook/admission"
	"github.com/c5c3/openstack-upgrade/webhook/server"
)

// size of a review, and how many connections the API server is likely to keep.
const (
	size        = 8 << 10
	connections = 8
)

func TestAReviewHasTheSizeAskedForAndIsJudged(t *testing.T) {
	for _, wanted := range []int{4 << 10, size, 16 << 10} {
		assert.InDelta(t, wanted, len(Review(t, wanted)), 600)
	}
	h := Start(t, 1)
	admitted, err := h.Dial(t, Review(t, size)).Ask()
	require.NoError(t, err)
	assert.True(t, admitted)
	skipping := bytes.Replace(Review(t, size), []byte(`"openStackRelease":"2026.2"`), []byte(`"openStackRelease":"2027.1"`), 1)
	admitted, err = h.Dial(t, skipping).Ask()
	require.NoError(t, err)
	assert.False(t, admitted)
	now, most := h.Resident(t)
	assert.Positive(t, now)
	assert.GreaterOrEqual(t, most, now)
}

// BenchmarkJudgement is a review without a network: bytes in, answer out.
func BenchmarkJudgement(b *testing.B) {
	judge := admission.New(admission.Policy{}, admission.Kinds...)
	review := Review(b, size)
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		answer, _, err := judge.Review(review)
		took = append(took, time.Since(began))
		if err != nil || !answer.Response.Allowed {
			b.Fatalf("%+v, %v", answer, err)
		}
	}
	report(b, took)
}

// BenchmarkReviewAtTheSocket is one review after the other on one warm connection: what the API server waits for.
func BenchmarkReviewAtTheSocket(b *testing.B) {
	review := Review(b, size)
	caller := Start(b, runtime.NumCPU()).Dial(b, review)
	ask(b, caller, 200)
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		ask(b, caller, 1)
		took = append(took, time.Since(began))
	}
	report(b, took)
	b.ReportMetric(float64(len(review))/1024, "KB-review")
}

// BenchmarkReviewsPerCore is as many reviews as one core of the webhook answers when every connection has always one
// under way. The callers share the other cores; what they cost is not the webhook's, but the rate is no better for it.
func BenchmarkReviewsPerCore(b *testing.B) {
	h := Start(b, 1)
	callers := dial(b, h)
	cpu, began := h.CPU(b), time.Now()
	var took []time.Duration
	for b.Loop() {
		took = append(took, together(b, callers, func(c *Caller, _ int) (all []time.Duration) {
			for range 250 {
				began := time.Now()
				ask(b, c, 1)
				all = append(all, time.Since(began))
			}
			return all
		})...)
	}
	elapsed, spent := time.Since(began), h.CPU(b)-cpu
	report(b, took)
	b.ReportMetric(float64(len(took))/elapsed.Seconds(), "reviews/s")
	b.ReportMetric(float64(spent.Microseconds())/float64(len(took)), "cpu-µs/review")
}

// BenchmarkReviewsAtARate sends reviews at a steady rate to one core of the webhook. A review is late from the moment
// at which it should have been sent.
func BenchmarkReviewsAtARate(b *testing.B) {
	for _, perSecond := range []int{2000, 4000} {
		b.Run(fmt.Sprintf("%d", perSecond), func(b *testing.B) {
			h := Start(b, 1)
			callers := dial(b, h)
			gap := time.Second * connections / time.Duration(perSecond)
			var took []time.Duration
			var lasted time.Duration
			for b.Loop() {
				began := time.Now()
				took = append(took, together(b, callers, func(c *Caller, i int) (all []time.Duration) {
					due := began.Add(gap * time.Duration(i) / connections)
					for range perSecond / connections {
						time.Sleep(time.Until(due))
						ask(b, c, 1)
						all = append(all, time.Since(due))
						due = due.Add(gap)
					}
					return all
				})...)
				lasted += time.Since(began)
			}
			report(b, took)
			b.ReportMetric(float64(len(took))/lasted.Seconds(), "reviews/s")
		})
	}
}

// BenchmarkMemory is what the process holds after its start, what it has held at most when it was busy, and at most
// under attack, while somebody else goes on being answered.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		h := Start(b, 2)
		ask(b, h.Dial(b, Review(b, size)), 1)
		time.Sleep(2 * time.Second)
		idle, _ := h.Resident(b)
		callers := dial(b, h)
		for range 10 {
			together(b, callers, func(c *Caller, _ int) []time.Duration { ask(b, c, 250); return nil })
		}
		_, busy := h.Resident(b)
		attacked, took := underAttack(b)
		b.ReportMetric(idle, "MiB-idle")
		b.ReportMetric(busy, "MiB-busy")
		b.ReportMetric(attacked, "MiB-attacked")
		slices.Sort(took)
		b.ReportMetric(milliseconds(took[len(took)*99/100]), "p99-ms-attacked")
		b.ReportMetric(0, "ns/op")
	}
}

// attack lasts so long.
const attack = 5 * time.Second

// underAttack is the most memory that the process has held, and how long it has let a caller in good faith wait. The
// attackers send the largest bodies allowed, with as many names as fit; bodies nested as deep; endless bodies; and
// bodies that never end.
func underAttack(b *testing.B) (most float64, took []time.Duration) {
	b.Helper()
	h := Start(b, 2)
	good := h.Dial(b, Review(b, size))
	end := time.Now().Add(attack)
	var all sync.WaitGroup
	repeat := func(senders int, deed func(conn net.Conn)) {
		for range senders {
			all.Go(func() {
				for time.Now().Before(end) {
					conn, err := tls.Dial("tcp", h.Address, &tls.Config{RootCAs: mint.Pool(h.Pair), ServerName: "localhost"})
					if err != nil {
						continue // turned away, which is its right
					}
					_ = conn.SetDeadline(end)
					deed(conn)
					_ = conn.Close()
				}
			})
		}
	}
	names, nested := manyNames(3<<20-1024), bytes.Repeat([]byte("["), 3<<20-1024)
	send := func(body []byte) func(net.Conn) {
		return func(conn net.Conn) {
			_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", server.ReviewPath, len(body))
			_, _ = conn.Write(body)
			_, _ = io.ReadAll(io.LimitReader(conn, 1))
		}
	}
	repeat(16, send(names))
	repeat(8, send(nested))
	repeat(8, func(conn net.Conn) {
		_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", server.ReviewPath)
		chunk := append([]byte("10000\r\n"), append(bytes.Repeat([]byte(" "), 0x10000), "\r\n"...)...)
		for range 160 {
			if _, err := conn.Write(chunk); err != nil {
				return
			}
		}
	})
	repeat(100, func(conn net.Conn) {
		_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n", server.ReviewPath)
		for {
			if _, err := conn.Write([]byte("{")); err != nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	for time.Now().Before(end) {
		began := time.Now()
		ask(b, good, 1)
		took = append(took, time.Since(began))
		time.Sleep(10 * time.Millisecond)
	}
	all.Wait()
	_, most = h.Resident(b)
	return most, took
}

// manyNames is a review whose object has as many members as fit into a size.
func manyNames(size int) []byte {
	body := []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","object":{`)
	for i := 0; len(body) < size-20; i++ {
		body = fmt.Appendf(body, `"%x":0,`, i)
	}
	return append(body, `"":0}}}`...)
}

func dial(b *testing.B, h *Hook) []*Caller {
	b.Helper()
	callers := make([]*Caller, connections)
	for i := range callers {
		callers[i] = h.Dial(b, Review(b, size))
		ask(b, callers[i], 100)
	}
	return callers
}

// together does it on all connections at the same time.
func together(b *testing.B, callers []*Caller, deed func(c *Caller, i int) []time.Duration) []time.Duration {
	b.Helper()
	took := make([][]time.Duration, len(callers))
	var all sync.WaitGroup
	for i, c := range callers {
		all.Go(func() { took[i] = deed(c, i) })
	}
	all.Wait()
	return slices.Concat(took...)
}

func ask(b *testing.B, c *Caller, times int) {
	b.Helper()
	for range times {
		if admitted, err := c.Ask(); err != nil || !admitted {
			b.Errorf("admitted: %t, %v", admitted, err)
			return
		}
	}
}

func report(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	b.ReportMetric(milliseconds(took[len(took)/2]), "p50-ms")
	b.ReportMetric(milliseconds(took[len(took)*99/100]), "p99-ms")
	b.ReportMetric(0, "ns/op")
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
