package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"
)

const (
	// tidyPeriod is how often it is looked whether memory can be given back.
	tidyPeriod = 30 * time.Second
	// busy is how much is allocated in a period in which there is better to do, and worth what must have gathered for
	// it to be worth the trouble.
	busy  = 256 << 20
	worth = 16 << 20
)

// tidy gives back to the system what a busy time has left of the heap. The controller holds much and rests most of the
// time; the runtime alone would keep twice what is held, for hours.
func tidy(ctx context.Context) error {
	tick := time.NewTicker(tidyPeriod)
	defer tick.Stop()
	var before, tidied uint64
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		if memory.TotalAlloc-before < busy && memory.TotalAlloc-tidied > worth {
			debug.FreeOSMemory()
			tidied = memory.TotalAlloc
		}
		before = memory.TotalAlloc
	}
}

// tidier runs tidy in every replica, also in one that waits.
type tidier struct{}

func (tidier) Start(ctx context.Context) error { return tidy(ctx) }
func (tidier) NeedLeaderElection() bool        { return false }
