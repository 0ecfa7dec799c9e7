package walks

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/certs/serving/mint"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/free"
	"github.com/c5c3/openstack-upgrade/test/harness"
	"github.com/c5c3/openstack-upgrade/webhook/server"
)

// serveHook runs the real webhook, and has the shipped configuration call it about the namespaces that say so.
func serveHook(t testing.TB, env *harness.Env) {
	t.Helper()
	program := filepath.Join(env.Dir, "webhook")
	if output, err := exec.Command("go", "build", "-o", program, env.Path("webhook")).CombinedOutput(); err != nil {
		t.Fatalf("build the webhook: %v\n%s", err, output)
	}
	pair, volume := mint.Valid(t, 1, 24*time.Hour), mint.Mount(t)
	volume.Update(t, pair)
	address := free.Address(t)
	log, err := os.Create(filepath.Join(env.Dir, "webhook.log"))
	if err != nil {
		t.Fatalf("make the log of the webhook: %v", err)
	}
	cmd := exec.Command(program, "--listen-address="+address, "--health-address="+free.Address(t), "--metrics-address="+free.Address(t),
		"--tls-dir="+volume.Dir, "--shutdown-delay=0s", "--log-format=text")
	cmd.Stdout, cmd.Stderr = log, log
	// It must not outlive a test that is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the webhook: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended, which Wait tells
		if err := cmd.Wait(); err != nil {
			t.Errorf("the webhook was asked to end: %v, see %s", err, log.Name())
		}
		log.Close()
	})
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	register(t, env, "https://localhost:"+port+server.ReviewPath, pair.Certificate)
}

// register puts the shipped configuration in force, for namespaces with our label.
func register(t testing.TB, env *harness.Env, url string, ca []byte) {
	t.Helper()
	shipped := env.Shipped(t, "ValidatingWebhookConfiguration")[0]
	var c admissionregistrationv1.ValidatingWebhookConfiguration
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(shipped.Object, &c); err != nil {
		t.Fatalf("read the shipped webhook configuration: %v", err)
	}
	for i := range c.Webhooks {
		c.Webhooks[i].ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca}
		c.Webhooks[i].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{hooked: "on"}}
	}
	env.Create(t, &c)
	t.Cleanup(func() {
		if err := env.Client.Delete(context.Background(), &c); client.IgnoreNotFound(err) != nil {
			t.Errorf("withdraw the webhook configuration: %v", err)
		}
	})
	l := &lane{Env: env, t: t, ns: env.Namespace(t)}
	l.hook(t, true)
	wrong := build.Glance("probe", build.In(l.ns), build.Tag("2026.2"))
	probe := client.NewDryRunClient(env.Client)
	env.Eventually(t, harness.Patience, "the webhook to be in force", func(ctx context.Context) string {
		err := probe.Create(ctx, wrong.DeepCopy())
		if err == nil || !strings.Contains(err.Error(), c.Webhooks[0].Name) || !strings.Contains(err.Error(), "denied") {
			return fmt.Sprintf("a wrong wish is answered by: %v", err)
		}
		return ""
	})
}
