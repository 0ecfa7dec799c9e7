package reconcile

import (
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// lag is how far a cache may be behind a write. Beyond that a lower version
// means something else: a cluster that was restored from a backup.
const lag = 5 * time.Second

// written remembers which version of an object our last status write made.
// A cache that is behind it would have the same step decided twice; the watch
// event of that very write brings the next look.
type written struct {
	mu       sync.Mutex
	versions map[types.NamespacedName]version
}

type version struct {
	uid    types.UID
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
	w.versions[key] = version{object.GetUID(), number, now}
}

// newer tells whether a newer version of the object than this has been
// written. Versions that are no numbers are never compared.
func (w *written) newer(key types.NamespacedName, object metav1.Object, now time.Time) bool {
	number, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	last, known := w.versions[key]
	return known && last.uid == object.GetUID() && number < last.number && now.Sub(last.at) < lag
}

func (w *written) forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.versions, key)
}
