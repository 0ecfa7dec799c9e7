package harness

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Namespace is a fresh namespace that enforces Pod Security restricted. It is deleted after the test; if the test has
// failed, what is in it is logged first.
func (e *Env) Namespace(t testing.TB) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: namespacePrefix(t),
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := e.Client.Create(t.Context(), ns); err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if t.Failed() {
			t.Logf("what is in %s:\n%s", ns.Name, e.Describe(ctx, ns.Name))
		}
		if err := e.Client.Delete(ctx, ns); client.IgnoreNotFound(err) != nil {
			t.Errorf("delete namespace %s: %v", ns.Name, err)
		}
	})
	// No pod is admitted before its service account exists.
	if err := e.awaitServiceAccount(t.Context(), ns.Name); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

func (e *Env) awaitServiceAccount(ctx context.Context, namespace string) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		return e.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{}) == nil, e.manager.exited()
	})
	if err != nil {
		return fmt.Errorf("wait for the service account of namespace %s: %w", namespace, err)
	}
	return nil
}

// Create creates objects in this order, as an administrator.
func (e *Env) Create(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := e.Client.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, client.ObjectKeyFromObject(object), err)
		}
	}
}

// namespacePrefix makes a name for a namespace from the test's, so that a log tells where it comes from.
func namespacePrefix(t testing.TB) string {
	name := strings.ToLower(strings.TrimPrefix(t.Name(), "Test"))
	name = strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') {
			return r
		}
		return '-'
	}, name)
	return "t-" + strings.Trim(name[:min(len(name), 40)], "-") + "-"
}
