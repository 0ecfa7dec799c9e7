package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ProductPods lists the pods of the webhook or the controller that are not ending.
func (s *Stage) ProductPods(ctx context.Context, name string) ([]corev1.Pod, error) {
	pods, err := s.everyPod(ctx, name)
	return slices.DeleteFunc(pods, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }), err
}

func (s *Stage) everyPod(ctx context.Context, name string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := s.Client.List(ctx, &pods, client.InNamespace(ProductNamespace), client.MatchingLabels{"app.kubernetes.io/name": name}); err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", name, err)
	}
	return pods.Items, nil
}

// Restart rolls the webhook or the controller out anew and waits until that is done.
func (s *Stage) Restart(ctx context.Context, name string) error {
	if err := s.do(ctx, "", "-n", ProductNamespace, "rollout", "restart", "deployment/"+name); err != nil {
		return err
	}
	return s.Await(ctx, name+" to be rolled out anew", 3*time.Minute, s.RolledOut(ProductNamespace, name))
}

// KillLeader kills the controller that works, as a crash would: it cannot give its lease back. It returns the pod's name.
func (s *Stage) KillLeader(ctx context.Context) (string, error) {
	var lease coordinationv1.Lease
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: ProductNamespace, Name: Controller}, &lease); err != nil {
		return "", fmt.Errorf("find the controller that works: %w", err)
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", errors.New("find the controller that works: nobody holds the lease")
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	var pod corev1.Pod
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: ProductNamespace, Name: name}, &pod); err != nil {
		return "", fmt.Errorf("find the controller that works: %w", err)
	}
	return name, s.Kill(ctx, &pod)
}

// Kill kills what runs in a pod as a crash would, or the kernel when memory runs out: nothing is given back, no
// connection is ended in order, and nobody is told. The kubelet starts it again.
func (s *Stage) Kill(ctx context.Context, pod *corev1.Pod) error {
	for _, c := range pod.Status.ContainerStatuses {
		if _, id, found := strings.Cut(c.ContainerID, "://"); found {
			return s.inside(ctx, "ctr", "tasks", "kill", "--signal", "SIGKILL", id)
		}
	}
	return fmt.Errorf("kill pod %s: it has no container", pod.Name)
}

// QuotaInForce looks whether a quota is counted.
func (s *Stage) QuotaInForce(namespace, name string) Look {
	return func(ctx context.Context) (bool, string, error) {
		var quota corev1.ResourceQuota
		if err := s.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &quota); err != nil {
			return false, err.Error(), nil
		}
		return len(quota.Status.Used) > 0, "nothing is counted yet", nil
	}
}

// Empty looks whether nothing is left in a namespace of all that this product, its user or Kubernetes made there.
func (s *Stage) Empty(namespace string) Look {
	return s.noneOf(namespace, func() []client.ObjectList {
		return append(children(), s.kind.list(), &appsv1.ReplicaSetList{}, &corev1.SecretList{})
	})
}

// Bare looks whether nothing is left in a namespace of what the controller made there. The kind itself may be gone.
func (s *Stage) Bare(namespace string) Look { return s.noneOf(namespace, children) }

func children() []client.ObjectList {
	return []client.ObjectList{&batchv1.JobList{}, &appsv1.DeploymentList{}, &corev1.PodList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{}}
}

func (s *Stage) noneOf(namespace string, lists func() []client.ObjectList) Look {
	return func(ctx context.Context) (bool, string, error) {
		var left []string
		for _, list := range lists() {
			if err := s.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
				return false, err.Error(), nil
			}
			err := meta.EachListItem(list, func(object runtime.Object) error {
				item, err := meta.Accessor(object)
				// Kubernetes puts this one back as long as there is a namespace.
				if err == nil && item.GetName() != "kube-root-ca.crt" {
					left = append(left, strings.TrimPrefix(fmt.Sprintf("%T ", object), "*")+item.GetName())
				}
				return err
			})
			if err != nil {
				return false, "", err
			}
		}
		return len(left) == 0, strings.Join(left, ", "), nil
	}
}

// DatabaseOf names a database after a namespace.
func DatabaseOf(namespace string) string { return strings.ReplaceAll(namespace, "-", "_") }

// Report prints what somebody who has to find a fault asks for first.
func (s *Stage) Report(ctx context.Context, out io.Writer) {
	for _, args := range [][]string{
		{"get", "glances,jobs,deployments,pods", "-A"},
		{"get", "glances", "-A", "-o", "yaml"},
		{"get", "events", "-A", "--sort-by=.metadata.creationTimestamp"},
		{"-n", ProductNamespace, "logs", "-l", "app.kubernetes.io/name=" + Controller, "--tail=200", "--prefix"},
		{"-n", ProductNamespace, "logs", "-l", "app.kubernetes.io/name=" + Webhook, "--tail=50", "--prefix"},
	} {
		said, err := s.Kubectl(ctx, "", args...)
		if err != nil {
			said = err.Error()
		}
		fmt.Fprintf(out, "$ %s\n%s\n", CommandLine(args...), said)
	}
}
