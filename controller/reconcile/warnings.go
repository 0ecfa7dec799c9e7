package reconcile

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// warningsTime is for how long the warnings of a namespace are not read again.
	warningsTime = 10 * time.Second
	// warningsShare is how many times longer than it took to read them, if that is more: where a thousand objects are
	// late at once, asking why must not make them later.
	warningsShare = 20
)

// warnings holds the last warning about each object of the namespaces that were asked for lately. The API server keeps
// events in no cache and reads all of a namespace to find those of one object, so they are read for all objects at once.
type warnings struct {
	mu     sync.Mutex
	spaces map[string]*space
}

type space struct {
	mu    sync.Mutex
	until time.Time
	last  map[types.UID]corev1.Event
}

// of gives the warnings of a namespace and lets go of those that nobody asks for any more.
func (w *warnings) of(namespace string, now time.Time) *space {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.spaces == nil {
		w.spaces = map[string]*space{}
	}
	for other, s := range w.spaces {
		if other != namespace && s.mu.TryLock() {
			if s.until.Add(time.Minute).Before(now) {
				delete(w.spaces, other)
			}
			s.mu.Unlock()
		}
	}
	if w.spaces[namespace] == nil {
		w.spaces[namespace] = &space{}
	}
	return w.spaces[namespace]
}

// warned is the last warning that was given about an object. Events are read past the caches, and only when something is
// already late.
func (r *Reconciler) warned(ctx context.Context, namespace string, uid types.UID) string {
	began := r.Now()
	s := r.warnings.of(namespace, began)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !began.Before(s.until) {
		var found corev1.EventList
		if err := r.Live.List(ctx, &found, client.InNamespace(namespace), client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("type", corev1.EventTypeWarning)}); err != nil {
			return ""
		}
		s.last = map[types.UID]corev1.Event{}
		for _, event := range found.Items {
			if last, known := s.last[event.InvolvedObject.UID]; !known || saidAt(event).After(saidAt(last)) {
				event.ManagedFields = nil
				s.last[event.InvolvedObject.UID] = event
			}
		}
		now := r.Now()
		s.until = now.Add(max(warningsTime, warningsShare*now.Sub(began)))
	}
	last, known := s.last[uid]
	if !known {
		return ""
	}
	return bounded(last.Reason + ": " + last.Message)
}
