package harness

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// nodeAddress is reserved for documentation: nothing listens there.
const nodeAddress = "192.0.2.1"

var addresses atomic.Uint32

// life plays one pod: it looks at the pod and the clock, and does the one thing that comes next.
type life struct {
	kubelet *Kubelet
	ctx     context.Context
	cancel  context.CancelFunc
	wake    chan struct{}
	turn    int

	// pod is the latest that was seen; the kubelet's lock guards it.
	pod *corev1.Pod

	address  string
	started  time.Time
	stopping time.Time
	removed  bool
	said     map[string]bool
}

// see takes note of a pod. Answers and the watch come in any order; the older one loses.
func (l *life) see(pod *corev1.Pod) {
	if l.pod == nil || revision(pod.ResourceVersion) > revision(l.pod.ResourceVersion) {
		l.pod = pod
	}
	l.nudge()
}

func (l *life) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *life) latest() *corev1.Pod {
	l.kubelet.mu.Lock()
	defer l.kubelet.mu.Unlock()
	return l.pod
}

func (l *life) run() {
	defer l.cancel()
	for {
		again, err := l.step(l.ctx)
		switch {
		case l.ctx.Err() != nil || apierrors.IsNotFound(err):
			return
		case apierrors.IsConflict(err):
			again = 20 * time.Millisecond
		case err != nil:
			log.Log.WithName("kubelet").Error(err, "play a pod", "pod", client.ObjectKeyFromObject(l.latest()))
			again = 500 * time.Millisecond
		}
		var later <-chan time.Time
		if again > 0 && again < Forever {
			later = time.After(again)
		}
		select {
		case <-l.ctx.Done():
			return
		case <-l.wake:
		case <-later:
		}
	}
}

// step does what comes next and says when to look again, if nothing happens before.
func (l *life) step(ctx context.Context) (again time.Duration, err error) {
	pod := l.latest()
	b := l.kubelet.behaviourOf(pod, l.turn)
	switch {
	case l.removed:
		return 0, nil
	case pod.DeletionTimestamp != nil:
		return l.end(ctx, pod, b)
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return 0, nil
	}
	now, again := b.live(situation{pod: pod, running: since(l.started)})
	switch {
	case pod.Spec.NodeName == "" && now.kind == unscheduled:
		l.say(ctx, pod, "FailedScheduling", now.message)
		return again, l.write(ctx, pod, now)
	case pod.Spec.NodeName == "":
		return 0, l.bind(ctx, pod)
	case !l.started.IsZero():
		// A script that comes too late for a pod that runs changes nothing.
		if now.kind < alive {
			return 0, nil
		}
		return again, l.write(ctx, pod, now)
	case now.kind <= waiting:
		if now.kind == unscheduled {
			return 0, nil
		}
		l.say(ctx, pod, "Failed", "Error: "+now.reason)
		return again, l.write(ctx, pod, now)
	}
	missing, err := l.kubelet.missing(ctx, pod)
	if err != nil {
		return 0, err
	}
	if missing != nil {
		if missing.event != "" {
			l.say(ctx, pod, missing.event, missing.message)
			return 200 * time.Millisecond, l.write(ctx, pod, stage{kind: waiting, reason: "ContainerCreating"})
		}
		return 200 * time.Millisecond, l.write(ctx, pod, stage{kind: waiting, reason: "CreateContainerConfigError", message: missing.message})
	}
	// Even what ends at once is seen running first.
	if err := l.write(ctx, pod, running(now.kind == alive && now.ready)); err != nil {
		return 0, err
	}
	l.started = time.Now()
	l.nudge()
	return 0, nil
}

func (l *life) bind(ctx context.Context, pod *corev1.Pod) error {
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: NodeName}}
	if err := l.kubelet.client.SubResource("binding").Create(ctx, pod.DeepCopy(), binding); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	return nil
}

// end brings a deleted pod to its end: first the containers, which is what a Job that waits for a failed pod waits for,
// then the pod.
func (l *life) end(ctx context.Context, pod *corev1.Pod, b Behaviour) (again time.Duration, err error) {
	if l.stopping.IsZero() {
		l.stopping = time.Now()
	}
	if phase := pod.Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed {
		how, again := b.end(situation{pod: pod, stopping: since(l.stopping)})
		if !how.over {
			return again, nil
		}
		last := stage{kind: ended, exit: how.exit, ago: agoOf(how.exit)}
		if l.started.IsZero() {
			last = stage{kind: ended, exit: 137, reason: "ContainerStatusUnknown", message: "The container could not be located when the pod was terminated"}
		}
		if err := l.write(ctx, pod, last); err != nil {
			return 0, err
		}
	}
	err = l.kubelet.client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("remove: %w", err)
	}
	l.removed = true
	return 0, nil
}

// write reports a stage, unless the status says it already.
func (l *life) write(ctx context.Context, pod *corev1.Pod, s stage) error {
	if l.address == "" {
		n := addresses.Add(1)
		l.address = fmt.Sprintf("10.%d.%d.%d", n>>16&0xff, n>>8&0xff, n&0xff)
	}
	wanted := pod.DeepCopy()
	wanted.Status = report(pod, s, l.address, time.Now())
	if equality.Semantic.DeepEqual(wanted.Status, pod.Status) {
		return nil
	}
	// Lists are merged by key, so that a condition that another has set stays.
	if err := l.kubelet.client.Status().Patch(ctx, wanted, client.StrategicMergeFrom(pod)); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	l.kubelet.mu.Lock()
	defer l.kubelet.mu.Unlock()
	l.see(wanted)
	return nil
}

// say records an event, each reason once in a pod's life.
func (l *life) say(ctx context.Context, pod *corev1.Pod, reason, message string) {
	if l.said[reason] {
		return
	}
	now := metav1.Now()
	err := l.kubelet.client.Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: pod.Namespace, GenerateName: pod.Name + "."},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Reason:         reason, Message: message, Type: corev1.EventTypeWarning, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "kubelet", Host: NodeName},
	})
	// A namespace that is going away takes no events.
	l.said[reason] = err == nil
}

func since(moment time.Time) time.Duration {
	if moment.IsZero() {
		return 0
	}
	return time.Since(moment)
}

func node() *corev1.Node {
	plenty := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1000"), corev1.ResourceMemory: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("10000"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: NodeName},
		Status: corev1.NodeStatus{
			Capacity: plenty, Allocatable: plenty,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "StandIn"}},
		},
	}
}
