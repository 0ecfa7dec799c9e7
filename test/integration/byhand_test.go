package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

func TestContractWaitsForAPodOfAnImageThatSomebodyHasSetByHand(t *testing.T) {
	s, release := rolling(t)
	hold := s.scriptImage(api, ":2026.2", harness.SlowReady(harness.Forever))
	release()
	s.awaitPod(api, "of the target to run", func(pod corev1.Pod) string {
		return lacks(imageOf(&pod) == next, "image %s", imageOf(&pod)) + runs(pod)
	})
	s.controller.Kill(t)
	// The image alone goes back; what is noted on the template stays, and so is on every pod of it.
	adjust(s, s.deployment(), func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = old })
	claims := s.deployment().Spec.Template.Annotations
	s.awaitDeployment("the change to be rolled out", rolledTo(old))
	let := s.scriptImage(api, ":2026.1", harness.Lost())
	hold()
	s.start()
	s.awaitDeployment("the change to be put right", rolledTo(next))
	pod := s.awaitPod(api, "of the image set by hand to end", func(pod corev1.Pod) string {
		return lacks(imageOf(&pod) == old && pod.Annotations[render.AnnotationTemplate] == claims[render.AnnotationTemplate], "image %s", imageOf(&pod)) + ends(pod)
	})
	s.heldBack("pods of the previous template are left: "+pod.Name, "terminating since 20")
	let()
	s.goesOn()
}

func TestTheSyncAfterAnAbortWaitsWhileAPausedDeploymentKeepsPodsOfTheTarget(t *testing.T) {
	s, release := rolling(t, build.Replicas(2))
	s.scriptImage(api, ":2026.2", harness.InTurn(harness.Hang(), harness.SlowReady(harness.Forever)))
	release()
	s.awaitDeployment("half of the pods to be rolled", func(d *appsv1.Deployment) string {
		return lacks(d.Status.UpdatedReplicas == 2 && d.Status.Replicas == 3, "%d updated of %d", d.Status.UpdatedReplicas, d.Status.Replicas)
	})
	pause := func(paused bool) {
		adjust(s, s.deployment(), func(d *appsv1.Deployment) { d.Spec.Paused = paused })
	}
	pause(true)
	s.edit(build.Lockstep("2026.1"))
	held := says(upgrade.DBSyncInProgress, "waits until no pod of 2026.2 is left; Deployment images is paused: resume it to go on")
	s.await("the words", held)
	s.holds(1500*time.Millisecond, "the sync", held)
	require.Nil(t, s.job(upgrade.Sync))
	pause(false)
	s.aborted()
}
