package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCachesMayTakeTheirTimeToFillButNotStandStill(t *testing.T) {
	for name, c := range map[string]struct {
		fills, comes, stops time.Duration // when all are filled, how often an object comes, and from when on none does
		ends                time.Duration
		says                string
	}{
		"at once":                      {fills: time.Second, comes: time.Second, stops: time.Hour, ends: time.Second},
		"slowly":                       {fills: 5 * time.Minute, comes: 50 * time.Second, stops: time.Hour, ends: 5 * time.Minute},
		"a right is missing":           {fills: time.Hour, comes: time.Second, stops: 10 * time.Second, ends: 70 * time.Second, says: "may the controller list and watch"},
		"nothing ever comes":           {fills: time.Hour, comes: time.Hour, stops: time.Hour, ends: time.Minute, says: "the last of 0 objects came 1m0s ago"},
		"one is missing, others go on": {fills: time.Hour, comes: time.Second, stops: time.Hour, ends: 10 * time.Minute, says: "not filled after 10m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				var objects atomic.Int64
				began := time.Now()
				go func() {
					for time.Since(began) < c.stops && ctx.Err() == nil {
						select {
						case <-ctx.Done():
						case <-time.After(c.comes):
							objects.Add(1)
						}
					}
				}()
				words := 0
				err := filling{
					synced: func(ctx context.Context) bool {
						select {
						case <-ctx.Done():
							return false
						case <-time.After(c.fills):
							return true
						}
					},
					received: objects.Load,
					log:      funcr.New(func(string, string) { words++ }, funcr.Options{}),
				}.await(ctx)
				assert.InDelta(t, c.ends.Seconds(), time.Since(began).Seconds(), 1.5)
				assert.InDelta(t, c.ends.Seconds()/fillWords.Seconds(), words, 1, "words")
				if c.says == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, c.says)
				}
			})
		})
	}
}

func TestNobodyIsToldOfCachesThatAControllerThatIsEndingLeavesUnfilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { stop(errors.New("the end")) })
		never := func(ctx context.Context) bool { <-ctx.Done(); return false }
		require.NoError(t, filling{synced: never, received: func() int64 { return 0 }}.await(ctx))
	})
}
