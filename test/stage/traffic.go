package stage

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/test/traffic/ledger"
)

//go:embed traffic.yaml
var trafficManifest string

// Traffic is a client that runs as a pod and asks a service without a pause.
type Traffic struct {
	stage *Stage
	name  string
}

// StartTraffic starts a client of an Image API. The pod ends by itself after half an hour.
func (s *Stage) StartTraffic(ctx context.Context, name, url string, rate float64) (*Traffic, error) {
	return s.StartClient(ctx, name, TrafficImage, "--url="+url, fmt.Sprintf("--rate=%g", rate))
}

// StartClient starts a pod of any program that keeps a ledger: it ends when it is told "stop", and then prints its
// summary as the last line. One of that name that is there is replaced.
func (s *Stage) StartClient(ctx context.Context, name, image string, args ...string) (*Traffic, error) {
	if err := s.do(ctx, trafficManifest, "apply", "--server-side", "--filename", "-"); err != nil {
		return nil, err
	}
	pod := clientPod(name, image, args)
	if err := s.Client.Delete(ctx, pod.DeepCopy(), client.GracePeriodSeconds(1)); err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("delete the pod of an earlier client: %w", err)
	}
	err := s.Await(ctx, "client "+name+" to start", time.Minute, func(ctx context.Context) (bool, string, error) {
		var seen corev1.Pod
		switch err := s.Client.Get(ctx, client.ObjectKeyFromObject(pod), &seen); {
		case apierrors.IsNotFound(err):
			if err := s.Client.Create(ctx, pod.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
				return false, "", fmt.Errorf("create pod %s: %w", name, err)
			}
			return false, "created", nil
		case err != nil:
			return false, err.Error(), nil
		}
		return seen.DeletionTimestamp == nil && seen.Status.Phase == corev1.PodRunning, string(seen.Status.Phase), nil
	})
	return &Traffic{stage: s, name: name}, err
}

func clientPod(name, image string, args []string) *corev1.Pod {
	no, yes, none := false, true, int64(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: TrafficNamespace, Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no, EnableServiceLinks: &no, TerminationGracePeriodSeconds: &none,
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "client", Image: image, ImagePullPolicy: corev1.PullNever, Args: args,
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m")}},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}
}

// Now is how the client fares.
func (t *Traffic) Now(ctx context.Context) (ledger.Second, error) {
	var second ledger.Second
	out, err := t.stage.Kubectl(ctx, "", "-n", TrafficNamespace, "logs", "--tail=1", t.name)
	if err != nil || strings.TrimSpace(out) == "" {
		return second, err
	}
	return second, json.Unmarshal([]byte(out), &second)
}

// Stop tells the client to stop, lets it come to its end, and returns what it counted.
func (t *Traffic) Stop(ctx context.Context) (ledger.Summary, error) {
	var summary ledger.Summary
	key := client.ObjectKey{Namespace: TrafficNamespace, Name: t.name}
	var pod corev1.Pod
	if err := t.stage.Client.Get(ctx, key, &pod); err != nil {
		return summary, fmt.Errorf("get the client's pod: %w", err)
	}
	if pod.Status.Phase == corev1.PodRunning {
		if err := t.stage.do(ctx, "", "-n", TrafficNamespace, "exec", t.name, "--", "/program", "stop"); err != nil {
			return summary, err
		}
	}
	err := t.stage.Await(ctx, "client "+t.name+" to come to its end", 4*time.Minute, func(ctx context.Context) (bool, string, error) {
		if err := t.stage.Client.Get(ctx, key, &pod); err != nil {
			return false, err.Error(), nil
		}
		return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed, string(pod.Status.Phase), nil
	})
	if err != nil {
		return summary, err
	}
	out, err := t.stage.Kubectl(ctx, "", "-n", TrafficNamespace, "logs", "--tail=1", t.name)
	if err != nil {
		return summary, fmt.Errorf("read the client's summary: %w", err)
	}
	if err := json.Unmarshal([]byte(out), &summary); err != nil || !summary.Final {
		return summary, fmt.Errorf("the client left no summary; its last line: %.300s", out)
	}
	return summary, nil
}
