package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/c5c3/openstack-upgrade/test/traffic/ledger"
)

// rows are the images that were answered for.
type rows struct {
	mu   sync.Mutex
	list []row
}

func (r *rows) add(made row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, made)
}

func (r *rows) all() []row {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]row(nil), r.list...)
}

// older picks an image made before, another one each time, so that what was written by one release is read by the next.
func (r *rows) older(n int) (row, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) == 0 {
		return row{}, false
	}
	return r.list[(n*7919)%len(r.list)], true
}

// send lets the workers make round after round at the wanted rate, until ctx ends; then what is under way ends.
func send(ctx context.Context, o options, books *ledger.Ledger, made *rows) {
	turns := make(chan int)
	var workers sync.WaitGroup
	for i := range o.workers {
		keep := i%2 == 0
		name := fmt.Sprintf("client %d (fresh connections)", i)
		if keep {
			name = fmt.Sprintf("client %d (kept connection)", i)
		}
		c := newClient(name, o.url, keep, books)
		workers.Go(func() {
			for turn := range turns {
				// The end of the traffic is not the end of a request: it is let finish.
				round(context.WithoutCancel(ctx), c, turn, made)
			}
		})
	}
	pace := time.NewTicker(time.Duration(float64(time.Second) / o.rate))
	defer pace.Stop()
	for turn := 0; ; turn++ {
		select {
		case <-ctx.Done():
		case <-pace.C:
		}
		if ctx.Err() != nil {
			break
		}
		select {
		case turns <- turn:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
	}
	close(turns)
	workers.Wait()
}

var began = time.Now().Unix()

// round creates an image, reads it, finds it in a list, and reads an older one. What fails is in the books already.
func round(ctx context.Context, c *client, turn int, made *rows) {
	created, err := c.create(ctx, fmt.Sprintf("traffic-%d-%d", began, turn))
	if err == nil {
		_ = c.read(ctx, "read", created)
		_ = c.list(ctx, created)
	}
	if before, ok := made.older(turn); ok {
		_ = c.read(ctx, "read older", before)
	}
	if err == nil {
		made.add(created)
	}
}

// sweep lists everything and looks for every image that was answered for.
func sweep(c *client, made *rows, books *ledger.Ledger) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	there := map[row]bool{}
	for path := "/v2/images?limit=200"; path != ""; {
		var found page
		if err := c.do(ctx, "sweep", http.MethodGet, path, nil, http.StatusOK, &found, nil); err != nil {
			break
		}
		for _, r := range found.Images {
			there[r] = true
		}
		path = found.Next
	}
	for _, r := range made.all() {
		if !there[r] {
			books.Lose(time.Now(), fmt.Sprintf("image %s (%s) was created and is not listed any more", r.Name, r.ID))
		}
	}
}
