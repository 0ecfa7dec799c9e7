package stage

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/test/cluster/addons"
)

// CRDs are the names of the custom resource definitions.
var CRDs = []string{"glances.openstack.c5c3.io", "keystones.openstack.c5c3.io"}

// Reinstall applies the product as it was, after a test has taken it or a part of it away.
func (s *Stage) Reinstall(ctx context.Context) error { return s.installProduct(ctx, nil) }

// Everything is one text with cert-manager, its CRDs and the product, for somebody who installs all of it at once.
func (s *Stage) Everything(ctx context.Context) (string, error) {
	crds, err := os.ReadFile(s.layout.Program(addons.CertManager.CRDs))
	if err != nil {
		return "", fmt.Errorf("read the CRDs of cert-manager: %w", err)
	}
	product, err := s.Kubectl(ctx, "", "kustomize", Overlay)
	if err != nil {
		return "", err
	}
	return strings.Join([]string{string(crds), addons.CertManager.Manifest, product}, "\n---\n"), nil
}

// RemoveCertManager takes cert-manager away, with its CRDs and all objects of them.
func (s *Stage) RemoveCertManager(ctx context.Context) error {
	if err := s.do(ctx, addons.CertManager.Manifest, "delete", "--ignore-not-found", "--wait=false", "-f", "-"); err != nil {
		return err
	}
	return s.do(ctx, "", "delete", "--ignore-not-found", "--wait=false", "-f", s.layout.Program(addons.CertManager.CRDs))
}

// Scale sets the replicas of the webhook or the controller and waits until so many are available and no other is left.
func (s *Stage) Scale(ctx context.Context, name string, replicas int) error {
	if err := s.do(ctx, "", "-n", ProductNamespace, "scale", "deployment/"+name, "--replicas="+strconv.Itoa(replicas)); err != nil {
		return err
	}
	return s.Await(ctx, fmt.Sprintf("%s to have %d replicas", name, replicas), 2*time.Minute, s.Settled(name))
}

// Settled looks whether the webhook or the controller is rolled out and no pod of it is ending any more.
func (s *Stage) Settled(name string) Look {
	return func(ctx context.Context) (bool, string, error) {
		done, seen, err := s.RolledOut(ProductNamespace, name)(ctx)
		if !done || err != nil {
			return false, seen, err
		}
		var d appsv1.Deployment
		if err := s.Client.Get(ctx, client.ObjectKey{Namespace: ProductNamespace, Name: name}, &d); err != nil {
			return false, err.Error(), nil
		}
		all, err := s.everyPod(ctx, name)
		if err != nil {
			return false, err.Error(), nil
		}
		return len(all) == int(d.Status.Replicas), fmt.Sprintf("%d pods, %d of them are to stay", len(all), d.Status.Replicas), nil
	}
}

// Objects of the whole cluster that the product consists of, the namespace with all that is in it among them.
var clusterWide = map[string]schema.GroupVersionKind{
	ProductNamespace: {Version: "v1", Kind: "Namespace"},
	CRDs[0]:          {Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	CRDs[1]:          {Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	Webhook:          {Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
	Controller:       {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
}

// Gone looks whether nothing of that name is left of the product, or nothing at all when no name is given.
func (s *Stage) Gone(names ...string) Look {
	return func(ctx context.Context) (bool, string, error) {
		var left []string
		for name, kind := range clusterWide {
			if len(names) > 0 && !slices.Contains(names, name) {
				continue
			}
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(kind)
			switch err := s.Client.Get(ctx, client.ObjectKey{Name: name}, object); {
			case apierrors.IsNotFound(err):
			case err != nil:
				left = append(left, err.Error())
			default:
				left = append(left, fmt.Sprintf("%s %s (deleted: %t, finalizers: %v)", kind.Kind, name, object.GetDeletionTimestamp() != nil, object.GetFinalizers()))
			}
		}
		return len(left) == 0, strings.Join(left, ", "), nil
	}
}

// Renew asks cert-manager for a new certificate of the webhook, as its command-line tool does.
func (s *Stage) Renew(ctx context.Context) error {
	certificate := &unstructured.Unstructured{}
	certificate.SetGroupVersionKind(schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"})
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: ProductNamespace, Name: Webhook}, certificate); err != nil {
		return fmt.Errorf("renew the certificate: %w", err)
	}
	conditions, _, err := unstructured.NestedSlice(certificate.Object, "status", "conditions")
	if err == nil {
		conditions = append(conditions, map[string]any{
			"type": "Issuing", "status": string(metav1.ConditionTrue), "reason": "ManuallyTriggered", "message": "renewed by hand",
			"observedGeneration": certificate.GetGeneration(), "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		})
		err = unstructured.SetNestedSlice(certificate.Object, conditions, "status", "conditions")
	}
	if err == nil {
		err = s.Client.Status().Update(ctx, certificate)
	}
	if err != nil {
		return fmt.Errorf("renew the certificate: %w", err)
	}
	return nil
}
