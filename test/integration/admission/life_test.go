package admission

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
	"github.com/c5c3/openstack-upgrade/test/rows"
)

// nobody is an address on which nothing listens.
const nobody = "https://localhost:1/validate"

// in puts an object of the table into a namespace and stores it.
func in(t *testing.T, env *harness.Env, ns string, g *v1alpha1.Glance) *v1alpha1.Glance {
	t.Helper()
	g.Namespace, g.Generation = ns, 0
	status := g.Status
	env.Create(t, g)
	g.Status = status
	require.NoError(t, env.Client.Status().Update(t.Context(), g))
	return g
}

// TestAWebhookThatIsDeadIsInNobodysWayButOfWhatItMustJudge holds with the shipped configuration in force and nobody there
// to answer.
func TestAWebhookThatIsDeadIsInNobodysWayButOfWhatItMustJudge(t *testing.T) {
	env := harness.Shared(t)
	restore := withoutRules(t, env)
	at261 := func() *v1alpha1.Glance { return rows.Steady(rows.Glance("2026.1", "2026.1", ""), "2026.1") }
	kept := func(g *v1alpha1.Glance) *v1alpha1.Glance { g.Finalizers = []string{"example.org/keep"}; return g }
	invalid := func() *v1alpha1.Glance { return rows.Steady(rows.Glance("2026.3", "2027.1", ""), "2026.1") }
	cases := []struct {
		what   string
		stored *v1alpha1.Glance
		// deleted is set when the object has been deleted and waits for its finalizer.
		deleted bool
		line    string
		// gone is set when the object is not there afterwards.
		gone bool
	}{
		{what: "a label", stored: at261(), line: "kubectl label glance images team=images"},
		{what: "an annotation", stored: at261(), line: "kubectl annotate glance images a=b"},
		{what: "replicas", stored: at261(), line: `kubectl patch glance images --type=merge -p '{"spec":{"deployment":{"replicas":5}}}'`},
		{what: "configuration", stored: at261(), line: `kubectl patch glance images --type=merge -p '{"spec":{"extraConfig":{"DEFAULT":{"debug":"true"}}}}'`},
		{what: "a status", stored: at261(), line: `kubectl patch glance images --subresource=status --type=merge -p '{"status":{"installedRelease":"2026.2"}}'`},
		{what: "a finalizer that is set", stored: at261(), line: `kubectl patch glance images --type=merge -p '{"metadata":{"finalizers":["example.org/keep"]}}'`},
		{what: "a finalizer that is taken off", stored: kept(at261()), line: `kubectl patch glance images --type=merge -p '{"metadata":{"finalizers":null}}'`},
		{what: "managed fields alone", stored: at261(), line: `kubectl patch glance images --type=merge -p '{"metadata":{"managedFields":[{}]}}'`},
		{what: "another manager of the same wish", stored: at261(), line: "kubectl apply --server-side --force-conflicts --field-manager=gitops -f FILE"},
		{what: "nothing at all", stored: at261(), line: `kubectl patch glance images --type=merge -p '{"spec":{"openStackRelease":"2026.1"}}'`},
		{what: "a label of what breaks rules", stored: invalid(), line: "kubectl label glance images team=images"},
		{what: "replicas of what breaks rules", stored: invalid(), line: `kubectl patch glance images --type=merge -p '{"spec":{"deployment":{"replicas":5}}}'`},
		{what: "a deletion", stored: at261(), line: "kubectl delete glance images", gone: true},
		{what: "a deletion of what breaks rules", stored: invalid(), line: "kubectl delete glance images", gone: true},
		{what: "a deletion of all", stored: at261(), line: "kubectl delete glances --all", gone: true},
		{what: "an edit of what is being deleted", stored: kept(at261()), deleted: true, line: `kubectl patch glance images --type=merge -p '{"spec":{"openStackRelease":"2027.1"}}'`},
		{what: "the last finalizer", stored: kept(at261()), deleted: true, line: `kubectl patch glance images --type=merge -p '{"metadata":{"finalizers":null}}'`, gone: true},
		{what: "the last finalizer of what breaks rules", stored: kept(invalid()), deleted: true, line: `kubectl patch glance images --type=merge -p '{"metadata":{"finalizers":null}}'`, gone: true},
	}
	namespaces := make([]string, len(cases))
	for i, c := range cases {
		namespaces[i] = fmt.Sprintf("dead-%d", i)
		env.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaces[i]}})
		g := in(t, env, namespaces[i], c.stored)
		if c.deleted {
			require.NoError(t, env.Client.Delete(t.Context(), g))
		}
	}
	judged := in(t, env, env.Namespace(t), at261())
	restore()
	withdraw := register(t, env, configuration(t, env, nobody, nil))
	defer withdraw()

	t.Run("passes", func(t *testing.T) {
		for i, c := range cases {
			t.Run(c.what, func(t *testing.T) {
				t.Parallel()
				s := newShell(t, env, namespaces[i])
				s.write(t, "FILE", string(manifest(t, c.stored)))
				seen, ok := s.types(t, c.line)
				require.True(t, ok, seen)
				err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: namespaces[i], Name: rows.Name}, &v1alpha1.Glance{})
				assert.Equal(t, c.gone, apierrors.IsNotFound(err), "%v", err)
			})
		}
	})
	for what, line := range map[string]string{
		"a release":          `kubectl patch glance images --type=merge -p '{"spec":{"openStackRelease":"2026.2"}}'`,
		"an image":           `kubectl patch glance images --type=merge -p '{"spec":{"image":{"tag":"2026.1-p1"}}}'`,
		"a deprecated field": `kubectl patch glance images --type=merge -p '{"spec":{"apiServer":{"workers":2}}}'`,
	} {
		t.Run("waits: "+what, func(t *testing.T) {
			seen, ok := newShell(t, env, judged.Namespace).types(t, line)
			assert.False(t, ok)
			assert.Contains(t, seen, `failed calling webhook "openstack-upgrade-webhook.openstack.c5c3.io"`)
		})
	}
}

// TestNamespacesGoAwayWithTheWebhookDead includes the webhook's own.
func TestNamespacesGoAwayWithTheWebhookDead(t *testing.T) {
	env := harness.Shared(t)
	ns := env.Namespace(t)
	in(t, env, ns, rows.Steady(rows.Glance("2026.1", "2026.1", ""), "2026.1"))
	withdraw := register(t, env, configuration(t, env, nobody, nil))
	defer withdraw()
	seen, ok := newShell(t, env, "default").types(t, "kubectl delete namespace "+ns+" --timeout=50s")
	assert.True(t, ok, seen)
}

// TestAWholeWalkNeedsNoWebhook has the controller install and upgrade with the webhook dead.
func TestAWholeWalkNeedsNoWebhook(t *testing.T) {
	env := harness.Shared(t)
	ns := env.Namespace(t)
	wish := build.Glance("images", build.In(ns), build.Replicas(1), build.Lockstep("2026.2"))
	env.Create(t, build.DatabaseSecret(ns))
	in(t, env, ns, func() *v1alpha1.Glance {
		wish.Status.SetState(upgrade.State{Installed: "2026.1", InstalledImage: build.DefaultRepository + ":2026.1"})
		return wish
	}())
	withdraw := register(t, env, configuration(t, env, nobody, nil))
	defer withdraw()
	env.StartController(t, ns)
	harness.Await(t, env, wish, "the walk to end", func(g *v1alpha1.Glance) string {
		if g.Status.InstalledRelease != "2026.2" || g.Status.UpgradePhase != "" {
			text, _ := json.Marshal(g.Status)
			return string(text)
		}
		return ""
	})
}
