package stage

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
)

// The stand-ins: see the package comment.
const (
	TagBefore = "bookworm"
	TagAfter  = "trixie"

	ReleaseBefore = "2026.1"
	ReleaseAfter  = "2026.2"
	ReleaseBeyond = "2027.1"
)

// DatabaseSecret is the Secret that a Glance's manifest names.
const DatabaseSecret = "glance-database"

// Glance is one object, with what a test varies.
type Glance struct {
	Namespace string
	Name      string
	Release   string
	Tag       string
	Replicas  int
}

// Key is its place.
func (g Glance) Key() client.ObjectKey {
	return client.ObjectKey{Namespace: g.Namespace, Name: g.Name}
}

// Manifest is what a user writes. There is no Keystone, so everyone may do everything: newer releases allow that only
// under the older policy defaults.
func (g Glance) Manifest() string {
	return fmt.Sprintf(`apiVersion: openstack.c5c3.io/v1alpha1
kind: Glance
metadata:
  name: %s
  namespace: %s
spec:
  openStackRelease: "%s"
  image:
    repository: %s
    tag: "%s"
  database:
    secretRef:
      name: %s
  deployment:
    replicas: %d
    resources:
      requests: {cpu: 50m, memory: 192Mi}
  apiServer:
    uwsgi: {processes: 1, threads: 8}
  extraConfig:
    DEFAULT:
      enabled_backends: fs:file
    glance_store:
      default_backend: fs
    oslo_policy:
      enforce_new_defaults: "false"
      enforce_scope: "false"
    fs:
      filesystem_store_datadir: /var/lib/glance/images
`, g.Name, g.Namespace, g.Release, Glances.Repository, g.Tag, DatabaseSecret, g.Replicas)
}

// Namespace makes an empty namespace that enforces Pod Security restricted. One that exists is deleted first, with all
// that is in it.
func (s *Stage) Namespace(ctx context.Context, name string) error {
	if err := s.RemoveNamespace(ctx, name); err != nil {
		return err
	}
	err := s.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}})
	if err != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return nil
}

// DropNamespace deletes a namespace, if it is there, and does not wait.
func (s *Stage) DropNamespace(ctx context.Context, name string) error {
	err := s.Client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete namespace %s: %w", name, err)
	}
	return nil
}

// RemoveNamespace deletes a namespace, if it is there, and waits until it is gone.
func (s *Stage) RemoveNamespace(ctx context.Context, name string) error {
	var there corev1.Namespace
	if err := s.Client.Get(ctx, client.ObjectKey{Name: name}, &there); apierrors.IsNotFound(err) {
		return nil
	}
	if err := s.DropNamespace(ctx, name); err != nil {
		return err
	}
	return s.Await(ctx, "namespace "+name+" to be gone", 3*time.Minute, func(ctx context.Context) (bool, string, error) {
		var n corev1.Namespace
		err := s.Client.Get(ctx, client.ObjectKey{Name: name}, &n)
		if apierrors.IsNotFound(err) {
			return true, "", nil
		}
		if err != nil {
			return false, err.Error(), nil
		}
		var pods corev1.PodList
		if err := s.Client.List(ctx, &pods, client.InNamespace(name)); err != nil {
			return false, err.Error(), nil
		}
		return false, fmt.Sprintf("%d pods are ending", len(pods.Items)), nil
	})
}

// PutConnection makes the Secret that a Glance's manifest names.
func (s *Stage) PutConnection(ctx context.Context, namespace, url string) error {
	err := s.Client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: DatabaseSecret},
		StringData: map[string]string{"connection": url},
	})
	if err != nil {
		return fmt.Errorf("create secret %s: %w", DatabaseSecret, err)
	}
	return nil
}

// Get reads an object.
func (s *Stage) Get(ctx context.Context, key client.ObjectKey) (Object, error) {
	object := s.kind.empty()
	if err := s.Client.Get(ctx, key, object); err != nil {
		return nil, fmt.Errorf("get %s %s: %w", s.kind.Name, key, err)
	}
	return object, nil
}

// Condition is one of the object's conditions; an empty one when it is not there yet.
func Condition(object Object, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(object.Record().Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{Type: kind}
}

// Ready tells whether the object is Ready for what its spec asks now.
func Ready(object Object) bool {
	c := Condition(object, v1alpha1.ConditionReady)
	return c.Status == metav1.ConditionTrue && c.ObservedGeneration == object.GetGeneration()
}

// AwaitReady waits until the object is Ready.
func (s *Stage) AwaitReady(ctx context.Context, key client.ObjectKey, patience time.Duration) error {
	return s.AwaitObject(ctx, key, fmt.Sprintf("%s %s to be Ready", s.kind.Name, key.Name), patience, Ready)
}

// AwaitObject waits until the object is as wanted. What it says meanwhile are the object's own words.
func (s *Stage) AwaitObject(ctx context.Context, key client.ObjectKey, what string, patience time.Duration, wanted func(Object) bool) error {
	return s.Await(ctx, what, patience, func(ctx context.Context) (bool, string, error) {
		object, err := s.Get(ctx, key)
		if err != nil {
			return false, err.Error(), nil
		}
		return wanted(object), Words(object), nil
	})
}

// Words is what the object says of itself.
func Words(object Object) string {
	var words []string
	for _, kind := range []string{v1alpha1.ConditionDatabaseReady, v1alpha1.ConditionDeploymentReady} {
		c := Condition(object, kind)
		if c.Status != metav1.ConditionTrue && c.Message != "" {
			words = append(words, fmt.Sprintf("%s: %s", c.Reason, c.Message))
		}
	}
	if len(words) == 0 {
		return "nothing to report"
	}
	return strings.Join(words, "; ")
}
