//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/test/stage"
)

// rest is how long an object must have cost nothing.
const rest = 10 * time.Minute

// bystander is an object that nobody touches, from before the first test to the last. It sees the controller upgrade
// others, lose its leader and restart.
var bystander = stage.Glance{Namespace: "bystander", Name: "idle", Release: stage.ReleaseBefore, Tag: stage.TagBefore, Replicas: 1}

// atRest is when the bystander had come to rest, and how it was then.
type atRest struct {
	mark   stage.Mark
	since  time.Time
	object stage.Object
	err    error
}

// settled delivers once, when the bystander has come to rest.
var settled = make(chan atRest, 1)

// settle installs the bystander. Its last writes are given some seconds: events go out after them.
func settle(ctx context.Context) atRest {
	key, err := on.Install(ctx, bystander, "bystander")
	if err != nil {
		return atRest{err: err}
	}
	if err := on.AwaitReady(ctx, key, patience); err != nil {
		return atRest{err: err}
	}
	time.Sleep(10 * time.Second)
	mark, err := on.Mark()
	if err != nil {
		return atRest{err: err}
	}
	object, err := on.Get(ctx, key)
	return atRest{mark: mark, since: time.Now(), object: object, err: err}
}

// TestAnObjectAtRestCostsNothingForTenMinutes asks the API server's own log: no call of the controller, reads past its
// caches and events included, whatever it had to do for others.
func TestAnObjectAtRestCostsNothingForTenMinutes(t *testing.T) {
	began := <-settled
	require.NoError(t, began.err)
	if left := rest - time.Since(began.since); left > 0 {
		on.Say("waiting until %s has been at rest for %s, %s more", bystander.Key(), rest, left.Round(time.Second))
		time.Sleep(left)
	}
	took := time.Since(began.since)
	calls, err := on.ControllerCalls(began.mark, bystander.Namespace)
	require.NoError(t, err)
	for _, c := range calls {
		t.Logf("%s %s %s (%d)", c.At.Format(time.TimeOnly), c.What(), c.Name, c.Code)
	}
	assert.Empty(t, calls, "the controller called for an object at rest")
	now := get(t, bystander.Key())
	assert.Equal(t, began.object.GetResourceVersion(), now.GetResourceVersion(), "somebody wrote to the object")
	assert.True(t, stage.Ready(now), "%s", stage.Words(now))
	events, err := on.Events(t.Context(), bystander.Key())
	require.NoError(t, err)
	assert.Empty(t, events)
	on.Say("%s was at rest for %s: %d calls of the controller, %d events", bystander.Key(), took.Round(time.Second), len(calls), len(events))
}
