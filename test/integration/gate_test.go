package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// heldBack demands that RollingUpdate goes on in these words, for a while, without a Job for contract.
func (s *scene) heldBack(words ...string) {
	s.t.Helper()
	held := both(in(upgrade.RollingUpdate), says(upgrade.UpgradeRollingUpdate, words...))
	s.await("the words of the gate", held)
	s.holds(1500*time.Millisecond, "the gate", held)
	require.Nil(s.t, s.job(upgrade.Contract), "contract has not begun")
}

// goesOn demands that the walk comes to its end, once, after what held it back is gone.
func (s *scene) goesOn() {
	s.t.Helper()
	s.await("the upgrade to end", rests("2026.2"))
	s.toldTimes("Normal DeploymentRolloutComplete", 1)
	s.toldTimes("Normal UpgradeComplete", 1)
	s.toldTimes("Normal UpgradeInitiated", 0)
}

// allButOnePodEnding brings a rollout to its end but for one pod of the old release, which is ending for as long as
// nobody calls let. Everything else that the gate asks for holds.
func allButOnePodEnding(t *testing.T, options ...build.GlanceOption) (s *scene, let func()) {
	t.Helper()
	s, release := rolling(t, options...)
	let = s.scriptImage(api, ":2026.1", harness.Lost())
	release()
	s.awaitDeployment("the new pods to serve", rolledTo(next))
	return s, let
}

func TestContractWaitsForAnOldPodThatIsEndingForLong(t *testing.T) {
	s, let := allButOnePodEnding(t)
	pod := s.awaitPod(api, "to end", func(pod corev1.Pod) string { return lacks(imageOf(&pod) == old, "image %s", imageOf(&pod)) + ends(pod) })
	s.heldBack("pods of the previous template are left: "+pod.Name, "terminating since 20")
	let()
	s.goesOn()
}

func TestBL11ContractWaitsWhileTheDeploymentIsPaused(t *testing.T) {
	s, let := allButOnePodEnding(t)
	pause := func(paused bool) {
		adjust(s, s.deployment(), func(d *appsv1.Deployment) { d.Spec.Paused = paused })
	}
	pause(true)
	s.awaitDeployment("the pause to be observed", rolledTo(next))
	let()
	s.await("the pod to be gone", func(*v1alpha1.Glance) string { return lacks(len(s.pods(api)) == 1, "%d pods", len(s.pods(api))) })
	s.heldBack("Deployment images is paused: resume it to go on")
	pause(false)
	s.goesOn()
}

func TestContractWaitsForTheTemplateOfTheTarget(t *testing.T) {
	s, release := rolling(t)
	allow := s.forbid(product, admissionv1.Update, "apps", "deployments", func(as client.Client) error {
		d := s.deployment()
		return as.Update(t.Context(), d)
	})
	release()
	s.heldBack("Deployment images does not carry the template of "+next+" yet", "update Deployment images", "the site forbids it")
	require.Empty(t, rolledTo(old)(s.deployment()), "the old release serves on")
	allow()
	s.goesOn()
}

func TestContractWaitsUntilTheNewestTemplateIsObserved(t *testing.T) {
	s, let := allButOnePodEnding(t)
	allow := s.forbid(deploymentController, admissionv1.Update, "apps", "deployments/status", func(as client.Client) error {
		d := s.deployment()
		return as.Status().Update(t.Context(), d)
	})
	adjust(s, s.deployment(), func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = ptr.To[int32](3) })
	let()
	s.await("the pod to be gone", func(*v1alpha1.Glance) string { return lacks(len(s.pods(api)) == 1, "%d pods", len(s.pods(api))) })
	d := s.deployment()
	require.Less(t, d.Status.ObservedGeneration, d.Generation)
	s.heldBack("the newest template of Deployment images is not observed yet")
	allow()
	s.goesOn()
}

func TestContractWaitsWhileASurgeIsHalfDone(t *testing.T) {
	s, release := rolling(t, build.Replicas(2))
	finish := s.scriptImage(api, ":2026.2", harness.InTurn(harness.Hang(), harness.SlowReady(harness.Forever)))
	release()
	s.awaitDeployment("the surge", func(d *appsv1.Deployment) string {
		return lacks(d.Status.UpdatedReplicas == 2 && d.Status.Replicas == 3 && d.Status.AvailableReplicas == 2, "%d updated of %d, %d available", d.Status.UpdatedReplicas, d.Status.Replicas, d.Status.AvailableReplicas)
	})
	s.heldBack("2 of 2 pods are updated, 2 available, 3 in all")
	finish()
	s.goesOn()
}

func TestContractWaitsForAPodThatIsNotAvailable(t *testing.T) {
	oneByOne := appsv1.RollingUpdateDeployment{MaxUnavailable: ptr.To(intstr.FromInt32(1)), MaxSurge: ptr.To(intstr.FromInt32(0))}
	s, release := rolling(t, build.Strategy(oneByOne))
	ready := s.scriptImage(api, ":2026.2", harness.SlowReady(harness.Forever))
	release()
	s.heldBack("1 of 1 pods are updated, 0 available, 1 in all")
	ready()
	s.goesOn()
}

func TestContractWaitsWhileThereAreMorePodsThanAskedFor(t *testing.T) {
	s, let := allButOnePodEnding(t, build.Replicas(2))
	allow := s.forbid(replicaSetController, admissionv1.Delete, "", "pods", func(as client.Client) error {
		return as.Delete(t.Context(), s.newPod())
	})
	s.edit(build.Replicas(1))
	s.awaitDeployment("one pod to be asked for", func(d *appsv1.Deployment) string { return lacks(*d.Spec.Replicas == 1, "%d", *d.Spec.Replicas) })
	let()
	s.heldBack("2 of 1 pods are updated, 2 available, 2 in all")
	allow()
	s.goesOn()
}

func (s *scene) newPod() *corev1.Pod {
	s.t.Helper()
	pod := s.awaitPod(api, "of the target", func(pod corev1.Pod) string {
		return lacks(imageOf(&pod) == next, "image %s", imageOf(&pod)) + runs(pod)
	})
	return &pod
}

func TestBL11WithNoReplicasContractWaitsUntilNoPodIsLeftAtAll(t *testing.T) {
	s, let := allButOnePodEnding(t)
	last := s.scriptImage(api, ":2026.2", harness.Lost())
	s.edit(build.Replicas(0))
	s.awaitPod(api, "of the target to end", func(pod corev1.Pod) string {
		return lacks(imageOf(&pod) == next, "image %s", imageOf(&pod)) + ends(pod)
	})
	let()
	s.heldBack("no replicas are asked for and 1 pods are left")
	last()
	s.goesOn()
	require.Empty(t, s.pods(api))
}

func TestBL11NoReplicasAtAllWalkThrough(t *testing.T) {
	s, release := rolling(t, build.Replicas(0))
	release()
	s.goesOn()
	require.Empty(t, s.pods(api))
}

func TestBL12NewPodsThatCrashHoldContractBackAndAreNamedWithTheirReason(t *testing.T) {
	s, release := rolling(t)
	repair := s.scriptImage(api, ":2026.2", harness.CrashLoop(1, "no such option: workers"))
	release()
	s.heldBack("CrashLoopBackOff", "last exit code 1: no such option: workers")
	serving := s.deployment()
	require.EqualValues(t, 1, serving.Status.AvailableReplicas, "the old pod serves")
	require.NotContains(t, fmt.Sprint(s.told()), "Warning", "a rollout that waits is no event")
	repair()
	g := s.await("the upgrade to end", rests("2026.2"))
	require.NotContains(t, database(g).Message, "CrashLoop", "the words are gone with the trouble")
}

func TestBL11AnAutoscalerMayChangeReplicasDuringTheRollout(t *testing.T) {
	s, release := rolling(t, build.AnyReplicas())
	hold := s.scriptImage(api, ":2026.2", harness.SlowReady(harness.Forever))
	release()
	s.await("the rollout", in(upgrade.RollingUpdate))
	s.awaitPod(api, "of the target", func(pod corev1.Pod) string { return lacks(imageOf(&pod) == next, "image %s", imageOf(&pod)) })
	began := s.now().Status.PhaseStartTime
	adjust(s, s.deployment(), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](4) })
	hold()
	s.goesOn()
	d := s.deployment()
	require.EqualValues(t, 4, *d.Spec.Replicas, "the number is the autoscaler's")
	require.Empty(t, rolledTo(next)(d))
	require.NotNil(t, began)
}

func TestBL11ContractWaitsForMinReadySeconds(t *testing.T) {
	const wait = 6 * time.Second
	s, release := rolling(t, build.MinReadySeconds(int32(wait/time.Second)))
	release()
	contract := s.awaitJob(upgrade.Contract, "to exist", exists)
	for _, pod := range s.pods(api) {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady {
				require.GreaterOrEqual(t, contract.CreationTimestamp.Sub(c.LastTransitionTime.Time), wait, "ready is not available")
			}
		}
	}
	s.goesOn()
}

func TestAConfigurationThatChangesDuringTheRolloutIsRolledBeforeContract(t *testing.T) {
	s, let := allButOnePodEnding(t)
	first := s.newPod()
	s.edit(build.Config("DEFAULT", "debug", "true"))
	s.Eventually(t, harness.Patience, "the pod to be replaced", func(context.Context) string {
		return lacks(s.newPod().Name != first.Name, "it is still %s", first.Name)
	})
	require.Nil(t, s.job(upgrade.Contract))
	let()
	s.goesOn()
}

func TestAContractThatCouldNotStartDoesNotOutlastTheGate(t *testing.T) {
	s := open(t)
	pull := s.script(upgrade.Contract, harness.NeverPull("back-off"))
	s.glance(build.Lockstep("2026.2")).record(walking(upgrade.RollingUpdate)).start()
	s.await("contract to be stuck", says(upgrade.ContractInProgress, "ImagePullBackOff"))
	s.controller.Kill(t)
	// kubectl rollout undo while no controller works: the template of before comes back with its notes.
	adjust(s, s.deployment(), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Image = old
		d.Spec.Template.Annotations[render.AnnotationRelease] = "2026.1"
		d.Spec.Template.Annotations[render.AnnotationImage] = old
		d.Spec.Template.Annotations[render.AnnotationTemplate] = "that-of-2026.1"
	})
	s.awaitDeployment("the old pods to serve", rolledTo(old))
	forward := s.scriptImage(api, ":2026.2", harness.SlowReady(harness.Forever))
	s.start()
	s.awaitDeployment("the controller to put the template right", func(d *appsv1.Deployment) string {
		return lacks(imageIn(d) == next, "image %s", imageIn(d))
	})
	held := both(in(upgrade.Contracting), says(upgrade.ContractInProgress, "contract is held back"))
	s.await("contract to be held back", held)
	require.Nil(t, s.job(upgrade.Contract), "whatever kept it from starting may end at any time")
	pull()
	s.holds(1500*time.Millisecond, "the gate", held)
	forward()
	s.await("the upgrade to end", rests("2026.2"))
}
