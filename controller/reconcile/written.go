package reconcile

import (
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// lag is how long a cache may need to show a write.
const lag = 5 * time.Second

// written remembers which version of an object our last write made. A cache
// that is behind it is not believed: it would have the same step decided twice,
// or another one beside what is being done already.
type written struct {
	mu       sync.Mutex
	versions map[types.NamespacedName]version
}

type version struct {
	number uint64
	at     time.Time
}

// note remembers the version of an object as the API server returned it.
func (w *written) note(key types.NamespacedName, object metav1.Object, now time.Time) {
	number, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.versions == nil {
		w.versions = map[types.NamespacedName]version{}
	}
	w.versions[key] = version{number, now}
}

// behind tells whether a cache is behind what was written, which it shows as
// this object, or as nil; and what is left of the time that caches may lag, zero
// when that is over. What it has once shown is forgotten.
func (w *written) behind(key types.NamespacedName, shown metav1.Object, now time.Time) (behind bool, left time.Duration) {
	if !w.older(key, shown) {
		w.forget(key)
		return false, 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return true, max(w.versions[key].at.Add(lag).Sub(now), 0)
}

// older tells whether an object, or nil where there is none, is older than what
// was written. Versions that are no numbers are never compared.
func (w *written) older(key types.NamespacedName, object metav1.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, known := w.versions[key]
	if !known || object == nil {
		return known
	}
	number, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	return err == nil && number < last.number // of a namesake before it, too
}

func (w *written) forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.versions, key)
}
