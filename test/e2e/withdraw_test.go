//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/cluster/addons"
	"github.com/c5c3/openstack-upgrade/test/stage"
)

// gone is how long an uninstall may take: half a minute of it is the webhook's and the pods' own grace.
const gone = 2 * time.Minute

// partings are ways to take the product away under an object that serves. The last step of each is what deploy/README.md
// says; whatever comes before it is what people do first. The garbage collector of Kubernetes looks for new kinds twice a
// minute, so it may not have heard of ours when the definition goes, and then leaves alone what the controller made: only
// where the objects go first must nothing of that be left.
var partings = []struct {
	name      string
	collected bool
	first     func(t *testing.T, key client.ObjectKey)
}{
	{"the objects first, as documented", true, func(t *testing.T, key client.ObjectKey) {
		typed(t, "delete", "glances", "--all", "-A", "--timeout=30s")
		require.NoError(t, on.Await(t.Context(), "what the controller made to be collected", gone, on.Bare(key.Namespace)))
	}},
	{"the namespace of the product first", true, func(t *testing.T, key client.ObjectKey) {
		typed(t, "delete", "namespace", stage.ProductNamespace, "--wait=false")
		require.NoError(t, on.Await(t.Context(), "the webhook to be gone", time.Minute, on.Gone(stage.ProductNamespace)))
		_, err := on.Kubectl(t.Context(), "", "-n", key.Namespace, "patch", "glance", key.Name, "--type=merge", "-p", stage.Patch(stage.ReleaseAfter, stage.TagAfter))
		require.Error(t, err, "an edit that nobody can judge")
		on.Say("with the webhook gone: %s", err)
		assert.Contains(t, err.Error(), `failed calling webhook "openstack-upgrade-webhook`)
		typed(t, "-n", key.Namespace, "label", "glance", key.Name, "a=b")
		typed(t, "-n", key.Namespace, "delete", "glance", key.Name, "--timeout=30s")
	}},
	{"cert-manager and the definitions first, then everything in one command", false, func(t *testing.T, _ client.ObjectKey) {
		require.NoError(t, on.RemoveCertManager(t.Context()))
		typed(t, append([]string{"delete", "crd", "--timeout=60s"}, stage.CRDs...)...)
	}},
}

// live makes an object that serves, in a namespace of its own. The drill stands in for Glance: it is there within seconds.
func live(t *testing.T, namespace string) client.ObjectKey {
	t.Helper()
	key, err := on.InstallDrill(t.Context(), stage.Drill(namespace, build.Replicas(1)), patience)
	require.NoError(t, err)
	return key
}

func typed(t *testing.T, args ...string) {
	t.Helper()
	on.Say("%s", stage.CommandLine(args...))
	_, err := on.Kubectl(t.Context(), "", args...)
	require.NoError(t, err)
}

// It takes every Glance of the cluster away, so its file comes last. It ends with the install of everything at once.
func TestAnUninstallInAnyOrderLeavesNothingStuckAndEverythingCanBeInstalledAtOnce(t *testing.T) {
	t.Cleanup(func() { assert.NoError(t, on.Reinstall(context.WithoutCancel(t.Context()))) })
	require.NoError(t, on.LoadDrill(t.Context(), stage.ReleaseBefore))
	for i, parting := range partings {
		if !t.Run(parting.name, func(t *testing.T) {
			require.NoError(t, on.Reinstall(t.Context()))
			key := live(t, fmt.Sprintf("live-%d", i))
			began := time.Now()
			parting.first(t, key)
			out, err := on.Kubectl(t.Context(), "", "delete", "--ignore-not-found", "--timeout=60s", "-k", stage.Overlay)
			if err != nil {
				// What cert-manager has taken with it cannot be named any more.
				require.Contains(t, err.Error(), `no matches for kind`, out)
			}
			require.NoError(t, on.Await(t.Context(), "the product to be gone", gone, on.Gone(stage.ProductNamespace)))
			on.Say("gone after %.1f s", time.Since(began).Seconds())
			if parting.collected {
				require.NoError(t, on.Await(t.Context(), "what the controller made to be collected", gone, on.Bare(key.Namespace)))
			}
			require.NoError(t, on.DropNamespace(t.Context(), key.Namespace))
		}) {
			return
		}
	}
	t.Run("everything is installed at once, and the first object is judged or told what is not ready", atOnce)
	for i := range partings {
		require.NoError(t, on.RemoveNamespace(t.Context(), fmt.Sprintf("live-%d", i)))
	}
}

// notReady are the words that say what an object applied too early waits for, as deploy/README.md has them.
var notReady = []string{
	`no matches for kind "Glance"`, "connection refused", "no endpoints available", "certificate signed by unknown authority",
	"context deadline exceeded", "i/o timeout", `service "openstack-upgrade-webhook" not found`,
}

func atOnce(t *testing.T) {
	all, err := on.Everything(t.Context())
	require.NoError(t, err)
	require.NoError(t, on.RemoveNamespace(t.Context(), addons.CertManager.Namespace))
	require.NoError(t, on.Namespace(t.Context(), "early"))
	lying := stage.Glance{Namespace: "early", Name: "images", Release: stage.ReleaseBefore, Tag: stage.ReleaseBeyond}
	began := time.Now()
	var said []string
	judged, applied := false, false
	require.NoError(t, on.Await(t.Context(), "an object to be judged", 3*time.Minute, func(ctx context.Context) (bool, string, error) {
		if !applied {
			// The kinds of cert-manager are there only after they were applied, so the command is repeated until it passes.
			_, err := on.Kubectl(ctx, all, "apply", "--server-side", "--force-conflicts", "-f", "-")
			if applied = err == nil; !applied && !strings.Contains(err.Error(), "no matches for kind") && !strings.Contains(err.Error(), "not found") {
				return false, "", err
			}
		}
		_, err := on.Kubectl(ctx, lying.Manifest(), "apply", "-f", "-")
		require.Error(t, err, "an object was admitted that nobody has judged")
		words := err.Error()
		if judged = strings.Contains(words, "ImageReleaseMismatch"); !judged && (len(said) == 0 || said[len(said)-1] != words) {
			said = append(said, words)
			on.Say("after %.1f s: %s", time.Since(began).Seconds(), words)
		}
		return judged && applied, words, nil
	}))
	on.Say("judged after %.1f s", time.Since(began).Seconds())
	for _, words := range said {
		assert.True(t, containsAny(words, notReady), "does not say what is not ready: %s", words)
	}
	require.NoError(t, on.Reinstall(t.Context()))
	require.NoError(t, on.DropNamespace(t.Context(), live(t, "early").Namespace))
}

func TestANamespaceIsDeletedWithNoWebhookThere(t *testing.T) {
	t.Cleanup(func() { assert.NoError(t, on.Scale(context.WithoutCancel(t.Context()), stage.Webhook, 2)) })
	g := stage.Glance{Namespace: "unwatched", Name: "images", Release: stage.ReleaseBefore, Tag: stage.TagBefore}
	key := g.Key()
	require.NoError(t, on.Namespace(t.Context(), g.Namespace))
	// Without the Secret no pod starts, so that nothing but the webhook could hold the namespace up.
	_, err := on.Kubectl(t.Context(), g.Manifest(), "apply", "-f", "-")
	require.NoError(t, err)
	require.NoError(t, on.AwaitObject(t.Context(), key, "the controller to have begun", words, func(o stage.Object) bool { return len(o.Record().Conditions) > 0 }))
	require.NoError(t, on.Scale(t.Context(), stage.Webhook, 0))
	_, err = on.Kubectl(t.Context(), "", "-n", g.Namespace, "patch", "glance", g.Name, "--type=merge", "-p", stage.Patch(stage.ReleaseAfter, stage.TagAfter))
	require.ErrorContains(t, err, "failed calling webhook", "without the webhook no edit is admitted")
	on.Say("with no replica of the webhook: %s", err)
	require.NoError(t, on.RemoveNamespace(t.Context(), g.Namespace))
}

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}
