package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
)

const (
	// fillPatience is how long the first filling of the caches may bring nothing.
	// Above all it does where a right is missing, and idling would hide that.
	fillPatience = time.Minute
	// fillTimeout is how long it may take in all. To end sooner would help
	// nobody where there is much: the next start has all of it to read again.
	fillTimeout = 10 * time.Minute
	// fillWords is how often is said how far it is.
	fillWords = 15 * time.Second
)

// filling is the first filling of the caches.
type filling struct {
	synced   func(context.Context) bool
	received func() int64 // objects so far
	log      logr.Logger
}

// await waits until the caches are filled or the context ends, and fails when
// nothing comes any more.
func (f filling) await(ctx context.Context) error {
	done := make(chan bool, 1)
	go func() { done <- f.synced(ctx) }()
	began := time.Now()
	spoken, heard, last := began, began, f.received()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-done:
			return nil
		case now := <-tick.C:
			if n := f.received(); n != last {
				heard, last = now, n
			}
			if now.Sub(heard) >= fillPatience || now.Sub(began) >= fillTimeout {
				return fmt.Errorf("caches are not filled after %s, and the last of %d objects came %s ago: may the controller list and watch its kinds, Jobs, Deployments, Services, ConfigMaps and Pods, and is the CRD installed?",
					now.Sub(began).Round(time.Second), last, now.Sub(heard).Round(time.Second))
			}
			if now.Sub(spoken) >= fillWords {
				spoken = now
				f.log.Info("Waiting for the caches to be filled", "since", began.UTC().Format(time.RFC3339), "objects", last)
			}
		}
	}
}
