package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

func TestAWholeUpgradeIsThisStoryAtTheAgreedCost(t *testing.T) {
	s := open(t).start()
	story := s.Record(t, s.ns, name)
	s.glance(build.Replicas(3))
	s.await("the install to end", rests("2026.1"))
	mark := s.Mark(t)
	s.edit(build.Lockstep("2026.2"))
	s.await("the upgrade to end", rests("2026.2"))
	s.awaitJob(upgrade.Sync, "the sync after the upgrade", completeOn(next))
	story.Golden(t, "upgrade")

	calls := s.calls(mark)
	t.Logf("an upgrade costs\n%s", calls)
	writes := calls.Where(harness.Writes, accepted)
	ofAPhase := func(c harness.Call) bool { return c.Name != "images-db-sync" }
	for _, cost := range []struct {
		resource, verb string
		times          int
	}{{"glances/status", "update", 5}, {"deployments", "update", 1}, {"events", "create", 5}} {
		require.Len(t, writes.Where(harness.On(cost.resource)), cost.times, cost.resource)
		require.Len(t, writes.Where(harness.On(cost.resource), harness.By(cost.verb)), cost.times, cost.resource)
	}
	require.Len(t, writes.Where(harness.On("jobs"), harness.By("create"), ofAPhase), 3, "%s", writes)
	require.LessOrEqual(t, len(writes), 20)
	require.LessOrEqual(t, len(calls.Where(harness.Reads)), 5, "reads past the caches:\n%s", calls)
}

// accepted leaves out what was refused because a name was taken: nothing was written then.
func accepted(c harness.Call) bool { return !harness.Refused(c) }

func completeOn(image string) func(*batchv1.Job) string {
	return func(job *batchv1.Job) string {
		if found := job.Spec.Template.Spec.Containers[0].Image; found != image {
			return "it is that of " + found
		}
		return isComplete(job)
	}
}

func TestASecondUpgradeReplacesTheJobsOfTheFirst(t *testing.T) {
	s := steady(t)
	s.edit(build.Lockstep("2026.2"))
	s.await("the first upgrade to end", rests("2026.2"))
	s.awaitJob(upgrade.Sync, "the sync after it", completeOn(next))
	before := map[upgrade.Task]*batchv1.Job{}
	for _, task := range upgrade.PhaseTasks {
		before[task] = s.job(task)
		require.NotNil(t, before[task], "a finished Job stays as evidence")
	}
	mark := s.Mark(t)
	s.edit(build.Lockstep("2027.1"))
	s.await("the second upgrade to end", rests("2027.1"))
	s.awaitJob(upgrade.Sync, "the sync after it", completeOn(build.DefaultRepository+":2027.1"))
	for _, task := range upgrade.PhaseTasks {
		require.NotEqual(t, before[task].UID, s.job(task).UID, "%s of the first walk does not count for the second", task)
	}
	writes := s.calls(mark).Where(harness.Writes, accepted)
	t.Logf("a second upgrade costs %d writes\n%s", len(writes), writes)
	require.LessOrEqual(t, len(writes), 20, "clean-up included")
}

func TestAnObjectAtRestIsLeftAlone(t *testing.T) {
	s := open(t).glance().record(installed2026).start("--resync-period=1m")
	s.await("the Glance to rest", rests("2026.1"))
	time.Sleep(time.Second) // until the last echo of the install has been looked at
	mark, told := s.Mark(t), s.told()
	for i := range 30 {
		s.edit(build.Labels(map[string]string{"touched": string(rune('a' + i%26))}))
	}
	s.holds(65*time.Second, "rest, beyond a resync", rests("2026.1"))
	require.Empty(t, s.calls(mark), "no call at all, neither read nor write")
	require.Equal(t, told, s.told())
}

func TestRestIsReachedWithoutATrailOfWrites(t *testing.T) {
	s := open(t).start()
	mark := s.Mark(t)
	s.glance()
	s.await("the install to end", rests("2026.1"))
	writes := s.calls(mark).Where(harness.Writes, accepted)
	t.Logf("an install costs %d writes\n%s", len(writes), writes)
	require.LessOrEqual(t, len(writes.Where(harness.On("glances/status"))), 5)
	require.Len(t, writes.Where(harness.By("create")), 4, "Job, ConfigMap, Service and Deployment:\n%s", writes)
}

func TestReplicasThatNobodyAskedForAreWrittenOnce(t *testing.T) {
	s := open(t).glance(build.AnyReplicas()).record(installed2026).start()
	s.await("the Glance to rest", rests("2026.1"))
	d := s.deployment()
	require.EqualValues(t, 3, *d.Spec.Replicas)
	two := int32(2)
	adjust(s, d, func(d *appsv1.Deployment) { d.Spec.Replicas = &two })
	s.edit(build.Lockstep("2026.2"))
	s.await("the upgrade to end", rests("2026.2"))
	require.EqualValues(t, 2, *s.deployment().Spec.Replicas, "what the autoscaler says stays")
}
