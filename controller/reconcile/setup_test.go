package reconcile

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
)

func TestAfterAStartWhatIsNotAtRestIsLookedAtFirst(t *testing.T) {
	rested := func(t *testing.T) *stage {
		s := open(t, atRest())
		s.made(atRest(), upgrade.Sync, "Complete")
		s.served(old, atRest())
		s.looks(3)
		require.Equal(t, "AllReady: Database and Deployment are ready", s.says("Ready"))
		return s
	}
	for name, c := range map[string]struct {
		scene func(*testing.T) *stage
		first bool
	}{
		"at rest":   {rested, false},
		"changed":   {func(t *testing.T) *stage { s := rested(t); s.edit(build.Replicas(2)); return s }, true},
		"in a walk": {func(t *testing.T) *stage { return open(t, walking(upgrade.Migrating), build.Lockstep("2026.2")) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.scene(t)
			queue := priorityqueue.New[reconcile.Request]("test")
			defer queue.ShutDown()
			found := event.CreateEvent{Object: s.glance(), IsInInitialList: true}
			(&handler.EnqueueRequestForObject{}).Create(t.Context(), found, queue)
			s.unsettledFirst().Create(t.Context(), found, queue)
			request, priority, _ := queue.GetWithPriority()
			require.Equal(t, client.ObjectKeyFromObject(s.glance()), request.NamespacedName)
			require.Equal(t, c.first, priority > handler.LowPriority)
		})
	}
}
