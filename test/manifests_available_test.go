package test

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/utils/ptr"
)

// A webhook that fails closed must be there: whatever takes one replica away leaves another, and a replica that ends
// goes on answering until everybody has noticed.
func TestTheWebhookOfProductionOutlivesAnyOneReplica(t *testing.T) {
	for _, overlay := range []string{"production", "namespaced"} {
		t.Run(overlay, func(t *testing.T) {
			all := build(t, "overlays/"+overlay)
			deployment := named[*appsv1.Deployment](t, all, webhookName).Spec
			pod := deployment.Template.Spec
			replicas := *deployment.Replicas
			assert.GreaterOrEqual(t, replicas, int32(2))
			assert.Zero(t, deployment.Strategy.RollingUpdate.MaxUnavailable.IntValue(), "a rollout takes none away before its successor is ready")
			assert.Positive(t, deployment.Strategy.RollingUpdate.MaxSurge.IntValue())

			budget := named[*policyv1.PodDisruptionBudget](t, all, webhookName).Spec
			assert.Less(t, budget.MaxUnavailable.IntValue(), int(replicas), "a drain leaves one")

			var spread []string
			for _, constraint := range pod.TopologySpreadConstraints {
				spread = append(spread, constraint.TopologyKey)
				assert.Equal(t, corev1.ScheduleAnyway, constraint.WhenUnsatisfiable, "a small cluster gets both replicas too")
				assert.Equal(t, []string{appsv1.DefaultDeploymentUniqueLabelKey}, constraint.MatchLabelKeys, "pods of the last rollout do not count")
			}
			assert.Equal(t, []string{corev1.LabelHostname, corev1.LabelTopologyZone}, spread)
			assert.Equal(t, "system-cluster-critical", pod.PriorityClassName)

			grace := time.Duration(ptr.Deref(pod.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)) * time.Second
			assert.GreaterOrEqual(t, grace, defaultOf(t, "webhook", "shutdown-delay")+defaultOf(t, "webhook", "shutdown-timeout"), "it is not killed while it still answers")
		})
	}
}

func TestTheWebhookTalksToNobodyAndHoldsNoToken(t *testing.T) {
	for _, overlay := range []string{"production", "namespaced"} {
		t.Run(overlay, func(t *testing.T) {
			all := build(t, "overlays/"+overlay)
			policy := named[*networkingv1.NetworkPolicy](t, all, webhookName).Spec
			assert.ElementsMatch(t, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}, policy.PolicyTypes)
			assert.Empty(t, policy.Egress, "no way out")
			reviews := 0
			for _, rule := range policy.Ingress {
				for _, port := range rule.Ports {
					if port.Port.StrVal == "https" {
						reviews++
						assert.Empty(t, rule.From, "API servers call from the host network, which no selector can name")
					}
				}
			}
			assert.Equal(t, 1, reviews)
			pod := named[*appsv1.Deployment](t, all, webhookName).Spec.Template.Spec
			assert.False(t, ptr.Deref(pod.AutomountServiceAccountToken, true))
			for _, volume := range pod.Volumes {
				assert.Nil(t, volume.Projected, "no token by hand either")
			}
		})
	}
}

// defaultOf is the default of a flag that takes a duration.
func defaultOf(t *testing.T, binary, flag string) time.Duration {
	t.Helper()
	found := regexp.MustCompile(`--` + flag + ` duration .*\(default ([0-9a-z]+)\)`).FindStringSubmatch(helpOf(t, binary))
	require.NotNil(t, found, "%s --help tells no default of --%s", binary, flag)
	value, err := time.ParseDuration(found[1])
	require.NoError(t, err)
	return value
}
