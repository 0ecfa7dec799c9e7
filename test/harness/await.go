package harness

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patience is how long Await waits: far longer than anything takes, so that only what never comes is reported.
const Patience = time.Minute

// glance is short against a second, which the Job controller takes its time in, and long against what a read costs.
const glance = 50 * time.Millisecond

// Await reads the object again and again until lacks finds nothing lacking, and returns it. The words of lacks say what
// is still missing; they are reported, with everything that is in the namespace, if it takes too long.
func Await[T client.Object](t testing.TB, env *Env, object T, what string, lacks func(T) string) T {
	t.Helper()
	return AwaitWithin(t, env, Patience, object, what, lacks)
}

// AwaitWithin is Await with a limit of its own.
func AwaitWithin[T client.Object](t testing.TB, env *Env, limit time.Duration, object T, what string, lacks func(T) string) T {
	t.Helper()
	var found T
	env.Eventually(t, limit, what, func(ctx context.Context) string {
		// A read into a used object would keep fields that are gone.
		found = reflect.New(reflect.TypeOf(object).Elem()).Interface().(T)
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(object), found); err != nil {
			return err.Error()
		}
		return lacks(found)
	})
	return found
}

// AwaitGone waits until the very object, by UID if it has one, is no more.
func AwaitGone[T client.Object](t testing.TB, env *Env, object T) {
	t.Helper()
	env.Eventually(t, Patience, fmt.Sprintf("%s to be gone", describeName(object)), func(ctx context.Context) string {
		found := reflect.New(reflect.TypeOf(object).Elem()).Interface().(T)
		err := env.Client.Get(ctx, client.ObjectKeyFromObject(object), found)
		switch {
		case apierrors.IsNotFound(err):
			return ""
		case err != nil:
			return err.Error()
		case object.GetUID() != "" && object.GetUID() != found.GetUID():
			return ""
		case found.GetDeletionTimestamp() == nil:
			return "it is there, and nobody has deleted it"
		}
		return fmt.Sprintf("it is there, deleted at %s, held by %v", found.GetDeletionTimestamp().Format(time.TimeOnly), found.GetFinalizers())
	})
}

// Eventually asks until nothing lacks.
func (e *Env) Eventually(t testing.TB, limit time.Duration, what string, lacks func(context.Context) string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	started, last := time.Now(), ""
	for {
		lack := lacks(ctx)
		if lack == "" {
			return
		}
		if ctx.Err() == nil {
			last = lack
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited %s for %s: %s", time.Since(started).Round(time.Second), what, last)
		case <-time.After(glance):
		}
	}
}

// Throughout demands that the object lacks nothing at any time for a while.
func Throughout[T client.Object](t testing.TB, env *Env, during time.Duration, object T, what string, lacks func(T) string) {
	t.Helper()
	for started := time.Now(); time.Since(started) < during; time.Sleep(glance) {
		found := reflect.New(reflect.TypeOf(object).Elem()).Interface().(T)
		lack := ""
		if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(object), found); err != nil {
			lack = err.Error()
		} else {
			lack = lacks(found)
		}
		if lack != "" {
			t.Fatalf("%s did not hold after %s: %s", what, time.Since(started).Round(10*time.Millisecond), lack)
		}
	}
}

// PodsOf lists the pods of a namespace that a script would match, terminating ones too.
func (e *Env) PodsOf(t testing.TB, pods Pods) []corev1.Pod {
	t.Helper()
	found, err := e.ListPods(t.Context(), pods)
	if err != nil {
		t.Fatalf("list pods: %v", err)
	}
	return found
}

// ListPods is PodsOf for those who ask again where there is no answer.
func (e *Env) ListPods(ctx context.Context, pods Pods) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := e.Client.List(ctx, &list, client.InNamespace(pods.Namespace)); err != nil {
		return nil, fmt.Errorf("of %s: %w", pods.Namespace, err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !pods.match(&pod) }), nil
}

// Evict asks for the eviction of a pod, as a drain does.
func (e *Env) Evict(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	if err := e.Client.SubResource("eviction").Create(t.Context(), pod, eviction); err != nil {
		t.Fatalf("evict pod %s: %v", pod.Name, err)
	}
}

func describeName(object client.Object) string {
	return fmt.Sprintf("%s %s", reflect.TypeOf(object).Elem().Name(), object.GetName())
}
