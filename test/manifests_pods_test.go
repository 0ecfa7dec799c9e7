package test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

func TestEveryPodPassesPodSecurityRestrictedAndItsNamespaceEnforcesIt(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	require.NoError(t, err)
	restricted := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	for _, overlay := range overlays(t) {
		all := build(t, "overlays/"+overlay)
		home := one[*corev1.Namespace](t, all)
		assert.Equal(t, namespace, home.Name)
		assert.Equal(t, string(podsecurity.LevelRestricted), home.Labels[podsecurity.EnforceLevelLabel])
		for _, deployment := range pick[*appsv1.Deployment](all) {
			template := deployment.Spec.Template
			for _, result := range evaluator.EvaluatePod(restricted, &template.ObjectMeta, &template.Spec) {
				assert.True(t, result.Allowed, "%s of %s: %s: %s", deployment.Name, overlay, result.ForbiddenReason, result.ForbiddenDetail)
			}
			for _, container := range template.Spec.Containers {
				assert.True(t, *container.SecurityContext.ReadOnlyRootFilesystem, "%s writes nowhere", deployment.Name)
			}
		}
	}
}

func TestPodsFollowTheirFilesAndNeverFloat(t *testing.T) {
	for _, overlay := range overlays(t) {
		for _, deployment := range pick[*appsv1.Deployment](build(t, "overlays/"+overlay)) {
			for _, container := range deployment.Spec.Template.Spec.Containers {
				for _, mount := range container.VolumeMounts {
					assert.Empty(t, mount.SubPath+mount.SubPathExpr, "a file mounted by subPath is never renewed")
				}
				_, tag, tagged := strings.Cut(container.Image[strings.LastIndex(container.Image, "/")+1:], ":")
				assert.True(t, tagged, "%s has no tag", container.Image)
				assert.NotEqual(t, "latest", tag)
			}
		}
	}
}

func TestProbesAskPortsThatExistAndEveryPodHasBoth(t *testing.T) {
	for _, overlay := range overlays(t) {
		for _, deployment := range pick[*appsv1.Deployment](build(t, "overlays/"+overlay)) {
			container := deployment.Spec.Template.Spec.Containers[0]
			for path, probe := range map[string]*corev1.Probe{"/healthz": container.LivenessProbe, "/readyz": container.ReadinessProbe} {
				require.NotNil(t, probe, "%s of %s", path, deployment.Name)
				assert.Equal(t, path, probe.HTTPGet.Path)
				assert.True(t, hasPort(container, probe.HTTPGet.Port), "%s asks port %s", deployment.Name, probe.HTTPGet.Port.String())
			}
		}
	}
}

func TestResourcesAreBoundedAndGoKnowsTheBounds(t *testing.T) {
	for _, deployment := range pick[*appsv1.Deployment](build(t, "base")) {
		container := deployment.Spec.Template.Spec.Containers[0]
		assert.False(t, container.Resources.Requests.Cpu().IsZero())
		assert.False(t, container.Resources.Requests.Memory().IsZero())
		limit := container.Resources.Limits.Memory().Value()
		env := map[string]string{}
		for _, variable := range container.Env {
			env[variable.Name] = variable.Value
		}
		mebibytes, err := strconv.ParseInt(strings.TrimSuffix(env["GOMEMLIMIT"], "MiB"), 10, 64)
		require.NoError(t, err)
		assert.Less(t, mebibytes<<20, limit, "the collector must act before the kernel does")
		assert.Greater(t, mebibytes<<20, limit/2)
		assert.NotEmpty(t, env["GOMAXPROCS"], "without a CPU limit Go would take every core of the node")
	}
}

func TestEverySelectorMatchesThePodsItIsMeantFor(t *testing.T) {
	both := []string{controllerName, webhookName}
	for _, overlay := range overlays(t) {
		t.Run(overlay, func(t *testing.T) {
			all := build(t, "overlays/"+overlay, "monitoring")
			for _, deployment := range pick[*appsv1.Deployment](all) {
				assert.Equal(t, []string{deployment.Name}, selected(t, all, deployment.Spec.Selector))
				for _, spread := range deployment.Spec.Template.Spec.TopologySpreadConstraints {
					assert.Equal(t, []string{deployment.Name}, selected(t, all, spread.LabelSelector))
				}
			}
			for _, service := range pick[*corev1.Service](all) {
				names := selected(t, all, &metav1.LabelSelector{MatchLabels: service.Spec.Selector})
				if service.Name == namespace+"-metrics" {
					assert.ElementsMatch(t, both, names)
				} else {
					assert.Equal(t, []string{service.Name}, names)
				}
				for _, name := range names {
					container := named[*appsv1.Deployment](t, all, name).Spec.Template.Spec.Containers[0]
					assert.True(t, hasPort(container, service.Spec.Ports[0].TargetPort), "Service %s calls a port of %s", service.Name, name)
				}
			}
			for _, budget := range pick[*policyv1.PodDisruptionBudget](all) {
				assert.Equal(t, []string{budget.Name}, selected(t, all, budget.Spec.Selector))
			}
			for _, rule := range pick[*networkingv1.NetworkPolicy](all) {
				assert.Equal(t, []string{rule.Name}, selected(t, all, &rule.Spec.PodSelector))
				container := named[*appsv1.Deployment](t, all, rule.Name).Spec.Template.Spec.Containers[0]
				open := map[string]bool{}
				for _, ingress := range rule.Spec.Ingress {
					for _, port := range ingress.Ports {
						assert.True(t, hasPort(container, *port.Port), "NetworkPolicy %s opens port %s", rule.Name, port.Port)
						open[port.Port.StrVal] = true
					}
				}
				assert.Len(t, open, len(container.Ports), "every port of %s is reachable", rule.Name)
			}
		})
	}
}

func TestProductionSurvivesADrainOfAnyOneNode(t *testing.T) {
	all := build(t, "overlays/production")
	assert.Len(t, pick[*networkingv1.NetworkPolicy](all), 2)
	for _, name := range []string{webhookName, controllerName} {
		budget := named[*policyv1.PodDisruptionBudget](t, all, name)
		assert.Equal(t, intstr.FromInt32(1), *budget.Spec.MaxUnavailable)
		assert.Equal(t, policyv1.AlwaysAllow, *budget.Spec.UnhealthyPodEvictionPolicy, "pods that do not work must not hold up a drain")
		pod := named[*appsv1.Deployment](t, all, name).Spec.Template.Spec
		require.NotEmpty(t, pod.TopologySpreadConstraints)
		assert.Equal(t, corev1.LabelHostname, pod.TopologySpreadConstraints[0].TopologyKey)
	}
	webhook := named[*appsv1.Deployment](t, all, webhookName).Spec
	assert.Equal(t, "system-cluster-critical", webhook.Template.Spec.PriorityClassName)
	assert.Equal(t, intstr.FromInt32(0), *webhook.Strategy.RollingUpdate.MaxUnavailable)
}

// selected names the Deployments whose pods a selector matches.
func selected(t *testing.T, all manifests, selector *metav1.LabelSelector) []string {
	t.Helper()
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	require.NoError(t, err)
	require.False(t, compiled.Empty(), "an empty selector matches everything")
	var names []string
	for _, deployment := range pick[*appsv1.Deployment](all) {
		if compiled.Matches(labels.Set(deployment.Spec.Template.Labels)) {
			names = append(names, deployment.Name)
		}
	}
	return names
}

func hasPort(container corev1.Container, wanted intstr.IntOrString) bool {
	for _, port := range container.Ports {
		if wanted.StrVal == port.Name && wanted.Type == intstr.String || wanted.IntVal == port.ContainerPort && wanted.Type == intstr.Int {
			return true
		}
	}
	return false
}

func decimal(port int32) string { return strconv.Itoa(int(port)) }
