package harness

import (
	"context"
	_ "embed" // for the stages of kwok
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/c5c3/openstack-upgrade/test/cluster/binaries"
)

// Option makes a world another one than that of most tests.
type Option func(*Env)

// FakeNodes puts the real scheduler and kwok, with this many nodes, in the place of the stand-in kubelet: for tests that
// are about numbers. Kwok makes every pod ready, or succeed if it is a Job's, as soon as it is bound; there are no scripts.
func FakeNodes(nodes int) Option { return func(e *Env) { e.fakeNodes = nodes } }

// Flags are further flags of a program, which win over its usual ones. Those of kube-apiserver have the form --name=value.
func Flags(program string, flags ...string) Option {
	return func(e *Env) { e.flags[program] = append(e.flags[program], flags...) }
}

// Etcd is the URL of the store behind the API server.
func (e *Env) Etcd() string { return e.plane.ControlPlane.Etcd.URL.String() }

// programs are those that the world is made of.
func (e *Env) programs() []string {
	if e.fakeNodes == 0 {
		return binaries.Envtest
	}
	return slices.Concat(binaries.Envtest, binaries.FakeNodes)
}

//go:embed kwok.yaml
var kwokStages []byte

// startFakeNodes runs the scheduler and kwok.
func (e *Env) startFakeNodes(ctx context.Context) error {
	for i := range e.fakeNodes {
		node := fakeNode(fmt.Sprintf("fake-%d", i))
		if err := e.Client.Create(ctx, node); err != nil {
			return fmt.Errorf("register a node: %w", err)
		}
		// Every new node is tainted, and the controller that would lift that is left out.
		node.Spec.Taints = nil
		if err := e.Client.Update(ctx, node); err != nil {
			return fmt.Errorf("free a node of its taint: %w", err)
		}
	}
	scheduler, err := e.kubeconfigFor("system:kube-scheduler", "kube-scheduler")
	if err != nil {
		return err
	}
	kwok, err := e.kubeconfigFor("kwok", "kwok", "system:masters")
	if err != nil {
		return err
	}
	settings := filepath.Join(e.Dir, "kwok.yaml")
	if err := os.WriteFile(settings, kwokStages, 0o600); err != nil {
		return fmt.Errorf("write the settings of kwok: %w", err)
	}
	for _, program := range [][]string{
		{"kube-scheduler", "--kubeconfig=" + scheduler, "--leader-elect=false", "--secure-port=0", "--kube-api-qps=2000", "--kube-api-burst=4000"},
		{"kwok", "--kubeconfig=" + kwok, "--config=" + settings, "--manage-all-nodes=true", "--node-lease-duration-seconds=0", "--cidr=10.128.0.0/9"},
	} {
		started, err := e.startComponent(program[0], program[1:]...)
		if err != nil {
			return err
		}
		e.beside = append(e.beside, started)
	}
	return e.awaitFakeNodes(ctx)
}

// awaitFakeNodes waits for a deed of kwok.
func (e *Env) awaitFakeNodes(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		for _, c := range e.beside {
			if err := c.exited(); err != nil {
				return false, err
			}
		}
		var nodes corev1.NodeList
		if err := e.Client.List(ctx, &nodes); err != nil {
			return false, nil // the next look tells
		}
		return !slices.ContainsFunc(nodes.Items, func(node corev1.Node) bool { return len(node.Status.Conditions) == 0 }), nil
	})
	if err != nil {
		return fmt.Errorf("wait for kwok to play the nodes: %w", err)
	}
	return nil
}

// configureAPIServer hands flags of the form --name=value to the API server, and gives it addresses for as many Services
// as any experiment makes: those it would have by itself are 254.
func (e *Env) configureAPIServer() {
	arguments := e.plane.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.16.0.0/14")
	for _, flag := range e.flags["kube-apiserver"] {
		name, value, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		arguments.Set(name, value)
	}
}

func fakeNode(name string) *corev1.Node {
	plenty := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("100000"), corev1.ResourceMemory: resource.MustParse("100Ti"), corev1.ResourcePods: resource.MustParse("100000"),
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Capacity: plenty, Allocatable: plenty}}
}
