package stage

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names of what is deployed.
const (
	Webhook    = "openstack-upgrade-webhook"
	Controller = "openstack-upgrade-controller"
	// Overlay is what users apply; its images are those that were built here.
	Overlay = "deploy/overlays/production"
)

// ControllerUser is how the API server knows the controller.
const ControllerUser = "system:serviceaccount:" + ProductNamespace + ":" + Controller

// installProduct applies the production overlay and waits until every edit is judged: the certificate is issued, its
// authority is in the webhook's configuration, all pods are available, and an object is judged in a dry run.
func (s *Stage) installProduct(ctx context.Context, changed map[string]bool) error {
	// The tags stay the same from build to build, so a Deployment cannot see that its image is another.
	var outdated []string
	for name, image := range map[string]string{Webhook: WebhookImage, Controller: ControllerImage} {
		pods, err := s.ProductPods(ctx, name)
		if err != nil {
			return err
		}
		if changed[image] && len(pods) > 0 {
			outdated = append(outdated, name)
		}
	}
	s.Say("kubectl apply -k %s", Overlay)
	if err := s.do(ctx, "", "apply", "--server-side", "--force-conflicts", "-k", Overlay); err != nil {
		return err
	}
	for _, name := range outdated {
		s.Say("restart %s: its image was built anew", name)
		if err := s.do(ctx, "", "-n", ProductNamespace, "rollout", "restart", "deployment/"+name); err != nil {
			return err
		}
	}
	if err := s.Await(ctx, "the webhook's authority in its configuration", 3*time.Minute, s.trusted); err != nil {
		return err
	}
	for _, name := range []string{Webhook, Controller} {
		if err := s.Await(ctx, "deployment "+name+" to be rolled out", 3*time.Minute, s.RolledOut(ProductNamespace, name)); err != nil {
			return err
		}
	}
	// Replicas that are ready and trusted may still be out of reach for a moment: kube-proxy learns of them last.
	asked := Glance{Namespace: "default", Name: "asked", Release: ReleaseBefore, Tag: TagBefore}.Manifest()
	return s.Await(ctx, "an object to be judged", time.Minute, func(ctx context.Context) (bool, string, error) {
		if err := s.do(ctx, asked, "create", "--dry-run=server", "-f", "-"); err != nil {
			return false, err.Error(), nil
		}
		return true, "", nil
	})
}

func (s *Stage) trusted(ctx context.Context) (bool, string, error) {
	var c admissionv1.ValidatingWebhookConfiguration
	if err := s.Client.Get(ctx, client.ObjectKey{Name: Webhook}, &c); err != nil {
		return false, err.Error(), nil
	}
	for _, hook := range c.Webhooks {
		if len(hook.ClientConfig.CABundle) == 0 {
			return false, "no caBundle in " + hook.Name, nil
		}
	}
	return len(c.Webhooks) > 0, "no webhook in it", nil
}

// RolledOut looks whether a Deployment runs nothing but its newest template, all of it available.
func (s *Stage) RolledOut(namespace, name string) Look {
	return func(ctx context.Context) (bool, string, error) {
		var d appsv1.Deployment
		if err := s.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &d); err != nil {
			return false, err.Error(), nil
		}
		wanted := int32(1)
		if d.Spec.Replicas != nil {
			wanted = *d.Spec.Replicas
		}
		done := d.Status.ObservedGeneration >= d.Generation &&
			d.Status.UpdatedReplicas == wanted && d.Status.Replicas == wanted && d.Status.AvailableReplicas == wanted
		return done, fmt.Sprintf("%d of %d updated, %d available, %d in all", d.Status.UpdatedReplicas, wanted, d.Status.AvailableReplicas, d.Status.Replicas), nil
	}
}
