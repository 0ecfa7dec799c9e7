package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/c5c3/openstack-upgrade/test/traffic/ledger"
)

// service is an API as its clients use it. What fails is in the books already when a deed returns.
type service interface {
	// turn asks for something new, for what came of it, and for something older.
	turn(ctx context.Context, c *client, n int)
	// sweep looks once more for everything that was answered for.
	sweep(ctx context.Context, c *client)
	// created is how many rows were answered for.
	created() int
}

// kept are things that were answered for.
type kept[T any] struct {
	mu   sync.Mutex
	list []T
}

func (k *kept[T]) add(made T) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = append(k.list, made)
}

func (k *kept[T]) all() []T {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]T(nil), k.list...)
}

// older picks one made before, another one each time, so that what was written by one release is read by the next.
func (k *kept[T]) older(n int) (one T, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.list) == 0 {
		return one, false
	}
	return k.list[(n*7919)%len(k.list)], true
}

// send lets the workers make round after round at the wanted rate, until ctx ends; then what is under way ends.
func send(ctx context.Context, o options, books *ledger.Ledger, asked service) {
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
				asked.turn(context.WithoutCancel(ctx), c, turn)
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
