package reconcile

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/c5c3/openstack-upgrade/controller/service"
)

// starts knows when this process began to work. Of a Job that was deleted just
// before, with work left, it cannot know: whoever worked then does. So no Job is
// made within the quiet time for an object that was there already, unless this
// process has moved it on since, to where no Job of it can ever have been.
type starts struct {
	mu    sync.Mutex
	at    time.Time
	fresh map[types.UID]bool
}

// note is told when this process begins to work, and of every look.
func (s *starts) note(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.IsZero() {
		s.at, s.fresh = now, map[types.UID]bool{}
	}
	if now.Sub(s.at) >= quietTime {
		s.fresh = nil
	}
}

func (s *starts) moved(object service.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fresh != nil {
		s.fresh[object.GetUID()] = true
	}
}

// quiet gives what is left of the quiet time for an object.
func (s *starts) quiet(object service.Object, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if made := object.GetCreationTimestamp().Time; !made.Before(s.at.Truncate(time.Second)) || // of whole seconds
		s.fresh[object.GetUID()] {
		return 0
	}
	return max(s.at.Add(quietTime).Sub(now), 0)
}
