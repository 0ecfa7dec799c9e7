package walks

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/c5c3/openstack-upgrade/test/faults/share"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// settled is an object whose walk is over.
type settled struct {
	namespace, name string
	since, until    time.Time
	leave           func() error
}

// rested are all of them. In the end the API server's own audit log must know of no write about any since then.
type rested struct {
	mu  sync.Mutex
	all []settled
	// gone is how many of them have been deleted.
	gone int
}

// add keeps one, and lets go those that have rested long enough.
func (r *rested) add(t testing.TB, one settled) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, one)
	for ; share.Whole() && time.Since(r.all[r.gone].since) > share.Stays(); r.gone++ {
		r.all[r.gone].until = time.Now()
		if err := r.all[r.gone].leave(); err != nil {
			t.Errorf("delete %s: %v", r.all[r.gone].name, err)
		}
	}
}

// broken waits until the last has rested for a while, and lists what a controller has written about any that rested.
func (r *rested) broken(t testing.TB, env *harness.Env) (found []string) {
	t.Helper()
	time.Sleep(share.Stays())
	r.mu.Lock()
	defer r.mu.Unlock()
	calls, err := env.AllCalls(t.Context(), harness.Actor{User: "system:serviceaccount:" + harness.ControllerNamespace + ":" + harness.ControllerServiceAccount})
	if err != nil {
		t.Fatal(err)
	}
	writes := map[string]harness.Calls{}
	for _, call := range calls.Where(harness.Writes, harness.Core) {
		writes[call.Namespace] = append(writes[call.Namespace], call)
	}
	for _, one := range r.all {
		for _, call := range writes[one.namespace] {
			if call.At.After(one.since) && (one.until.IsZero() || call.At.Before(one.until)) && isOf(call.Name, one.name) {
				found = append(found, fmt.Sprintf("%s was at rest since %s, and at %s the controller did: %s %s/%s %s", one.name,
					one.since.Format(time.TimeOnly), call.At.Format(time.TimeOnly), call.Verb, call.Resource, call.Subresource, call.Name))
				break
			}
		}
	}
	return found
}
