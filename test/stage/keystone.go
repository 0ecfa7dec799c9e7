package stage

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The tags of Keystone's images name the release that each suite stands in for.
const (
	KeystoneBefore = ReleaseBefore + "-bookworm"
	KeystoneAfter  = ReleaseAfter + "-trixie"
)

// Names of what a Keystone's manifest names.
const (
	keystoneKeys  = "keystone-fernet-keys"
	keystoneAdmin = "keystone-admin"
)

// Keystone is one object, with what a test varies.
type Keystone struct {
	Namespace string
	Name      string
	Tag       string
	Replicas  int
}

// Key is its place.
func (k Keystone) Key() client.ObjectKey {
	return client.ObjectKey{Namespace: k.Namespace, Name: k.Name}
}

// Manifest is what a user writes. A password is hashed cheaply: by default one takes a quarter of a second of a core.
func (k Keystone) Manifest() string {
	return fmt.Sprintf(`apiVersion: openstack.c5c3.io/v1alpha1
kind: Keystone
metadata:
  name: %s
  namespace: %s
spec:
  image:
    repository: %s
    tag: %s
  database:
    secretRef:
      name: %s
  fernetKeysSecretRef:
    name: %s
  bootstrap:
    passwordSecretRef:
      name: %s
  deployment:
    replicas: %d
    resources:
      requests: {cpu: 50m, memory: 192Mi}
  apiServer:
    uwsgi: {processes: 2, threads: 1}
  extraConfig:
    identity:
      password_hash_rounds: "4"
`, k.Name, k.Namespace, Keystones.Repository, k.Tag, DatabaseSecret, keystoneKeys, keystoneAdmin, k.Replicas)
}

// PatchTag is the merge patch that asks for another image tag, and with it for another release where the tag names it.
func PatchTag(tag string) string { return fmt.Sprintf(`{"spec":{"image":{"tag":"%s"}}}`, tag) }

// TagKeystone loads the images of Keystone and gives them the tags that name releases.
func (s *Stage) TagKeystone(ctx context.Context) error {
	if err := s.LoadKeystone(ctx); err != nil {
		return err
	}
	keystones := s.Of(Keystones)
	for from, to := range map[string]string{TagBefore: KeystoneBefore, TagAfter: KeystoneAfter} {
		if err := keystones.Tag(ctx, from, to); err != nil {
			return err
		}
	}
	return nil
}

// PrepareKeystone makes what a Keystone's manifest names: the database, the keys, and the password of the first user, which
// it returns.
func (s *Stage) PrepareKeystone(ctx context.Context, namespace, database string) (password string, err error) {
	url, err := s.Database(ctx, database)
	if err != nil {
		return "", err
	}
	if err := s.PutConnection(ctx, namespace, url); err != nil {
		return "", err
	}
	if err := s.PutKeys(ctx, namespace, keystoneKeys); err != nil {
		return "", err
	}
	password = rand.Text()
	admin := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: keystoneAdmin}, StringData: map[string]string{"password": password}}
	if err := s.Client.Create(ctx, admin); err != nil {
		return "", fmt.Errorf("create secret %s: %w", keystoneAdmin, err)
	}
	return password, nil
}

// InstallKeystone makes a namespace, all that a Keystone needs, and the Keystone itself, as a user would.
func (s *Stage) InstallKeystone(ctx context.Context, k Keystone) (password string, err error) {
	if err := s.Namespace(ctx, k.Namespace); err != nil {
		return "", err
	}
	if password, err = s.PrepareKeystone(ctx, k.Namespace, DatabaseOf(k.Namespace)); err != nil {
		return "", err
	}
	_, err = s.Kubectl(ctx, k.Manifest(), "apply", "-f", "-")
	return password, err
}

// StartIdentityTraffic starts a client of an Identity API.
func (s *Stage) StartIdentityTraffic(ctx context.Context, name, url, password string, rate float64) (*Traffic, error) {
	return s.StartClient(ctx, name, TrafficImage, "--api=identity", "--url="+url, "--password="+password, fmt.Sprintf("--rate=%g", rate))
}
