package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
)

// children are the objects that serve, beside the Jobs.
func (s *scene) children() []client.Object {
	at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: s.ns, Name: name} }
	return []client.Object{&appsv1.Deployment{ObjectMeta: at(name)}, &corev1.Service{ObjectMeta: at(name)}, &corev1.ConfigMap{ObjectMeta: at("images-config")}}
}

func TestBL20LabelsOfGitOpsToolsAreNotCopiedToChildren(t *testing.T) {
	s := steady(t, build.Labels(map[string]string{
		"argocd.argoproj.io/instance": "site", "app.kubernetes.io/instance": "site", "app.kubernetes.io/managed-by": "Helm"}))
	for _, child := range append(s.children(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "images-db-sync"}}) {
		require.NoError(t, s.Client.Get(t.Context(), client.ObjectKeyFromObject(child), child))
		require.NotContains(t, child.GetLabels(), "argocd.argoproj.io/instance", "%T", child)
		require.Equal(t, name, child.GetLabels()["app.kubernetes.io/instance"], "%T", child)
		require.Equal(t, "openstack-upgrade", child.GetLabels()["app.kubernetes.io/managed-by"], "%T", child)
		owner := metav1.GetControllerOf(child)
		require.NotNil(t, owner, "%T", child)
		require.Equal(t, s.now().UID, owner.UID, "%T", child)
	}
}

func TestWhatSomebodyChangesOnOurObjectsIsMended(t *testing.T) {
	s := steady(t)
	config, service, deployment := &corev1.ConfigMap{}, &corev1.Service{}, &appsv1.Deployment{}
	config.Name, service.Name, deployment.Name = "images-config", name, name
	config.Namespace, service.Namespace, deployment.Namespace = s.ns, s.ns, s.ns
	adjust(s, config, func(c *corev1.ConfigMap) {
		c.Data = map[string]string{"00-openstack-upgrade.conf": "[DEFAULT]\ndebug = true\n"}
	})
	adjust(s, service, func(c *corev1.Service) { c.Spec.Selector = map[string]string{"app": "elsewhere"} })
	adjust(s, deployment, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "elsewhere:1" })
	s.Eventually(t, 30*time.Second, "our objects to be mended", func(ctx context.Context) string {
		for _, object := range []client.Object{config, service, deployment} {
			if err := s.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return err.Error()
			}
		}
		return lacks(config.Data["00-openstack-upgrade.conf"] == "" && service.Spec.Selector["app"] == "" && deployment.Spec.Template.Spec.Containers[0].Image == old,
			"config %q, selector %v, image %s", config.Data, service.Spec.Selector, deployment.Spec.Template.Spec.Containers[0].Image)
	})
	require.Equal(t, name, service.Spec.Selector["app.kubernetes.io/instance"])
}

func TestOurObjectsAreFoundAgainWithoutTheirLabels(t *testing.T) {
	s := steady(t)
	uids := map[string]string{}
	for _, child := range s.children() {
		adjustLabels(s, child)
		uids[child.GetName()+child.GetObjectKind().GroupVersionKind().Kind] = string(child.GetUID())
	}
	s.edit(build.Config("DEFAULT", "debug", "true")) // a reason to look
	for _, child := range s.children() {
		s.Eventually(t, 30*time.Second, "a label to be back", func(ctx context.Context) string {
			if err := s.Client.Get(ctx, client.ObjectKeyFromObject(child), child); err != nil {
				return err.Error()
			}
			return lacks(child.GetLabels()["app.kubernetes.io/managed-by"] != "", "%T has %v", child, child.GetLabels())
		})
		require.Contains(t, uids, child.GetName()+child.GetObjectKind().GroupVersionKind().Kind)
	}
	s.await("the Glance to rest", rests("2026.1"))
}

func adjustLabels(s *scene, child client.Object) {
	s.t.Helper()
	require.NoError(s.t, s.Client.Get(s.t.Context(), client.ObjectKeyFromObject(child), child))
	before := child.DeepCopyObject().(client.Object)
	child.SetLabels(nil)
	require.NoError(s.t, s.Client.Patch(s.t.Context(), child, client.MergeFrom(before)))
}

func TestObjectsOfOthersWithOurNamesAreLeftAloneAndNamed(t *testing.T) {
	s := open(t)
	theirs := s.children()
	theirs[0] = build.Deployment(s.ns, name, "theirs:1", 1)
	theirs[1].(*corev1.Service).Spec.Ports = []corev1.ServicePort{{Port: 80}}
	theirs[2].(*corev1.ConfigMap).Data = map[string]string{"theirs": "yes"}
	s.Create(t, theirs...)
	s.glance().record(installed2026).start()
	said := func(g *v1alpha1.Glance) string {
		for _, c := range g.Status.Conditions {
			if c.Type == v1alpha1.ConditionDeploymentReady {
				return lacks(c.Reason == "NameTaken", "DeploymentReady is %s: %s", c.Reason, c.Message)
			}
		}
		return "nothing is said"
	}
	g := s.await("the names to be said", said)
	require.Contains(t, conditionMessage(g, v1alpha1.ConditionDeploymentReady), "ConfigMap images-config", "nothing starts on the configuration of somebody else")
	s.holds(2*time.Second, "said", said)
	for _, object := range theirs {
		version := object.GetResourceVersion()
		require.NoError(t, s.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		if _, isDeployment := object.(*appsv1.Deployment); !isDeployment { // whose controller writes its status
			require.Equal(t, version, object.GetResourceVersion(), "%T is not touched", object)
		}
		require.Empty(t, object.GetOwnerReferences(), "%T is not adopted", object)
		require.NoError(t, s.Client.Delete(t.Context(), object))
	}
	s.await("the Glance to serve once the names are free", rests("2026.1"))
	require.Empty(t, isComplete(s.job(upgrade.Sync)))
}

func TestAChangeThatTheSiteForbidsIsSaidAndHeals(t *testing.T) {
	s := steady(t)
	allow := s.forbid(product, admissionv1.Update, "apps", "deployments", func(as client.Client) error {
		return as.Update(t.Context(), s.deployment())
	})
	s.edit(build.Grace(90))
	s.await("the refusal", func(g *v1alpha1.Glance) string {
		message := conditionMessage(g, v1alpha1.ConditionDeploymentReady)
		return lacks(!meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionReady) && strings.Contains(message, "the site forbids it"), "DeploymentReady: %s", message)
	})
	allow()
	s.await("the Glance to rest", rests("2026.1"))
	require.EqualValues(t, 90, *s.deployment().Spec.Template.Spec.TerminationGracePeriodSeconds)
}

func conditionMessage(g *v1alpha1.Glance, kind string) string {
	for _, c := range g.Status.Conditions {
		if c.Type == kind {
			return c.Message
		}
	}
	return ""
}
