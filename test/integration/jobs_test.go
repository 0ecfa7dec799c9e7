package integration

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

func TestAJobOfSomebodyElseWithOurNameIsNeitherCountedNorTouched(t *testing.T) {
	ourLabels := map[string]string{"app.kubernetes.io/managed-by": "openstack-upgrade", "app.kubernetes.io/name": "glance",
		"app.kubernetes.io/instance": name, "app.kubernetes.io/component": "db-expand"}
	for _, c := range []struct {
		name   string
		labels map[string]string
	}{{"without our labels", nil}, {"with our labels", ourLabels}} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			theirs := build.Job(s.ns, "images-db-expand", "theirs:1", func(j *batchv1.Job) { j.Labels = c.labels })
			s.Create(t, theirs)
			s.awaitJob(upgrade.Expand, "of somebody else to complete", isComplete)
			s.glance(build.Lockstep("2026.2")).record(walking(upgrade.Expanding)).start()
			taken := both(in(upgrade.Expanding), says(upgrade.ExpandInProgress, "Job images-db-expand exists and belongs to somebody else: remove it or wait until it is gone"))
			s.await("the name to be said", taken)
			s.holds(2*time.Second, "the wait", taken)
			job := s.job(upgrade.Expand)
			require.Equal(t, theirs.UID, job.UID)
			require.Empty(t, job.OwnerReferences, "it is not adopted")
			require.Equal(t, theirs.Generation, job.Generation)
			s.deleteJob(upgrade.Expand)
			s.await("the upgrade to end once the name is free", rests("2026.2"))
		})
	}
}

func TestACompleteJobThatIsBeingDeletedDoesNotCount(t *testing.T) {
	s := open(t)
	finish := s.script(upgrade.Migrate, harness.Hang())
	s.glance(build.Lockstep("2026.2")).record(walking(upgrade.Migrating)).start()
	s.awaitPod(upgrade.Migrate, "to run", runs)
	s.controller.Kill(t)
	finish()
	job := s.awaitJob(upgrade.Migrate, "to complete", isComplete)
	adjust(s, job, func(j *batchv1.Job) { j.Finalizers = append(j.Finalizers, "example.org/keep") })
	s.deleteJob(upgrade.Migrate)
	s.start()
	going := both(in(upgrade.Migrating), says(upgrade.MigrateInProgress, "waiting until the previous Job images-db-migrate and its pods are gone"))
	s.await("the wait", going)
	s.holds(2*time.Second, "the wait", going)
	adjust(s, s.job(upgrade.Migrate), func(j *batchv1.Job) { j.Finalizers = nil })
	s.await("the upgrade to end", rests("2026.2"))
	require.NotEqual(t, job.UID, s.job(upgrade.Migrate).UID)
}

func TestAJobOfAnEarlierWalkBetweenTheSameReleasesDoesNotCount(t *testing.T) {
	s := open(t)
	s.script(upgrade.Migrate, harness.Hang())
	s.glance(build.Lockstep("2026.2")).record(walking(upgrade.Expanding)).start()
	s.await("the first walk to migrate", in(upgrade.Migrating))
	first := s.awaitJob(upgrade.Expand, "to complete", isComplete)
	s.awaitJob(upgrade.Migrate, "to exist", exists)
	s.controller.Kill(t)
	s.deleteJob(upgrade.Migrate)
	s.awaitNoPod(upgrade.Migrate)
	s.status(func(status *v1alpha1.ServiceStatus) {
		again := walking(upgrade.Expanding)
		again.Attempt = 2
		status.SetState(again)
	})
	s.start()
	s.awaitJob(upgrade.Expand, "of the second walk", func(j *batchv1.Job) string { return lacks(j.UID != first.UID, "it is still that of the first") })
}

func (s *scene) awaitNoPod(component any) {
	s.t.Helper()
	s.Eventually(s.t, harness.Patience, "no pod to be left", func(context.Context) string {
		return lacks(len(s.pods(component)) == 0, "%d left", len(s.pods(component)))
	})
}

func TestAFinishedJobThatIsRemovedByAnotherHandIsNotRunAgainOnceRecorded(t *testing.T) {
	s := open(t)
	s.script(upgrade.Migrate, harness.Hang())
	s.glance(build.Lockstep("2026.2")).record(walking(upgrade.Expanding)).start()
	s.awaitPod(upgrade.Migrate, "to run", runs)
	s.deleteJob(upgrade.Expand)
	s.holds(2*time.Second, "the phase", in(upgrade.Migrating))
	require.Nil(t, s.job(upgrade.Expand), "what is recorded needs no evidence")
}

func TestBL09ASuspendedJobIsSaidAndLeftAlone(t *testing.T) {
	s := expanding(t, func(s *scene) { s.script(upgrade.Expand, harness.InTurn(harness.Hang(), harness.Succeed(0))) })
	s.awaitPod(upgrade.Expand, "to run", runs)
	job := s.job(upgrade.Expand)
	adjust(s, job, func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) })
	suspended := both(in(upgrade.Expanding), says(upgrade.ExpandInProgress, "Job images-db-expand is suspended: it goes on when spec.suspend is lifted"))
	s.await("the suspension to be said", suspended)
	s.holds(2*time.Second, "the suspension", suspended)
	found := s.job(upgrade.Expand)
	require.Equal(t, job.UID, found.UID)
	require.True(t, *found.Spec.Suspend, "no tug-of-war over the field")
	adjust(s, found, func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(false) })
	s.await("the upgrade to end", rests("2026.2"))
}

func TestBL09ASidecarThatDoesNotEndIsNamed(t *testing.T) {
	s := open(t)
	s.inject(string(upgrade.Expand), "mesh-proxy")
	end := s.script(upgrade.Expand, harness.SidecarStays("mesh-proxy"))
	s.glance(build.Lockstep("2026.2")).record(walking(upgrade.Expanding)).start()
	pod := s.awaitPod(upgrade.Expand, "to run", runs)
	require.Len(t, pod.Spec.Containers, 2, "the sidecar is there")
	stuck := both(in(upgrade.Expanding), says(upgrade.ExpandInProgress, "container db-expand-1 has ended, container mesh-proxy has not; only when it ends is the Job complete"))
	s.await("the sidecar to be named", stuck)
	s.holds(2*time.Second, "the wait", stuck)
	end()
	s.await("the upgrade to end", rests("2026.2"))
}

func TestBL09JobPodsCarryTheLabelsThatAreAskedForThemAlone(t *testing.T) {
	s := expanding(t, func(s *scene) { s.script(upgrade.Expand, harness.Hang()) }, build.Adjust(func(g *v1alpha1.Glance) {
		g.Spec.Jobs.PodLabels = map[string]v1alpha1.LabelValue{"sidecar.istio.io/inject": "false", "app.kubernetes.io/component": "api"}
	}))
	pod := s.awaitPod(upgrade.Expand, "to run", runs)
	require.Equal(t, "false", pod.Labels["sidecar.istio.io/inject"])
	require.Equal(t, "db-expand", pod.Labels["app.kubernetes.io/component"], "a Job pod is never found by the Service")
	serving := s.awaitPod(api, "to run", runs)
	require.NotContains(t, serving.Labels, "sidecar.istio.io/inject")
}

func TestBL04ADrainedMigrationIsReplacedOnlyAfterItsEndAndCostsNoRetry(t *testing.T) {
	s := open(t)
	s.script(upgrade.Migrate, harness.InTurn(harness.Hang(), harness.Hang(), harness.Hang(), harness.Succeed(0)), harness.IgnoreTerm(3*time.Second))
	s.glance(build.Lockstep("2026.2")).record(walking(upgrade.Migrating)).start()
	drained := map[string]bool{}
	for range 3 {
		pod := s.awaitPod(upgrade.Migrate, "to run that was not drained yet", func(pod corev1.Pod) string {
			return lacks(!drained[pod.Name], "it was drained") + runs(pod)
		})
		drained[pod.Name] = true
		s.Evict(t, &pod)
	}
	s.await("the upgrade to end", rests("2026.2"))
	require.Zero(t, s.job(upgrade.Migrate).Status.Failed, "a drain is no failure")
}

func TestBL04AMigrationOnANodeThatIsLostIsNotRunElsewhereUntilItIsKnownToBeOver(t *testing.T) {
	s := open(t)
	back := s.script(upgrade.Migrate, harness.InTurn(harness.Hang(), harness.Succeed(0)))
	s.script(upgrade.Migrate, harness.Lost())
	s.glance(build.Lockstep("2026.2")).record(walking(upgrade.Migrating)).start()
	lost := s.awaitPod(upgrade.Migrate, "to run", runs)
	s.Evict(t, &lost) // as happens to the pods of a node that does not answer
	s.await("the pod to be named", both(in(upgrade.Migrating), says(upgrade.MigrateInProgress, "waiting for "+lost.Name+" (terminating since 20")))
	pods := s.pods(upgrade.Migrate)
	require.Len(t, pods, 1, "no second pod while nobody knows whether the first still runs")
	require.Equal(t, lost.UID, pods[0].UID)
	// A person makes sure that the node is off and removes it; the pod garbage collector then reports its pods so.
	adjustStatus(s, &lost, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
	s.await("the upgrade to end", rests("2026.2"))
	back()
}

func TestBL04AnAbortDoesNotEndWhileAMigrationIsOnANodeThatIsLost(t *testing.T) {
	s := open(t)
	s.script(upgrade.Migrate, harness.Hang(), harness.Lost())
	s.glance(build.Lockstep("2026.2")).record(walking(upgrade.Migrating)).start()
	lost := s.awaitPod(upgrade.Migrate, "to run", runs)
	// Even a Job that is torn from its pod by hand does not hide it.
	require.NoError(t, s.Client.Delete(t.Context(), s.job(upgrade.Migrate), client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	s.edit(build.Lockstep("2026.1"))
	s.holds(3*time.Second, "the walk", in(upgrade.Migrating))
	require.Nil(t, s.job(upgrade.Sync))
	adjustStatus(s, &lost, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
	require.NoError(t, client.IgnoreNotFound(s.Client.Delete(t.Context(), &lost, client.GracePeriodSeconds(0))))
	s.aborted()
}

func TestBL04JobsAreMadeForOnePodAtATime(t *testing.T) {
	s := steady(t)
	spec := s.job(upgrade.Sync).Spec
	require.EqualValues(t, []int32{1, 1, 4}, []int32{*spec.Parallelism, *spec.Completions, *spec.BackoffLimit})
	require.Equal(t, batchv1.Failed, *spec.PodReplacementPolicy)
	require.Equal(t, corev1.RestartPolicyNever, spec.Template.Spec.RestartPolicy)
	require.GreaterOrEqual(t, *spec.Template.Spec.TerminationGracePeriodSeconds, int64(300))
	require.Equal(t, batchv1.PodFailurePolicyActionIgnore, spec.PodFailurePolicy.Rules[0].Action)
	require.Equal(t, corev1.DisruptionTarget, spec.PodFailurePolicy.Rules[0].OnPodConditions[0].Type)
	require.False(t, *spec.Template.Spec.AutomountServiceAccountToken)
}
