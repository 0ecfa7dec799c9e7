package reconcile

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// told lists events and counts how often; a list takes a while.
type told struct {
	client.Reader
	events []corev1.Event
	lists  int
	takes  func()
}

func (t *told) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	t.lists++
	t.takes()
	list, ok := into.(*corev1.EventList)
	if !ok {
		return fmt.Errorf("%T is asked for", into)
	}
	list.Items = t.events
	return nil
}

func TestWarningsAreReadOnceForAllObjectsOfANamespace(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	about := func(uid, message string, ago time.Duration) corev1.Event {
		return corev1.Event{InvolvedObject: corev1.ObjectReference{UID: types.UID(uid)}, Reason: "Failed", Message: message, LastTimestamp: metav1.NewTime(now.Add(-ago))}
	}
	live := &told{takes: func() {}, events: []corev1.Event{about("a", "new", time.Second), about("a", "old", time.Minute), about("b", "other", 0)}}
	r := &Reconciler{Live: live, Now: func() time.Time { return now }}
	asked := func(namespace, uid string) string { return r.warned(t.Context(), namespace, types.UID(uid)) }

	assert.Equal(t, "Failed: new", asked("openstack", "a"))
	assert.Equal(t, "Failed: other", asked("openstack", "b"))
	assert.Empty(t, asked("openstack", "c"))
	assert.Equal(t, 1, live.lists)

	now = now.Add(warningsTime)
	live.takes = func() { now = now.Add(2 * time.Second) }
	asked("openstack", "a")
	assert.Equal(t, 2, live.lists, "what is said later is heard")
	live.takes = func() {}
	now = now.Add(30 * time.Second)
	asked("openstack", "a")
	assert.Equal(t, 2, live.lists, "a server that is slow is asked less")
	now = now.Add(10 * time.Second)
	asked("openstack", "a")
	assert.Equal(t, 3, live.lists)

	now = now.Add(2 * time.Minute)
	asked("elsewhere", "a")
	assert.Len(t, r.warnings.spaces, 1, "what nobody asks for is let go")
}
