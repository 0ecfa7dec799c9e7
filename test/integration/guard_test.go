package integration

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/image"
	"github.com/c5c3/openstack-upgrade/shared/release"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// watchPods demands, of every scene and at every moment:
//
//   - BL-04: no two pods work on the schema at a time, whatever their Jobs;
//   - no contract begins while a pod of the API has another image than it;
//   - no one-pass sync begins while a pod of the API is of another release.
//
// One watch tells of all pods in the order in which things happened.
func (s *scene) watchPods() {
	ctx, stop := context.WithCancel(context.Background())
	pods, err := s.Client.Watch(ctx, &corev1.PodList{}, client.InNamespace(s.ns))
	if err != nil {
		s.t.Fatalf("watch pods: %v", err)
	}
	done := make(chan struct{})
	s.t.Cleanup(func() { stop(); <-done })
	go func() {
		defer close(done)
		defer pods.Stop()
		alive := map[types.UID]*corev1.Pod{}
		for {
			select {
			case <-ctx.Done():
				return
			case event, open := <-pods.ResultChan():
				if !open {
					if ctx.Err() == nil {
						s.t.Errorf("the watch of pods ended early")
					}
					return
				}
				if pod, ok := event.Object.(*corev1.Pod); ok {
					s.judge(alive, event.Type, pod)
				}
			}
		}
	}()
}

func (s *scene) judge(alive map[types.UID]*corev1.Pod, kind watch.EventType, pod *corev1.Pod) {
	if kind == watch.Deleted || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		delete(alive, pod.UID)
		return
	}
	if alive[pod.UID] == nil && isTask(pod) {
		for _, other := range alive {
			switch {
			case isTask(other):
				s.t.Errorf("pod %s began beside pod %s: two pieces of schema work at a time", pod.Name, other.Name)
			case component(other) != api:
			case component(pod) == string(upgrade.Contract) && imageOf(other) != imageOf(pod):
				s.t.Errorf("contract pod %s of %s began beside pod %s of %s", pod.Name, imageOf(pod), other.Name, imageOf(other))
			case component(pod) == string(upgrade.Sync) && differ(releaseOf(pod), releaseOf(other)):
				s.t.Errorf("sync pod %s of %s began beside pod %s of %s", pod.Name, imageOf(pod), other.Name, imageOf(other))
			}
		}
	}
	alive[pod.UID] = pod
}

func component(pod *corev1.Pod) string { return pod.Labels["app.kubernetes.io/component"] }
func imageOf(pod *corev1.Pod) string   { return pod.Spec.Containers[0].Image }

func isTask(pod *corev1.Pod) bool { return strings.HasPrefix(component(pod), "db-") }

func releaseOf(pod *corev1.Pod) *release.Release {
	ref, err := image.Parse(imageOf(pod))
	if err != nil {
		return nil
	}
	named, ok := ref.Release()
	if !ok {
		return nil
	}
	return &named
}

func differ(a, b *release.Release) bool { return a != nil && b != nil && *a != *b }
