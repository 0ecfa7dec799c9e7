package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ProductPods lists the pods of the webhook or the controller that are not ending.
func (s *Stage) ProductPods(ctx context.Context, name string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := s.Client.List(ctx, &pods, client.InNamespace(ProductNamespace), client.MatchingLabels{"app.kubernetes.io/name": name}); err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", name, err)
	}
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }), nil
}

// Restart rolls the webhook or the controller out anew and waits until that is done.
func (s *Stage) Restart(ctx context.Context, name string) error {
	if err := s.do(ctx, "", "-n", ProductNamespace, "rollout", "restart", "deployment/"+name); err != nil {
		return err
	}
	return s.Await(ctx, name+" to be rolled out anew", 3*time.Minute, s.RolledOut(ProductNamespace, name))
}

// KillLeader ends the controller that works, at once and without a chance to say so, and returns the pod's name.
func (s *Stage) KillLeader(ctx context.Context) (string, error) {
	var lease coordinationv1.Lease
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: ProductNamespace, Name: Controller}, &lease); err != nil {
		return "", fmt.Errorf("find the controller that works: %w", err)
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", errors.New("find the controller that works: nobody holds the lease")
	}
	pod, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return pod, s.do(ctx, "", "-n", ProductNamespace, "delete", "pod", pod, "--grace-period=0", "--force")
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
