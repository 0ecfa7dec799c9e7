package stage

import (
	"context"
	"fmt"
	"time"
)

const (
	oneGlance   = 250 * time.Millisecond
	sayItAgain  = 10 * time.Second
	longestLine = 300
)

// Look tells whether what is waited for is there, and otherwise what was seen instead.
type Look func(ctx context.Context) (done bool, seen string, err error)

// Say tells a step with the time since the start.
func (s *Stage) Say(format string, args ...any) {
	s.log("%5.1fs  %s", s.Elapsed(time.Now()).Seconds(), fmt.Sprintf(format, args...))
}

// Elapsed is the time since the start at a moment.
func (s *Stage) Elapsed(at time.Time) time.Duration { return at.Sub(s.started) }

// Await looks until it is there. Every ten seconds it says what it still waits for, for how long, and what it saw
// last; that is also in the error when it gives up.
func (s *Stage) Await(ctx context.Context, what string, patience time.Duration, look Look) error {
	s.Say("wait for %s", what)
	began := time.Now()
	said := began
	for {
		done, seen, err := look(ctx)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		if done {
			return nil
		}
		if len(seen) > longestLine {
			seen = seen[:longestLine] + "…"
		}
		if time.Since(began) > patience {
			return fmt.Errorf("wait for %s: not within %s; last seen: %s", what, patience, seen)
		}
		if time.Since(said) > sayItAgain {
			said = time.Now()
			s.Say("still waiting for %s, for %s: %s", what, time.Since(began).Round(time.Second), seen)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		case <-time.After(oneGlance):
		}
	}
}
