package test

import (
	"go/ast"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const monitoring = "../deploy/components/monitoring/"

var metric = regexp.MustCompile(`openstack_upgrade_[a-z_]+`)

func TestAlertsAskForMetricsThatTheBinariesExport(t *testing.T) {
	exported := map[string]bool{}
	eachFile(t, func(_ goPackage, _, _ string, file *ast.File) []string {
		ast.Inspect(file, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				text, err := strconv.Unquote(literal.Value)
				require.NoError(t, err)
				if metric.FindString(text) == text {
					exported[text] = true
				}
			}
			return true
		})
		return nil
	})
	var rules struct {
		Spec struct {
			Groups []struct {
				Rules []struct {
					Alert, Expr string
					Labels      map[string]string
					Annotations map[string]string
				}
			}
		}
	}
	decode(t, monitoring+"alerts.yaml", &rules)
	asked := map[string]bool{}
	for _, group := range rules.Spec.Groups {
		for _, rule := range group.Rules {
			for _, name := range metric.FindAllString(rule.Expr, -1) {
				asked[name] = true
				assert.Contains(t, exported, name, "%s", rule.Alert)
			}
			assert.Equal(t, strings.Count(rule.Expr, "("), strings.Count(rule.Expr, ")"), "%s", rule.Alert)
			assert.Contains(t, []string{"warning", "critical"}, rule.Labels["severity"])
			assert.NotEmpty(t, rule.Annotations["summary"])
			assert.NotEmpty(t, rule.Annotations["description"], "%s says what to do", rule.Alert)
		}
	}
	assert.Len(t, asked, 5, "certificate, its fault, phase, its start, Jobs: %v", slices.Sorted(maps.Keys(asked)))
}

func TestTheServiceMonitorFindsTheServiceAndItsPort(t *testing.T) {
	var monitor struct {
		Spec struct {
			Selector  struct{ MatchLabels map[string]string }
			Endpoints []struct {
				Port        string
				HonorLabels bool
			}
		}
	}
	decode(t, monitoring+"servicemonitor.yaml", &monitor)
	service := named[*corev1.Service](t, build(t, "overlays/production", "monitoring"), namespace+"-metrics")
	assert.Subset(t, service.Labels, monitor.Spec.Selector.MatchLabels)
	require.NotEmpty(t, monitor.Spec.Selector.MatchLabels)
	require.Len(t, monitor.Spec.Endpoints, 1)
	assert.Equal(t, service.Spec.Ports[0].Name, monitor.Spec.Endpoints[0].Port)
	assert.True(t, monitor.Spec.Endpoints[0].HonorLabels)
}

func TestTheTwoDockerfilesDifferInTheNameAlone(t *testing.T) {
	webhook, err := os.ReadFile("../Dockerfile.webhook")
	require.NoError(t, err)
	controller, err := os.ReadFile("../Dockerfile.controller")
	require.NoError(t, err)
	assert.Equal(t, string(controller), strings.ReplaceAll(string(webhook), "webhook", "controller"))
	for _, line := range []string{"USER 65532:65532", `ENTRYPOINT ["/webhook"]`, "CGO_ENABLED=0", "-X main.version=${VERSION}"} {
		assert.Contains(t, string(webhook), line)
	}
}

func decode(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into))
}
