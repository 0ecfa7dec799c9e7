package walks

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/c5c3/openstack-upgrade/test/faults/share"
	"github.com/c5c3/openstack-upgrade/test/faults/story"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// settled is an object whose walk is over.
type settled struct {
	namespace, name string
	since, until    time.Time
	leave           func() error
	// alone is whether there is no controller any more that could write about it.
	alone func() bool
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
		if what := one.broken(writes[one.namespace]); what != "" {
			found = append(found, what)
		}
	}
	return found
}

// broken says what the writes in its namespace tell against its rest. If they do not tell of its walk either, they tell
// nothing, and without a controller nobody could have written.
func (s settled) broken(writes harness.Calls) string {
	walked := false
	for _, call := range writes {
		switch {
		case !isOf(call.Name, s.name):
		case !call.At.After(s.since):
			walked = true
		case harness.Refused(call) && call.At.Before(s.since.Add(story.Retold)):
			// A watch that was cut is begun anew with pauses: until its cache shows what is there, it may be tried to make it.
		case s.until.IsZero() || call.At.Before(s.until):
			return fmt.Sprintf("%s was at rest since %s, and at %s the controller did: %s %s/%s %s", s.name,
				s.since.Format(time.TimeOnly), call.At.Format(time.TimeOnly), call.Verb, call.Resource, call.Subresource, call.Name)
		}
	}
	switch {
	case !walked:
		return fmt.Sprintf("the audit log knows of no write about %s before %s, so it would know of none since", s.name, s.since.Format(time.TimeOnly))
	case s.until.IsZero() && s.alone():
		return fmt.Sprintf("%s was at rest since %s beside a controller that has ended by itself", s.name, s.since.Format(time.TimeOnly))
	}
	return ""
}
