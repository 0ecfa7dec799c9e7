// Package lifecycle is what one does with a test cluster: bring it up, look at it, put images into it, run a command
// inside it, take it down. Every deed can be repeated and finds its way from wherever the last one stopped.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/c5c3/openstack-upgrade/test/cluster/node"
)

// Log is told each step as it begins, and what is waited for while it lasts.
type Log func(format string, args ...any)

// ErrNotUp says that there is no living cluster of that name.
var ErrNotUp = errors.New("the cluster is not up; start it with: go run ./test/cluster up")

// living finds the running cluster of that name.
func living(name string) (node.Layout, node.State, error) {
	layout, err := node.NewLayout(name)
	if err != nil {
		return node.Layout{}, node.State{}, err
	}
	state, found, err := layout.ReadState()
	if err != nil {
		return node.Layout{}, node.State{}, err
	}
	if !found || !state.Running() {
		return node.Layout{}, node.State{}, ErrNotUp
	}
	layout.Bin = state.Bin
	return layout, state, nil
}

// progress says each step with the time since the start.
type progress struct {
	log     Log
	started time.Time
}

func (p progress) say(format string, args ...any) {
	p.log("%5.1fs  %s", time.Since(p.started).Seconds(), fmt.Sprintf(format, args...))
}

// await looks until done says so, and says every ten seconds what it still waits for and what it saw last.
func (p progress) await(
	ctx context.Context, what string, patience time.Duration, done func(context.Context) (ok bool, seen string, err error),
) error {
	p.say("wait for %s", what)
	started := time.Now()
	said := started
	for {
		ok, seen, err := done(ctx)
		if err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		if ok {
			return nil
		}
		if time.Since(started) > patience {
			return fmt.Errorf("wait for %s: not within %s; last seen: %s", what, patience, seen)
		}
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			p.say("still waiting for %s, for %s: %s", what, time.Since(started).Round(time.Second), seen)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// lock keeps two commands from changing one cluster at the same time.
func lock(ctx context.Context, layout node.Layout, log Log) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(layout.State), 0o755); err != nil {
		return nil, fmt.Errorf("make the cluster's state: %w", err)
	}
	path := layout.State + ".lock"
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the cluster: %w", err)
	}
	for said := false; ; said = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("lock the cluster: %w", err)
		}
		if !said {
			log("wait for another up or down of cluster %s", layout.Name)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("wait for another up or down: %w", ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Kubeconfig is the path of the administrator's kubeconfig of the running cluster.
func Kubeconfig(name string) (string, error) {
	layout, _, err := living(name)
	if err != nil {
		return "", err
	}
	return layout.Kubeconfig(), nil
}
