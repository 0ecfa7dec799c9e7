package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/test/stage"
)

// everySoOften is how often the timeline says what is waited for while nothing changes.
const everySoOften = 5 * time.Second

// timeline prints a line for each change of phase or condition, and between them what is waited for and for how long.
type timeline struct {
	demo *demo
	of   subject
	film *stage.Film
	stop func()
	done chan struct{}

	mu    sync.Mutex
	last  string
	phase string
	since time.Time
}

// subject is the object that a timeline is about, and the clients that ask it.
type subject struct {
	stage   *stage.Stage
	key     client.ObjectKey
	traffic *stage.Traffic
}

// film follows an object from now on.
func (d *demo) film(ctx context.Context, of subject) (*timeline, error) {
	ctx, stop := context.WithCancel(ctx)
	t := &timeline{demo: d, of: of, stop: stop, done: make(chan struct{}), since: time.Now()}
	var err error
	if t.film, err = of.stage.Follow(ctx, of.key, t.show); err != nil {
		stop()
		return nil, err
	}
	go func() {
		defer close(t.done)
		tick := time.NewTicker(everySoOften)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				t.remind(ctx)
			}
		}
	}()
	return t, nil
}

func (t *timeline) end() {
	t.stop()
	<-t.done
}

func (t *timeline) show(m stage.Moment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	phase := m.Phase()
	if phase != t.phase {
		t.phase, t.since = phase, m.At
	}
	database := stage.Condition(m.Object, v1alpha1.ConditionDatabaseReady)
	line := fmt.Sprintf("%s: %s", database.Reason, database.Message)
	if serving := stage.Condition(m.Object, v1alpha1.ConditionDeploymentReady); serving.Status != metav1.ConditionTrue {
		line += fmt.Sprintf("; %s: %s", serving.Reason, serving.Message)
	}
	if line == t.last {
		return
	}
	t.last = line
	t.demo.say("%5.1fs  %-13s  %s", t.demo.stage.Elapsed(m.At).Seconds(), named(phase), line)
}

// remind says what is waited for, in the cluster's figures, and how the clients fare meanwhile.
func (t *timeline) remind(ctx context.Context) {
	t.mu.Lock()
	phase, since := t.phase, t.since
	t.mu.Unlock()
	if phase == "" {
		return
	}
	doing := t.of.stage.Doing(ctx, t.of.key, phase)
	fare := ""
	if now, err := t.of.traffic.Now(ctx); err == nil {
		fare = fmt.Sprintf("; requests so far: %d sent, %d failed", now.Sent, now.Failed)
	}
	if ctx.Err() != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase == phase {
		t.demo.say("%21s    for %.0fs: %s%s", "", time.Since(since).Seconds(), doing, fare)
	}
}

func named(phase string) string {
	if phase == "" {
		return "-"
	}
	return phase
}
