package harness

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func pod(policy corev1.RestartPolicy, init ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid"},
		Spec: corev1.PodSpec{
			RestartPolicy: policy, InitContainers: init,
			Containers: []corev1.Container{{Name: "main", Image: "glance:2026.2"}, {Name: "proxy", Image: "mesh"}},
		},
	}
}

func TestReportSaysWhatAKubeletSays(t *testing.T) {
	t.Parallel()
	setup := corev1.Container{Name: "setup"}
	sidecar := corev1.Container{Name: "mesh", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}
	for _, c := range []struct {
		name   string
		pod    *corev1.Pod
		stage  stage
		phase  corev1.PodPhase
		ready  string
		states string
	}{
		{"a pod that runs is ready when it says so", pod("Never"), running(true), "Running", "True", "main running, proxy running"},
		{"a pod that runs need not be ready", pod("Always"), running(false), "Running", "False", "main running, proxy running"},
		{"a pod that waits says why", pod("Never"), stage{kind: waiting, reason: "ErrImagePull"}, "Pending", "False", "main waits ErrImagePull, proxy waits ErrImagePull"},
		{"the first container that waits says why", pod("Never", setup), stage{kind: waiting, reason: "ErrImagePull"}, "Pending", "False", "setup waits ErrImagePull, main waits PodInitializing, proxy waits PodInitializing"},
		{"a pod that is done has ended containers", pod("Never", setup), stage{kind: ended}, "Succeeded", "False", "setup exit 0, main exit 0, proxy exit 0"},
		{"a pod fails", pod("Never"), stage{kind: ended, exit: 3, message: "no"}, "Failed", "False", "main exit 3 no, proxy exit 3 no"},
		{"a pod fails in one container", pod("Never"), stage{kind: ended, exit: 3, container: "main"}, "Failed", "False", "main exit 3, proxy exit 0"},
		{"a pod fails before its containers start", pod("Never", setup), stage{kind: ended, exit: 3, container: "setup"}, "Failed", "False", "setup exit 3, main waits PodInitializing, proxy waits PodInitializing"},
		{"a server that ends is started again", pod("Always"), stage{kind: ended, exit: 1}, "Running", "False", "main waits CrashLoopBackOff, proxy waits CrashLoopBackOff"},
		{"a sidecar that stays keeps the pod running", pod("Never"), stage{kind: alive, container: "proxy"}, "Running", "False", "main exit 0, proxy running"},
		{"a native sidecar runs beside the containers", pod("Never", sidecar), running(true), "Running", "True", "mesh running, main running, proxy running"},
		{"and ends with them", pod("Never", sidecar), stage{kind: ended}, "Succeeded", "False", "mesh exit 0, main exit 0, proxy exit 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			status := report(c.pod, c.stage, "10.0.0.1", time.Now())
			require.Equal(t, c.phase, status.Phase)
			require.Equal(t, c.states, states(status))
			for _, condition := range status.Conditions {
				if condition.Type == corev1.PodReady {
					require.Equal(t, c.ready, string(condition.Status))
				}
			}
			again := c.pod.DeepCopy()
			again.Status = status
			require.Equal(t, status, report(again, c.stage, "10.0.0.1", time.Now().Add(time.Hour)), "saying the same twice changes nothing")
		})
	}
}

func TestATerminationMessageIsCutWhereAKubeletCutsIt(t *testing.T) {
	t.Parallel()
	status := report(pod("Never"), stage{kind: ended, exit: 1, message: strings.Repeat("x", 9000)}, "10.0.0.1", time.Now())
	require.Len(t, status.ContainerStatuses[0].State.Terminated.Message, longestMessage)
}

func states(status corev1.PodStatus) string {
	var all []string
	for _, c := range append(status.InitContainerStatuses, status.ContainerStatuses...) {
		switch s := c.State; {
		case s.Running != nil:
			all = append(all, c.Name+" running")
		case s.Waiting != nil:
			all = append(all, c.Name+" waits "+s.Waiting.Reason)
		default:
			all = append(all, strings.TrimSpace(c.Name+" exit "+string('0'+s.Terminated.ExitCode)+" "+s.Terminated.Message))
		}
	}
	return strings.Join(all, ", ")
}
