package reconcile

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Pauses between two writes of the status that differ in words alone.
const (
	firstPause   = 20 * time.Second
	longestPause = 5 * time.Minute
	troublePause = 5 * time.Second
)

// longestRace is the longest pause after a write that met another: a storm of
// them passes, and a cache that stays behind must not be waited for in haste.
const longestRace = time.Second

// races counts how often in a row something about an object was refused because
// it was no longer as it had been seen. The pause doubles, since a cache that
// stays behind has every write refused.
type races struct {
	mu   sync.Mutex
	lost map[types.NamespacedName]time.Duration
}

// It is again when the one before was lost as well.
func (r *races) pause(key types.NamespacedName) (pause time.Duration, again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost == nil {
		r.lost = map[types.NamespacedName]time.Duration{}
	}
	before := r.lost[key]
	pause = min(max(2*before, conflictPause), longestRace)
	r.lost[key] = pause
	return pause, before > 0
}

func (r *races) over(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.lost, key)
}

// pace keeps a status from being written for words alone more often than
// people read them: less and less often while nothing else changes, but soon
// when the words are about trouble, and at once when that is over.
type pace struct {
	mu   sync.Mutex
	last map[types.NamespacedName]beat
}

type beat struct {
	at      time.Time
	pause   time.Duration
	trouble bool
}

// wait gives the time to wait before a write, zero when it may be made now,
// and then counts on it being made.
func (p *pace) wait(key types.NamespacedName, now time.Time, wordsOnly, trouble bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[types.NamespacedName]beat{}
	}
	last, known := p.last[key]
	if !wordsOnly || !known {
		p.last[key] = beat{at: now, pause: firstPause, trouble: trouble}
		return 0
	}
	pause := last.pause
	switch {
	case trouble && !last.trouble:
		pause = troublePause
	case !trouble && last.trouble:
		pause = 0 // what is over must not go on being said
	}
	if left := last.at.Add(pause).Sub(now); left > 0 {
		return left
	}
	p.last[key] = beat{at: now, pause: min(2*last.pause, longestPause), trouble: trouble}
	return 0
}

func (p *pace) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, key)
}
