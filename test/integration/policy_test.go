package integration

import (
	"context"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/test/harness"
)

// Who can be kept from something.
const (
	product              = "system:serviceaccount:" + harness.ControllerNamespace + ":" + harness.ControllerServiceAccount
	deploymentController = "system:serviceaccount:kube-system:deployment-controller"
	replicaSetController = "system:serviceaccount:kube-system:replicaset-controller"
)

// forbid keeps a user from something in this namespace, by a policy of the API server, until the result is called. try
// is a dry run of it, by which the policy is known to be in force.
func (s *scene) forbid(user string, verb admissionv1.OperationType, group, resource string, try func(client.Client) error) (allow func()) {
	s.t.Helper()
	name := s.ns + "-" + strings.ReplaceAll(resource, "/", "-")
	here := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": s.ns}}
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{NamespaceSelector: here, ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{verb},
					Rule: admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource}}}}}},
			Validations: []admissionv1.Validation{{
				Expression: fmt.Sprintf("request.userInfo.username != %q", user), Message: "the site forbids it"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}
	s.Create(s.t, policy, binding)
	allow = s.untilAllowed(policy, binding)
	config := rest.CopyConfig(s.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	as := client.NewDryRunClient(s.ClientFor(s.t, config))
	s.Eventually(s.t, harness.Patience, "the policy to be in force", func(context.Context) string {
		err := try(as)
		return lacks(err != nil && strings.Contains(err.Error(), "the site forbids it"), "a dry run is answered by: %v", err)
	})
	return allow
}

func (s *scene) untilAllowed(objects ...client.Object) func() {
	lifted := false
	allow := func() {
		if lifted {
			return
		}
		lifted = true
		for _, object := range objects {
			require.NoError(s.t, client.IgnoreNotFound(s.Client.Delete(context.Background(), object)))
		}
	}
	s.t.Cleanup(allow)
	return allow
}

// inject adds a sidecar to every pod of a component, as a service mesh does.
func (s *scene) inject(component, sidecar string) {
	s.t.Helper()
	name := s.ns + "-inject"
	here := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": s.ns}}
	policy := &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			FailurePolicy:      ptr.To(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{NamespaceSelector: here,
				ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/component": component}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}}},
			Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{Expression: fmt.Sprintf(`
[JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{name: %q, image: "mesh:1",
  securityContext: Object.spec.containers.securityContext{allowPrivilegeEscalation: false, capabilities: Object.spec.containers.securityContext.capabilities{drop: ["ALL"]}}}}]`, sidecar)}}},
		},
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name}}
	s.Create(s.t, policy, binding)
	s.untilAllowed(policy, binding)
	dry := client.NewDryRunClient(s.Client)
	s.Eventually(s.t, harness.Patience, "the policy to be in force", func(ctx context.Context) string {
		pod := plainPod(s.ns, component)
		err := dry.Create(ctx, pod)
		return lacks(err == nil && len(pod.Spec.Containers) == 2, "a dry run has %d containers, %v", len(pod.Spec.Containers), err)
	})
}

// plainPod is a pod of a component that Pod Security takes.
func plainPod(namespace, component string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "plain-", Labels: map[string]string{"app.kubernetes.io/component": component}},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{Name: "plain", Image: "plain:1", SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
		},
	}
}
