package harness

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NodeName is the one node. It has an object of its own, or the controller manager would collect its pods as orphans.
const NodeName = "stand-in"

// Kubelet stands in for the scheduler and for the kubelets of all nodes. It starts no container: it tells the API server
// what a kubelet would tell it. It binds a pod, reports it Pending, Running, Ready, Succeeded or Failed with the
// container statuses that a real one reports, keeps a deleted pod until its end, and then removes it. It looks for the
// Secrets and ConfigMaps that a pod refers to and holds the pod, in a kubelet's words, until they exist.
//
// What it does not know: images, probes, resources, placement, host ports, restarts of single containers.
//
// Without a script, pods of Jobs succeed at once, all others are ready at once, and a deleted pod ends at once. A script
// changes that for some pods, and takes effect on pods that live already: replacing Hang by Succeed lets a pod go on.
// A pod never goes back: one that runs does not become Pending again.
type Kubelet struct {
	client client.Client
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu    sync.Mutex
	rules []*rule
	lives map[types.UID]*life
}

// Pods says which pods a script is for. An empty field is any.
type Pods struct {
	Namespace string
	// Instance and Component are the labels app.kubernetes.io/instance and app.kubernetes.io/component.
	Instance, Component string
	// Image is how the image of a container ends: "glance:2026.2" or ":2026.2".
	Image string
	// Name is how the name begins.
	Name string
}

func (p Pods) match(pod *corev1.Pod) bool {
	agree := func(wanted, label string) bool {
		return wanted == "" || wanted == pod.Labels["app.kubernetes.io/"+label]
	}
	return (p.Namespace == "" || p.Namespace == pod.Namespace) && agree(p.Instance, "instance") && agree(p.Component, "component") &&
		strings.HasPrefix(pod.Name, p.Name) &&
		slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return strings.HasSuffix(c.Image, p.Image) })
}

// rule is one script.
type rule struct {
	pods       Pods
	behaviours []Behaviour
}

// Script tells how pods behave, until the test ends or the script is taken back. The youngest script that says something
// about a pod's life, and the youngest that says something about its end, apply.
func (k *Kubelet) Script(t testing.TB, pods Pods, behaviours ...Behaviour) (takeBack func()) {
	t.Helper()
	if pods.Namespace == "" {
		t.Fatal("a script needs a namespace: other tests have pods too")
	}
	added := &rule{pods: pods, behaviours: behaviours}
	k.mu.Lock()
	k.rules = append(k.rules, added)
	k.mu.Unlock()
	k.wakeAll()
	takeBack = func() {
		k.mu.Lock()
		k.rules = slices.DeleteFunc(k.rules, func(r *rule) bool { return r == added })
		k.mu.Unlock()
		k.wakeAll()
	}
	t.Cleanup(takeBack)
	return takeBack
}

// behaviourOf puts together what the scripts say about a pod that is its owner's so manieth.
func (k *Kubelet) behaviourOf(pod *corev1.Pod, turn int) Behaviour {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := defaultFor(pod)
	for _, rule := range k.rules {
		if !rule.pods.match(pod) {
			continue
		}
		for _, b := range rule.behaviours {
			if len(b.turns) > 0 {
				b = b.turns[min(turn, len(b.turns)-1)]
			}
			if b.live != nil {
				all.live, all.name = b.live, b.name
			}
			if b.end != nil {
				all.end = b.end
			}
		}
	}
	return all
}

func startKubelet(e *Env) (*Kubelet, error) {
	config, err := e.userConfig("stand-in-kubelet", "system:masters")
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: e.Scheme})
	if err != nil {
		return nil, fmt.Errorf("make the client of the kubelet: %w", err)
	}
	pods, err := cache.New(config, cache.Options{Scheme: e.Scheme})
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	k := &Kubelet{client: c, cancel: cancel, lives: map[types.UID]*life{}}
	if err := c.Create(ctx, node()); err != nil {
		cancel()
		return nil, fmt.Errorf("register the node: %w", err)
	}
	informer, err := pods.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { k.see(ctx, object) },
		UpdateFunc: func(_, object any) { k.see(ctx, object) },
		DeleteFunc: k.forget,
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	k.done.Go(func() {
		// The only error is a cache that did not stop in time, at the end of everything.
		_ = pods.Start(ctx)
	})
	return k, nil
}

func (k *Kubelet) stop() {
	k.cancel()
	k.done.Wait()
}

// see hands a pod to its life, which begins when the pod is first seen.
func (k *Kubelet) see(ctx context.Context, object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.lives[pod.UID]
	if l == nil {
		l = &life{kubelet: k, turn: k.turnOf(pod), wake: make(chan struct{}, 1), said: map[string]bool{}}
		l.ctx, l.cancel = context.WithCancel(ctx)
		k.lives[pod.UID] = l
		k.done.Go(l.run)
	}
	l.see(pod)
}

// turnOf counts the pods of one owner.
func (k *Kubelet) turnOf(pod *corev1.Pod) int {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return 0
	}
	turn := 0
	for _, other := range k.lives {
		if o := metav1.GetControllerOf(other.pod); o != nil && o.UID == owner.UID {
			turn++
		}
	}
	return turn
}

func (k *Kubelet) forget(object any) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	// The life stays known, stopped, for the turns of its owner.
	if l := k.lives[pod.UID]; l != nil {
		l.cancel()
	}
}

func (k *Kubelet) wakeAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.lives {
		l.nudge()
	}
}
