package harness_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

func TestAJobRunsToCompleteByTheRealJobController(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	ns := env.Namespace(t)
	mark := env.Mark(t)
	job := build.Job(ns, "migrate", "glance:2026.2")
	env.Create(t, job)

	done := harness.Await(t, env, job, "the Job to complete", outcome("Complete"))
	require.EqualValues(t, 1, done.Status.Succeeded)

	calls := env.CallsSince(t, mark, harness.SystemController("job-controller")).Where(harness.In(ns), harness.Writes)
	require.Len(t, calls.Where(harness.On("pods"), harness.By("create")), 1, "the Job controller makes the pod:\n%s", calls)
	require.NotEmpty(t, calls.Where(harness.On("jobs/status")), "and writes the status:\n%s", calls)
}

func TestAFailingJobIsRetriedFourTimesAndThenFails(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	ns := env.Namespace(t)
	env.Kubelet.Script(t, harness.Pods{Namespace: ns}, harness.Fail(1, "server error 1419"))
	job := build.Job(ns, "expand", "glance:2026.2")
	env.Create(t, job)

	started := time.Now()
	failed := harness.Await(t, env, job, "the Job to fail", outcome("Failed"))
	t.Logf("five attempts took %s", time.Since(started).Round(100*time.Millisecond))
	require.Less(t, time.Since(started), 45*time.Second, "the back-off was not counted from the reported end")

	require.EqualValues(t, 5, failed.Status.Failed)
	require.True(t, slices.ContainsFunc(failed.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == batchv1.JobFailed && c.Reason == batchv1.JobReasonBackoffLimitExceeded
	}), "%v", failed.Status.Conditions)
	pods := env.PodsOf(t, harness.Pods{Namespace: ns})
	require.Len(t, pods, 5)
	for _, pod := range pods {
		end := pod.Status.ContainerStatuses[0].State.Terminated
		require.NotNil(t, end)
		require.Equal(t, "server error 1419", end.Message)
		require.EqualValues(t, 1, end.ExitCode)
	}
}

func TestAJobCompletesWhenALaterPodSucceeds(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	ns := env.Namespace(t)
	env.Kubelet.Script(t, harness.Pods{Namespace: ns}, harness.InTurn(harness.Fail(1, "replica lags"), harness.Fail(2, ""), harness.Succeed(0)))
	job := build.Job(ns, "contract", "glance:2026.2")
	env.Create(t, job)
	done := harness.Await(t, env, job, "the Job to complete", outcome("Complete"))
	require.EqualValues(t, 2, done.Status.Failed)
	require.EqualValues(t, 1, done.Status.Succeeded)
}

func TestAHangingPodGoesOnWhenItsScriptIsTakenBack(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	ns := env.Namespace(t)
	takeBack := env.Kubelet.Script(t, harness.Pods{Namespace: ns, Component: "slow", Image: ":2026.2"}, harness.Hang())
	slow, quick := build.Job(ns, "slow", "glance:2026.2"), build.Job(ns, "slow-too", "glance:2026.1")
	env.Create(t, slow, quick)
	harness.Await(t, env, quick, "the Job of another image to complete", outcome("Complete"))
	harness.Await(t, env, slow, "the Job to count a ready pod", func(j *batchv1.Job) string {
		return lack(ptr.Deref(j.Status.Ready, 0) == 1, "ready is %d", ptr.Deref(j.Status.Ready, 0))
	})
	harness.Throughout(t, env, 2*time.Second, slow, "the Job running", outcome(""))
	takeBack()
	harness.Await(t, env, slow, "the Job to complete", outcome("Complete"))
}

func TestADeploymentRollsWhileOldPodsEndSlowly(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	ns := env.Namespace(t)
	deployment := build.Deployment(ns, "api", "glance:2026.1", 3)
	env.Create(t, deployment)
	harness.Await(t, env, deployment, "the first rollout", rolledOut)

	release := env.Kubelet.Script(t, harness.Pods{Namespace: ns, Image: ":2026.1"}, harness.Lost())
	old := harness.Pods{Namespace: ns, Image: ":2026.1"}
	stop := watchRoll(t, env, deployment)
	change(t, env, deployment, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "glance:2026.2" })

	harness.Await(t, env, deployment, "the second rollout", rolledOut)
	stop()
	terminating := env.PodsOf(t, old)
	require.Len(t, terminating, 3, "the Deployment is complete before its old pods are gone")
	for _, pod := range terminating {
		require.NotNil(t, pod.DeletionTimestamp)
		require.Equal(t, corev1.PodRunning, pod.Status.Phase)
	}
	release()
	env.Eventually(t, harness.Patience, "the old pods to go", func(context.Context) string {
		return lack(len(env.PodsOf(t, old)) == 0, "%d left", len(env.PodsOf(t, old)))
	})
}

func TestMinReadySecondsAndSlowPodsHoldARolloutBack(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	ns := env.Namespace(t)
	env.Kubelet.Script(t, harness.Pods{Namespace: ns}, harness.SlowReady(2*time.Second))
	deployment := build.Deployment(ns, "api", "glance:2026.1", 1, func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 3 })
	env.Create(t, deployment)
	harness.Throughout(t, env, time.Second, deployment, "the pod unready", func(d *appsv1.Deployment) string {
		return lack(d.Status.ReadyReplicas == 0, "ready is %d", d.Status.ReadyReplicas)
	})
	harness.Await(t, env, deployment, "a pod that is ready and not available", func(d *appsv1.Deployment) string {
		return lack(d.Status.ReadyReplicas == 1 && d.Status.AvailableReplicas == 0, "ready %d, available %d", d.Status.ReadyReplicas, d.Status.AvailableReplicas)
	})
	harness.Await(t, env, deployment, "the rollout", rolledOut)
}

func TestACrashLoopKeepsADeploymentFromRolling(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	ns := env.Namespace(t)
	deployment := build.Deployment(ns, "api", "glance:2026.1", 2, func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = ptr.To[int32](2) })
	env.Create(t, deployment)
	harness.Await(t, env, deployment, "the first rollout", rolledOut)
	repair := env.Kubelet.Script(t, harness.Pods{Namespace: ns, Image: ":2026.2"}, harness.CrashLoop(1, "no such option"))
	change(t, env, deployment, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "glance:2026.2" })

	harness.Await(t, env, deployment, "the deadline to pass while old pods serve", func(d *appsv1.Deployment) string {
		late := slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
			return c.Type == appsv1.DeploymentProgressing && c.Reason == "ProgressDeadlineExceeded"
		})
		return lack(late && d.Status.AvailableReplicas == 2, "conditions %v, available %d", d.Status.Conditions, d.Status.AvailableReplicas)
	})
	pods := env.PodsOf(t, harness.Pods{Namespace: ns, Image: ":2026.2"})
	require.Len(t, pods, 1)
	container := pods[0].Status.ContainerStatuses[0]
	require.Equal(t, "CrashLoopBackOff", container.State.Waiting.Reason)
	require.Equal(t, "no such option", container.LastTerminationState.Terminated.Message)
	repair()
	harness.Await(t, env, deployment, "the rollout to go on", rolledOut)
}

func TestForegroundDeletionOfAJobWaitsForAPodThatIgnoresSIGTERM(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	ns := env.Namespace(t)
	env.Kubelet.Script(t, harness.Pods{Namespace: ns}, harness.Hang(), harness.IgnoreTerm(4*time.Second))
	job := build.Job(ns, "migrate", "glance:2026.2")
	env.Create(t, job)
	awaitPodRunning(t, env, ns)

	require.NoError(t, env.Client.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	harness.Throughout(t, env, 3*time.Second, job, "the Job kept by its pod", func(j *batchv1.Job) string {
		return lack(j.DeletionTimestamp != nil && len(env.PodsOf(t, harness.Pods{Namespace: ns})) == 1, "the pod is gone")
	})
	pod := env.PodsOf(t, harness.Pods{Namespace: ns})[0]
	require.Equal(t, corev1.PodRunning, pod.Status.Phase)
	require.NotNil(t, pod.DeletionTimestamp)
	harness.AwaitGone(t, env, job)
	require.Empty(t, env.PodsOf(t, harness.Pods{Namespace: ns}))
}

func TestAnEvictedPodOfAJobIsReplacedOnlyAfterItsEnd(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	ns := env.Namespace(t)
	env.Kubelet.Script(t, harness.Pods{Namespace: ns}, harness.InTurn(harness.Hang(), harness.Succeed(0)), harness.IgnoreTerm(3*time.Second))
	job := build.Job(ns, "migrate", "glance:2026.2", func(j *batchv1.Job) {
		j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
			Action:          batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
		}}}
	})
	env.Create(t, job)
	evicted := awaitPodRunning(t, env, ns)
	env.Evict(t, &evicted)
	harness.Throughout(t, env, 2*time.Second, job, "one pod at a time", func(*batchv1.Job) string {
		return lack(len(env.PodsOf(t, harness.Pods{Namespace: ns})) == 1, "%d pods", len(env.PodsOf(t, harness.Pods{Namespace: ns})))
	})
	done := harness.Await(t, env, job, "the Job to complete", outcome("Complete"))
	require.EqualValues(t, 0, done.Status.Failed, "a disruption does not count as a failure")
}

func TestAFullQuotaIsToldByTheJobControllerAndHeals(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	ns := env.Namespace(t)
	quota := build.PodQuota(ns, 0)
	env.Create(t, quota)
	harness.Await(t, env, quota, "the quota to count", func(q *corev1.ResourceQuota) string { return lack(q.Status.Hard != nil, "not yet") })
	job := build.Job(ns, "expand", "glance:2026.2")
	env.Create(t, job)
	awaitEvent(t, env, ns, "FailedCreate", "exceeded quota: pods")
	require.NoError(t, env.Client.Delete(t.Context(), quota))
	harness.Await(t, env, job, "the Job to complete", outcome("Complete"))
}

func TestPodSecurityRefusesAPodAndTheJobControllerTells(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	ns := env.Namespace(t)
	env.Create(t, build.Job(ns, "expand", "glance:2026.2", func(j *batchv1.Job) {
		j.Spec.Template.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = ptr.To(true)
	}))
	awaitEvent(t, env, ns, "FailedCreate", `violates PodSecurity "restricted:latest"`)
	require.Empty(t, env.PodsOf(t, harness.Pods{Namespace: ns}))
}

func TestAPodThatCannotStartSaysSoLikeAKubeletAndHeals(t *testing.T) {
	t.Parallel()
	secretVolume := func(j *batchv1.Job) {
		spec := &j.Spec.Template.Spec
		spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: build.DatabaseSecretRef}}}}
		spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/etc/glance"}}
	}
	secretEnv := func(j *batchv1.Job) {
		j.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "OS_DATABASE__CONNECTION", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: build.DatabaseSecretRef}, Key: "connection"},
		}}}
	}
	for _, c := range []struct {
		name      string
		behaviour []harness.Behaviour
		change    func(*batchv1.Job)
		reason    string
		message   string
		event     string
	}{
		{"an image that cannot be pulled", []harness.Behaviour{harness.NeverPull(`Back-off pulling image "glance:2026.2"`)}, nil, "ImagePullBackOff", "Back-off pulling", "Failed"},
		{"no node takes it", []harness.Behaviour{harness.Unschedulable("0/3 nodes are available")}, nil, "Unschedulable", "0/3 nodes", "FailedScheduling"},
		{"a Secret is missing in the environment", nil, secretEnv, "CreateContainerConfigError", `secret "glance-database" not found`, ""},
		{"a Secret is missing as a volume", nil, secretVolume, "ContainerCreating", "", "FailedMount"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			env := harness.Shared(t)
			ns := env.Namespace(t)
			takeBack := env.Kubelet.Script(t, harness.Pods{Namespace: ns}, c.behaviour...)
			job := build.Job(ns, "expand", "glance:2026.2")
			if c.change != nil {
				c.change(job)
			}
			env.Create(t, job)
			env.Eventually(t, harness.Patience, "a pod that says "+c.reason, func(context.Context) string {
				for _, pod := range env.PodsOf(t, harness.Pods{Namespace: ns}) {
					reason, message := why(&pod)
					require.Equal(t, corev1.PodPending, pod.Status.Phase)
					return lack(reason == c.reason && strings.Contains(message, c.message), "it says %s: %s", reason, message)
				}
				return "no pod"
			})
			if c.event != "" {
				awaitEvent(t, env, ns, c.event, "")
			}
			harness.Throughout(t, env, time.Second, job, "the Job neither complete nor failed", outcome(""))
			takeBack()
			if c.behaviour == nil {
				env.Create(t, build.DatabaseSecret(ns))
			}
			harness.Await(t, env, job, "the Job to complete", outcome("Complete"))
		})
	}
}

func TestChildrenOfADeletedGlanceAreCollected(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	ns := env.Namespace(t)
	g := build.Glance("images", build.In(ns))
	env.Create(t, g)
	job := build.Job(ns, "images-db-sync", "glance:2026.1", func(j *batchv1.Job) {
		j.OwnerReferences = []metav1.OwnerReference{{APIVersion: "openstack.c5c3.io/v1alpha1", Kind: "Glance", Name: g.Name, UID: g.UID, Controller: ptr.To(true)}}
	})
	env.Create(t, job)
	harness.Await(t, env, job, "the Job to complete", outcome("Complete"))
	require.NoError(t, env.Client.Delete(t.Context(), g))
	harness.AwaitGone(t, env, job)
}

func TestCallsAreCountedByWhoMakesThem(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	ns := env.Namespace(t)
	someone := env.ClientFor(t, env.UserConfig(t, "someone "+ns, "system:masters"))
	nobody := env.ClientFor(t, env.UserConfig(t, "nobody "+ns))
	mark := env.Mark(t)

	g := build.Glance("images", build.In(ns))
	require.NoError(t, someone.Create(t.Context(), g))
	g.Status.InstalledRelease = "2026.1"
	require.NoError(t, someone.Status().Update(t.Context(), g))
	require.NoError(t, someone.Get(t.Context(), client.ObjectKeyFromObject(g), g))
	require.True(t, apierrors.IsForbidden(nobody.Delete(t.Context(), g)))

	calls := env.CallsSince(t, mark, harness.Actor{User: "someone " + ns})
	require.Equal(t, "   1 × create glances\n   1 × get glances\n   1 × update glances/status\n", calls.String())
	require.Len(t, calls.Where(harness.Writes), 2)
	refused := env.CallsSince(t, mark, harness.Actor{User: "nobody " + ns})
	require.Equal(t, "   1 × delete glances (403)\n", refused.String())
	require.True(t, refused[0].Forbidden)
	require.False(t, calls[0].Forbidden)
	require.Empty(t, env.CallsSince(t, env.Mark(t), harness.Actor{User: "someone " + ns}))
}

func TestATranscriptTellsAWalkInOrder(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	ns := env.Namespace(t)
	transcript := env.Record(t, ns, "images")
	g := build.Glance("images", build.In(ns))
	env.Create(t, g)
	change(t, env, g, nil)
	g.Status.InstalledRelease, g.Status.InstalledImage = "2026.1", "glance:2026.1"
	require.NoError(t, env.Client.Status().Update(t.Context(), g))
	build.Change(g, build.Lockstep("2026.2"))
	require.NoError(t, env.Client.Update(t.Context(), g))
	g.Status.UpgradePhase, g.Status.TargetRelease, g.Status.TargetImage = "Expanding", "2026.2", "glance:2026.2"
	g.Status.Conditions = []metav1.Condition{{Type: "DatabaseReady", Status: "False", Reason: "ExpandInProgress", LastTransitionTime: metav1.Now()}}
	require.NoError(t, env.Client.Status().Update(t.Context(), g))
	job := build.Job(ns, "images-db-expand", "glance:2026.2")
	env.Create(t, job)
	harness.Await(t, env, job, "the Job to complete", outcome("Complete"))
	env.Create(t, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: ns, Name: "one"},
		InvolvedObject: corev1.ObjectReference{Kind: "Glance", Namespace: ns, Name: "images", UID: g.UID},
		Type:           "Normal", Reason: "UpgradeInitiated", Message: "2026.1 → 2026.2 in " + ns,
	})
	transcript.Golden(t, "walk")
}

// helpers

func lack(holds bool, format string, args ...any) string {
	if holds {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func outcome(wanted string) func(*batchv1.Job) string {
	return func(job *batchv1.Job) string {
		found := ""
		for _, c := range job.Status.Conditions {
			if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
				found = string(c.Type)
			}
		}
		return lack(found == wanted, "outcome is %q, active %d, failed %d", found, job.Status.Active, job.Status.Failed)
	}
}

func rolledOut(d *appsv1.Deployment) string {
	s := d.Status
	n := *d.Spec.Replicas
	return lack(s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == n && s.Replicas == n && s.AvailableReplicas == n,
		"updated %d, replicas %d, available %d of %d", s.UpdatedReplicas, s.Replicas, s.AvailableReplicas, n)
}

func change[T client.Object](t *testing.T, env *harness.Env, object T, how func(T)) {
	t.Helper()
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	if how == nil {
		return
	}
	before := object.DeepCopyObject().(T)
	how(object)
	require.NoError(t, env.Client.Patch(t.Context(), object, client.MergeFrom(before)))
}

func awaitPodRunning(t *testing.T, env *harness.Env, ns string) (running corev1.Pod) {
	t.Helper()
	env.Eventually(t, harness.Patience, "a pod to run", func(context.Context) string {
		for _, running = range env.PodsOf(t, harness.Pods{Namespace: ns}) {
			return lack(running.Status.Phase == corev1.PodRunning, "it is %s", running.Status.Phase)
		}
		return "no pod"
	})
	return running
}

func awaitEvent(t *testing.T, env *harness.Env, ns, reason, words string) {
	t.Helper()
	env.Eventually(t, harness.Patience, "an event "+reason, func(ctx context.Context) string {
		var events corev1.EventList
		if err := env.Client.List(ctx, &events, client.InNamespace(ns)); err != nil {
			return err.Error()
		}
		return lack(slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.Reason == reason && strings.Contains(e.Message, words)
		}), "not among %d events", len(events.Items))
	})
}

func why(pod *corev1.Pod) (reason, message string) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason, c.Message
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Waiting != nil {
			return c.State.Waiting.Reason, c.State.Waiting.Message
		}
	}
	return "", ""
}

// watchRoll demands of a rollout, at every moment, that it surges by one pod at most and never serves with fewer.
func watchRoll(t *testing.T, env *harness.Env, d *appsv1.Deployment) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
			now := &appsv1.Deployment{}
			if err := env.Client.Get(context.Background(), client.ObjectKeyFromObject(d), now); err != nil {
				done <- err
				return
			}
			if now.Status.AvailableReplicas < 3 || now.Status.Replicas > 4 {
				done <- fmt.Errorf("available %d of 3, replicas %d", now.Status.AvailableReplicas, now.Status.Replicas)
				return
			}
		}
		done <- nil
	}()
	return func() { t.Helper(); cancel(); require.NoError(t, <-done) }
}
