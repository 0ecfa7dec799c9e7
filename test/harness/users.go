package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Where the controller is deployed, and as whom.
const (
	ControllerNamespace      = "openstack-upgrade"
	ControllerServiceAccount = "openstack-upgrade-controller"
)

// UserConfig is a user with a client certificate and no rights but those of its groups.
func (e *Env) UserConfig(t testing.TB, name string, groups ...string) *rest.Config {
	t.Helper()
	config, err := e.userConfig(name, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func (e *Env) userConfig(name string, groups ...string) (*rest.Config, error) {
	user, err := e.plane.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{QPS: -1, UserAgent: name})
	if err != nil {
		return nil, fmt.Errorf("make user %s: %w", name, err)
	}
	return user.Config(), nil
}

// ControllerConfig is the ServiceAccount of the controller with exactly the rights that deploy/base gives it, for a
// controller inside the test. StartController runs the real binary with it. Its user agent is the test's name, and
// Actor{Agent: config.UserAgent} tells its calls from those of other tests.
func (e *Env) ControllerConfig(t testing.TB) *rest.Config {
	t.Helper()
	if err := e.installShipped(t.Context()); err != nil {
		t.Fatalf("install the rights of the controller: %v", err)
	}
	config, err := e.serviceAccountConfig(t.Context(), ControllerNamespace, ControllerServiceAccount)
	if err != nil {
		t.Fatal(err)
	}
	config.UserAgent = "controller (" + t.Name() + ")"
	return config
}

// ServiceAccountConfig is any ServiceAccount, with the rights that a test has given it.
func (e *Env) ServiceAccountConfig(t testing.TB, namespace, name string) *rest.Config {
	t.Helper()
	config, err := e.serviceAccountConfig(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func (e *Env) serviceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](6 * 3600)}}
	if err := e.Client.SubResource("token").Create(ctx, account, token); err != nil {
		return nil, fmt.Errorf("get a token of service account %s/%s: %w", namespace, name, err)
	}
	config := rest.AnonymousClientConfig(e.Config)
	config.BearerToken, config.QPS = token.Status.Token, -1
	return config, nil
}

// shipped remembers whether the rights of the controller are installed.
type shipped struct {
	once sync.Once
	err  error
}

var shippedKinds = map[string]bool{
	"Namespace": true, "ServiceAccount": true, "ClusterRole": true, "ClusterRoleBinding": true, "Role": true, "RoleBinding": true,
}

// installShipped applies what deploy/base says about rights, rendered by kubectl as a user's would render it.
func (e *Env) installShipped(ctx context.Context) error {
	e.shipped.once.Do(func() { e.shipped.err = e.applyShipped(ctx) })
	return e.shipped.err
}

func (e *Env) applyShipped(ctx context.Context) error {
	objects, err := e.renderBase(ctx)
	if err != nil {
		return err
	}
	found := false
	for _, object := range objects {
		if !shippedKinds[object.GetKind()] {
			continue
		}
		if err := e.Client.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		found = found || (object.GetKind() == "ServiceAccount" && object.GetName() == ControllerServiceAccount && object.GetNamespace() == ControllerNamespace)
	}
	if !found {
		return fmt.Errorf("deploy/base holds no ServiceAccount %s in namespace %s", ControllerServiceAccount, ControllerNamespace)
	}
	return nil
}

// Shipped are the objects of a kind that deploy/base holds, rendered by kubectl.
func (e *Env) Shipped(t testing.TB, kind string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := e.renderBase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	objects = slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool { return object.GetKind() != kind })
	if len(objects) == 0 {
		t.Fatalf("deploy/base holds no %s", kind)
	}
	return objects
}

// Program is the path of a program of the cluster, such as kubectl.
func (e *Env) Program(name string) string { return filepath.Join(e.assets, name) }

// Path is that of a file of the repository.
func (e *Env) Path(elements ...string) string {
	return filepath.Join(append([]string{e.root}, elements...)...)
}

func (e *Env) renderBase(ctx context.Context) ([]*unstructured.Unstructured, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(e.assets, "kubectl"), "kustomize", filepath.Join(e.root, "deploy", "base"))
	var failure bytes.Buffer
	cmd.Stderr = &failure
	rendered, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("render deploy/base: %w: %s", err, bytes.TrimSpace(failure.Bytes()))
	}
	var namespaces, others []*unstructured.Unstructured
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(rendered), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := documents.Decode(object)
		switch {
		case errors.Is(err, io.EOF):
			return append(namespaces, others...), nil
		case err != nil:
			return nil, fmt.Errorf("read what deploy/base renders: %w", err)
		case object.GetKind() == "Namespace":
			namespaces = append(namespaces, object)
		case object.GetKind() != "":
			others = append(others, object)
		}
	}
}

// ClientFor is a client for one of the configurations above.
func (e *Env) ClientFor(t testing.TB, config *rest.Config) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	return c
}
