package admission

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/certs/serving"
	"github.com/c5c3/openstack-upgrade/certs/serving/mint"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/test/harness"
	"github.com/c5c3/openstack-upgrade/test/rows"
	"github.com/c5c3/openstack-upgrade/webhook/admission"
	"github.com/c5c3/openstack-upgrade/webhook/server"
)

func TestMain(m *testing.M) { harness.Main(m) }

// typing is how many kubectl run at a time: on a small machine many more would outlast the webhook's timeout.
var typing = make(chan struct{}, 4)

// shell is where a person types: a directory, and a kubeconfig whose context is a namespace.
type shell struct {
	dir  string
	path []string
}

func newShell(t testing.TB, env *harness.Env, namespace string) shell {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: env.Config.Host, CertificateAuthorityData: env.Config.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: env.Config.CertData, ClientKeyData: env.Config.KeyData}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: namespace}
	config.CurrentContext = "x"
	dir := t.TempDir()
	require.NoError(t, clientcmd.WriteToFile(*config, filepath.Join(dir, "kubeconfig")))
	return shell{dir: dir, path: append(os.Environ(), "KUBECONFIG="+filepath.Join(dir, "kubeconfig"), "TMPDIR="+dir,
		"KUBECACHEDIR="+filepath.Join(env.Dir, "kubectl"), "PATH="+filepath.Dir(env.Program("kubectl"))+":"+os.Getenv("PATH"))}
}

// write puts a file into the directory.
func (s shell) write(t testing.TB, name, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o700))
}

// types runs a command line and returns all that a person sees; ok is whether it succeeded.
func (s shell) types(t testing.TB, line string) (seen string, ok bool) {
	t.Helper()
	typing <- struct{}{}
	defer func() { <-typing }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", line)
	cmd.Dir, cmd.Env = s.dir, s.path
	output, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err, line)
	}
	return strings.TrimRight(string(output), "\n"), err == nil
}

// hook is the real webhook, and what it was asked about.
type hook struct {
	judge *admission.Judge
	mu    sync.Mutex
	asked map[string]admission.Decision
	url   string
	pair  mint.Pair
}

// Review notes what the judge decides.
func (h *hook) Review(body []byte) (*admissionv1.AdmissionReview, admission.Decision, error) {
	review, decision, err := h.judge.Review(body)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked[decision.Namespace+"/"+decision.Name] = decision
	return review, decision, err
}

// decided is what the webhook last said about an object, empty if it was not asked.
func (h *hook) decided(namespace, name string) admission.Verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked[namespace+"/"+name].Verdict
}

// serve runs a webhook until the test ends.
func serve(t testing.TB, policy admission.Policy) *hook {
	t.Helper()
	volume := mint.Mount(t)
	h := &hook{judge: admission.New(policy, admission.Kinds...), asked: map[string]admission.Decision{}, pair: mint.Valid(t, 1, time.Hour)}
	volume.Update(t, h.pair)
	s, err := server.Listen(server.Config{ListenAddress: "127.0.0.1:0", HealthAddress: "127.0.0.1:0", MetricsAddress: "127.0.0.1:0", ShutdownTimeout: 5 * time.Second},
		h, serving.Follow(volume.Dir, logr.Discard(), time.Now), logr.Discard())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-done)
	})
	h.url = "https://localhost" + s.ReviewAddress()[strings.LastIndex(s.ReviewAddress(), ":"):] + server.ReviewPath
	return h
}

// configuration is the shipped one, calling an address.
func configuration(t testing.TB, env *harness.Env, url string, ca []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	t.Helper()
	shipped := env.Shipped(t, "ValidatingWebhookConfiguration")[0]
	var c admissionregistrationv1.ValidatingWebhookConfiguration
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(shipped.Object, &c))
	require.Len(t, c.Webhooks, 1)
	c.Webhooks[0].ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca}
	return &c
}

// register puts a configuration in force until what is returned is called; if nobody does, it is gone with the test.
func register(t testing.TB, env *harness.Env, c *admissionregistrationv1.ValidatingWebhookConfiguration) (withdraw func()) {
	t.Helper()
	env.Create(t, c)
	probe := client.NewDryRunClient(env.Client)
	// The API server learns of it a little later. A wish that the CRD takes and the webhook does not tells when.
	ask := func(ctx context.Context) string {
		wrong := rows.Glance("2026.1", "2026.2", "", func(g *v1alpha1.Glance) { g.Namespace, g.Name, g.Generation = "default", "probe", 0 })
		if err := probe.Create(ctx, wrong); err != nil {
			return err.Error()
		}
		return ""
	}
	env.Eventually(t, harness.Patience, "the webhook configuration to be in force", func(ctx context.Context) string {
		if said := ask(ctx); !strings.Contains(said, c.Webhooks[0].Name) {
			return "a wrong wish is answered by: " + said
		}
		return ""
	})
	remove := func() {
		require.NoError(t, client.IgnoreNotFound(env.Client.Delete(context.Background(), c)))
	}
	t.Cleanup(remove)
	return func() {
		t.Helper()
		remove()
		env.Eventually(t, harness.Patience, "the webhook configuration to be out of force", ask)
	}
}
