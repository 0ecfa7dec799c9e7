package integration

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

func TestBL19AnObjectThatIsDeletedInMidWalkTakesItsChildrenAlongAndNothingIsMade(t *testing.T) {
	s, _ := rolling(t)
	s.awaitPod(upgrade.Migrate, "to run", runs)
	require.Empty(t, s.now().Finalizers)
	children := append(s.children(), s.job(upgrade.Migrate))
	mark := s.Mark(t)
	require.NoError(t, s.Client.Delete(t.Context(), s.now()))
	for _, child := range children {
		harness.AwaitGone(t, s.Env, child)
	}
	s.awaitNoPod("")
	require.Empty(t, s.calls(mark).Where(harness.Writes), "nothing is made or written for an object that is gone")
}

func TestBL19ANamespaceThatIsDeletedInMidWalkIsGoneWithoutComplaint(t *testing.T) {
	s, _ := contracting(t)
	mark := s.Mark(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns}}
	require.NoError(t, s.Client.Delete(t.Context(), ns))
	harness.AwaitGone(t, s.Env, ns)
	writes := s.calls(mark).Where(harness.Writes, accepted)
	require.Empty(t, writes.Where(harness.By("create")), "nothing new in a namespace that goes:\n%s", writes)
	require.LessOrEqual(t, len(s.calls(mark)), 20, "no error loop:\n%s", s.calls(mark))
	log, err := os.ReadFile(s.controller.Log)
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(log), "ERROR"), 3, "%s", log)
}

func TestBL19ANewObjectOfTheSameNameWaitsForThePodsOfTheOneBefore(t *testing.T) {
	s := open(t)
	s.script(upgrade.Migrate, harness.Hang())
	die := s.script(upgrade.Migrate, harness.IgnoreTerm(harness.Forever))
	s.glance(build.Lockstep("2026.2")).record(walking(upgrade.Migrating)).start()
	before := s.awaitPod(upgrade.Migrate, "to run", runs)
	require.NoError(t, s.Client.Delete(t.Context(), s.now()))
	s.glance()
	s.await("the wait to be said", says(upgrade.DBSyncInProgress, "waiting until Job images-db-migrate and its pods are gone"))
	s.holds(3*time.Second, "the wait", in(upgrade.Steady))
	require.Nil(t, s.job(upgrade.Sync), "no schema work beside that of the object before")
	require.NotNil(t, s.awaitPod(upgrade.Migrate, "to be left", func(pod corev1.Pod) string { return lacks(pod.UID == before.UID, "another") }))
	die()
	s.await("the install to end", rests("2026.1"))
}

func TestBL19AFinishedJobOfADeletedObjectOfTheSameNameDoesNotCount(t *testing.T) {
	s := steady(t)
	before := s.job(upgrade.Sync)
	// Its finalizer keeps it, and its Job, while the new object cannot come yet.
	require.NoError(t, s.Client.Delete(t.Context(), s.now(), client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	s.Eventually(t, harness.Patience, "the object to be gone", func(ctx context.Context) string {
		err := s.Client.Get(ctx, s.key(name), build.Glance(name))
		return lacks(client.IgnoreNotFound(err) == nil && err != nil, "it is there")
	})
	deployment := s.deployment()
	s.glance()
	taken := says(upgrade.DatabaseSynced, "Job images-db-sync exists and belongs to somebody else: remove it")
	s.await("the left-overs to be said", taken)
	s.holds(2*time.Second, "the wait", taken)
	require.Equal(t, "2026.1", s.now().Status.InstalledRelease, "what is noted on the Deployment that was left is taken over")
	require.Equal(t, deployment.UID, s.deployment().UID, "and it goes on serving")
	require.Equal(t, before.UID, s.job(upgrade.Sync).UID, "the Job proves nothing, and is not ours to remove")
	require.NoError(t, s.Client.Delete(t.Context(), s.job(upgrade.Sync), client.PropagationPolicy(metav1.DeletePropagationBackground)))
	s.await("the install to end", rests("2026.1"))
}
