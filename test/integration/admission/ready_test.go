package admission

import (
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
	"github.com/c5c3/openstack-upgrade/webhook/admission"
)

// TestWhatIsNotReadyIsSaid is what a person reads who applies the first object too early. Every answer names the Deployment
// to look at, and the documentation explains it.
func TestWhatIsNotReadyIsSaid(t *testing.T) {
	env := harness.Shared(t)
	documented := explained(t, env)
	used := map[string]bool{}
	h, other := serve(t, admission.Policy{}), serve(t, admission.Policy{})
	shipped := func(url string, ca []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
		return configuration(t, env, url, ca)
	}
	for _, c := range []struct {
		what          string
		configuration *admissionregistrationv1.ValidatingWebhookConfiguration
		words         string
	}{
		{"no pod is ready", shipped(nobody, h.pair.Certificate), "connection refused"},
		{"the CA is not injected", shipped(h.url, nil), "certificate signed by unknown authority"},
		{"the CA is that of another pair", shipped(h.url, other.pair.Certificate), "certificate signed by unknown authority"},
		{"there is no Service", toService(t, env), `service "openstack-upgrade-webhook" not found`},
		{"nothing comes back", shipped(silent(t), nil), "context deadline exceeded"},
	} {
		t.Run(c.what, func(t *testing.T) {
			withdraw := register(t, env, c.configuration)
			defer withdraw()
			ns := env.Namespace(t)
			s := newShell(t, env, ns)
			s.write(t, "FILE", string(manifest(t, build.Glance("images", build.In(ns)))))
			seen, ok := s.types(t, "kubectl apply -f FILE")
			assert.False(t, ok, "never admitted unjudged")
			assert.Contains(t, seen, `failed calling webhook "openstack-upgrade-webhook.openstack.c5c3.io"`)
			assert.Contains(t, seen, c.words)
			i := slices.IndexFunc(documented, func(words string) bool { return strings.Contains(seen, words) })
			require.GreaterOrEqual(t, i, 0, "deploy/README.md explains none of: %s\nit explains %q", seen, documented)
			used[documented[i]] = true
		})
	}
	for _, words := range documented {
		// Only a cluster whose API server asks the endpoints itself says this.
		if words != "no endpoints available" {
			assert.True(t, used[words], "deploy/README.md explains %q, which nobody reads", words)
		}
	}
}

// explained are the words that the table of deploy/README.md explains.
func explained(t *testing.T, env *harness.Env) []string {
	t.Helper()
	text, err := os.ReadFile(env.Path("deploy", "README.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| In the answer |")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	var words []string
	for _, row := range strings.Split(table, "\n")[2:] {
		for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			words = append(words, match[1])
		}
	}
	return words
}

// toService is the configuration as it is shipped, with nothing changed.
func toService(t *testing.T, env *harness.Env) *admissionregistrationv1.ValidatingWebhookConfiguration {
	t.Helper()
	var c admissionregistrationv1.ValidatingWebhookConfiguration
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(env.Shipped(t, "ValidatingWebhookConfiguration")[0].Object, &c))
	return &c
}

// silent is an address that takes connections and says nothing.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, listener.Close()) })
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return "https://localhost:" + port + "/validate"
}
