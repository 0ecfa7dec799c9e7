package test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// calls is every call that the controller makes on objects of users: verbs by resource, as in RBAC.
var calls = map[string]string{
	"glances.openstack.c5c3.io":              "get list watch",
	"glances/status.openstack.c5c3.io":       "update",
	"glances/finalizers.openstack.c5c3.io":   "update",
	"keystones.openstack.c5c3.io":            "get list watch",
	"keystones/status.openstack.c5c3.io":     "update",
	"keystones/finalizers.openstack.c5c3.io": "update",
	"jobs.batch":                             "get list watch create delete",
	"deployments.apps":                       "get list watch create update delete",
	"replicasets.apps":                       "list",
	"services":                               "get list watch create update delete",
	"configmaps":                             "get list watch create update delete",
	"pods":                                   "list watch",
	"events":                                 "list",
	"events.events.k8s.io":                   "create patch",
}

// callsAtHome is what it does in its own namespace besides.
var callsAtHome = map[string]string{
	"leases.coordination.k8s.io": "get create update",
	"events":                     "create",
}

func TestRightsGrantedAreTheCallsTheControllerMakes(t *testing.T) {
	for _, overlay := range overlays(t) {
		t.Run(overlay, func(t *testing.T) {
			all := build(t, "overlays/"+overlay)
			assert.Equal(t, sorted(calls), granted(t, one[*rbacv1.ClusterRole](t, all).Rules))
			home := one[*rbacv1.Role](t, all)
			assert.Equal(t, namespace, home.Namespace)
			assert.Equal(t, sorted(callsAtHome), granted(t, home.Rules))
			for _, rule := range home.Rules {
				if slices.Contains(rule.Resources, "leases") && !slices.Contains(rule.Verbs, "create") {
					assert.Equal(t, []string{controllerName}, rule.ResourceNames, "its own lease alone")
				}
			}
		})
	}
}

func TestRightsGoToTheControllerAloneAndTheWebhookHasNone(t *testing.T) {
	for _, overlay := range overlays(t) {
		t.Run(overlay, func(t *testing.T) {
			all := build(t, "overlays/"+overlay)
			for _, binding := range bindings(all) {
				require.Len(t, binding.subjects, 1)
				assert.Equal(t, rbacv1.Subject{Kind: "ServiceAccount", Name: controllerName, Namespace: namespace}, binding.subjects[0])
				assert.Equal(t, controllerName, binding.role.Name)
			}
			accounts := map[string]bool{}
			for _, deployment := range pick[*appsv1.Deployment](all) {
				account := deployment.Spec.Template.Spec.ServiceAccountName
				assert.Equal(t, deployment.Name, named[*corev1.ServiceAccount](t, all, account).Name)
				accounts[account] = true
			}
			assert.Len(t, accounts, 2, "each has an account of its own")
			account := named[*corev1.ServiceAccount](t, all, webhookName)
			pod := named[*appsv1.Deployment](t, all, webhookName).Spec.Template.Spec
			for _, automount := range []*bool{account.AutomountServiceAccountToken, pod.AutomountServiceAccountToken} {
				require.NotNil(t, automount)
				assert.False(t, *automount, "no token for the webhook")
			}
		})
	}
}

func TestNamespacedGrantsNothingOnTheClusterAndWatchesWhereItHasRights(t *testing.T) {
	all := build(t, "overlays/namespaced")
	assert.Empty(t, pick[*rbacv1.ClusterRoleBinding](all))
	var bound []string
	for _, binding := range pick[*rbacv1.RoleBinding](all) {
		if binding.RoleRef.Kind == "ClusterRole" {
			bound = append(bound, binding.Namespace)
		}
	}
	args := named[*appsv1.Deployment](t, all, controllerName).Spec.Template.Spec.Containers[0].Args
	assert.Equal(t, []string{"--watch-namespaces=" + strings.Join(bound, ",")}, args)
	assert.NotEmpty(t, pick[*rbacv1.ClusterRoleBinding](build(t, "overlays/production")))
}

type binding struct {
	role     rbacv1.RoleRef
	subjects []rbacv1.Subject
}

func bindings(all manifests) []binding {
	var found []binding
	for _, b := range pick[*rbacv1.ClusterRoleBinding](all) {
		found = append(found, binding{b.RoleRef, b.Subjects})
	}
	for _, b := range pick[*rbacv1.RoleBinding](all) {
		found = append(found, binding{b.RoleRef, b.Subjects})
	}
	return found
}

// granted writes rules in the form of calls.
func granted(t *testing.T, rules []rbacv1.PolicyRule) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, rule := range rules {
		assert.Empty(t, rule.NonResourceURLs)
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				key := strings.TrimSuffix(resource+"."+group, ".")
				assert.NotContains(t, key+strings.Join(rule.Verbs, " "), "*")
				found[key] = append(found[key], rule.Verbs...)
			}
		}
	}
	for key := range found {
		slices.Sort(found[key])
	}
	return found
}

func sorted(calls map[string]string) map[string][]string {
	found := map[string][]string{}
	for resource, verbs := range calls {
		found[resource] = strings.Fields(verbs)
		slices.Sort(found[resource])
	}
	return found
}
