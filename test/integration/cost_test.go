package integration

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/bench/hook"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// judges label the namespaces by who judges in them.
const judgeLabel = "test.c5c3.io/judged-by"

// BenchmarkAWriteAndWhoJudgesIt is what a judged edit of an 8 KB object costs whoever makes it: with nobody to judge
// it, with the webhook as a process of its own, and with the same rules as a ValidatingAdmissionPolicy. They take turns,
// so that whatever else the machine does hits all of them.
func BenchmarkAWriteAndWhoJudgesIt(b *testing.B) {
	env := harness.Shared(b)
	webhook(b, env)
	policy(b, env)
	config := rest.CopyConfig(env.Config)
	config.QPS = -1
	writer := env.ClientFor(b, config)
	names := []string{"nobody", "webhook", "policy"}
	keys := map[string]client.ObjectKey{}
	for _, by := range names {
		keys[by] = judged(b, env, by)
	}
	edit := func(by string, n int) time.Duration {
		g := build.Glance(keys[by].Name, build.In(keys[by].Namespace))
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"image":{"tag":"2026.1-p%d"}}}`, n))
		began := time.Now()
		if err := writer.Patch(b.Context(), g, patch); err != nil {
			b.Fatalf("judged by %s: %v", by, err)
		}
		return time.Since(began)
	}
	for n := range 50 {
		for _, by := range names {
			edit(by, n)
		}
	}
	took := map[string][]time.Duration{}
	for b.Loop() {
		for range 500 {
			n := len(took["nobody"]) + 50
			for i := range names {
				by := names[(i+n)%len(names)]
				took[by] = append(took[by], edit(by, n))
			}
		}
	}
	at := func(by string, percent int) float64 { return milliseconds(took[by][len(took[by])*percent/100]) }
	for _, by := range names {
		slices.Sort(took[by])
		b.ReportMetric(at(by, 50), by+"-p50-ms")
		b.ReportMetric(at(by, 99), by+"-p99-ms")
	}
	b.ReportMetric(at("webhook", 50)-at("nobody", 50), "webhook-adds-p50-ms")
	b.ReportMetric(at("webhook", 99)-at("nobody", 99), "webhook-adds-p99-ms")
	b.ReportMetric(at("policy", 50)-at("nobody", 50), "policy-adds-p50-ms")
	b.ReportMetric(at("policy", 99)-at("nobody", 99), "policy-adds-p99-ms")
	b.ReportMetric(float64(len(took["nobody"])), "writes-each")
	b.ReportMetric(0, "ns/op")
}

// The comparison is one of the same rules only if the policy refuses what the webhook refuses.
func TestThePolicyThatIsComparedHoldsTheSameRules(t *testing.T) {
	env := harness.Shared(t)
	webhook(t, env)
	policy(t, env)
	record := walking(upgrade.Migrating)
	for _, c := range []struct {
		name    string
		state   upgrade.State
		wish    string
		refused upgrade.Reason
	}{
		{name: "a patch", state: installed2026, wish: wish("2026.1", "2026.1-p1")},
		{name: "one step", state: installed2026, wish: wish("2026.2", "2026.2")},
		{name: "a step with a tag that names none", state: installed2026, wish: wish("2026.2", "latest")},
		{name: "two steps", state: installed2026, wish: wish("2027.1", "2027.1"), refused: upgrade.UpgradePathInvalid},
		{name: "backwards", state: installed2026, wish: wish("2025.2", "2025.2"), refused: upgrade.DowngradeNotSupported},
		{name: "the release alone", state: installed2026, wish: `{"spec":{"openStackRelease":"2026.2"}}`, refused: upgrade.ImageReleaseMismatch},
		{name: "the tag alone", state: installed2026, wish: `{"spec":{"image":{"tag":"2026.2"}}}`, refused: upgrade.ImageReleaseMismatch},
		{name: "a third release", state: record, wish: wish("2027.1", "2027.1"), refused: upgrade.UpgradeTargetChanged},
		{name: "an abort", state: record, wish: wish("2026.1", "2026.1")},
		{name: "another build of the target", state: record, wish: wish("2026.2", "2026.2-p1")},
		{name: "a target without a phase", state: upgrade.State{Installed: "2026.1", InstalledImage: old, Target: "2026.2"}, wish: wish("2026.2", "2026.2"), refused: upgrade.VersionParseError},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, by := range []string{"webhook", "policy"} {
				g := build.Glance("images", build.In(judged(t, env, by).Namespace))
				require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(g), g))
				g.Record().SetState(c.state)
				require.NoError(t, env.Client.Status().Update(t.Context(), g))
				err := env.Client.Patch(t.Context(), g, client.RawPatch(types.MergePatchType, []byte(c.wish)), client.DryRunAll)
				if c.refused == "" {
					assert.NoError(t, err, by)
					continue
				}
				require.Error(t, err, by)
				assert.True(t, apierrors.IsInvalid(err), "%s: %v", by, err)
				assert.Contains(t, err.Error(), string(c.refused), by)
			}
		})
	}
}

func wish(release, tag string) string {
	return fmt.Sprintf(`{"spec":{"openStackRelease":%q,"image":{"tag":%q}}}`, release, tag)
}

// judged is the 8 KB object, installed and at rest, in a fresh namespace with that label.
func judged(t testing.TB, env *harness.Env, by string) client.ObjectKey {
	t.Helper()
	ns := env.Namespace(t)
	labelled := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, judgeLabel, by))
	require.NoError(t, env.Client.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, labelled))
	g := build.Glance("images", build.In(ns), hook.Large(8<<10), build.Adjust(unmanaged))
	status := g.DeepCopy().Status
	env.Create(t, g)
	g.Status = status
	g.Record().SetState(hook.Installed)
	require.NoError(t, env.Client.Status().Update(t.Context(), g))
	refusedBy := by == "nobody"
	env.Eventually(t, harness.Patience, "the judge to be in force", func(ctx context.Context) string {
		err := env.Client.Patch(ctx, g.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(wish("2027.1", "2027.1"))), client.DryRunAll)
		return lacks(refusedBy || err != nil && strings.Contains(err.Error(), string(upgrade.UpgradePathInvalid)), "a dry run that skips a release is answered by: %v", err)
	})
	return client.ObjectKeyFromObject(g)
}

// webhook runs the webhook as its own process and has the API server ask it, as the shipped manifest does, about
// namespaces with the label.
func webhook(t testing.TB, env *harness.Env) {
	t.Helper()
	h := hook.Start(t, 2)
	configuration := &admissionv1.ValidatingWebhookConfiguration{}
	read(t, "../../deploy/base/webhook/validating.yaml", configuration)
	configuration.Name = "judged-by-webhook"
	shipped := &configuration.Webhooks[0]
	shipped.ClientConfig = admissionv1.WebhookClientConfig{URL: ptr.To(h.URL()), CABundle: h.Pair.Certificate}
	shipped.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{judgeLabel: "webhook"}}
	inForce(t, env, configuration)
}

func policy(t testing.TB, env *harness.Env) {
	t.Helper()
	rules := &admissionv1.ValidatingAdmissionPolicy{}
	read(t, "testdata/policy.yaml", rules)
	inForce(t, env, rules)
	inForce(t, env, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: rules.Name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: rules.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{judgeLabel: "policy"}}}},
	})
}

func inForce(t testing.TB, env *harness.Env, object client.Object) {
	t.Helper()
	env.Create(t, object)
	t.Cleanup(func() { assert.NoError(t, client.IgnoreNotFound(env.Client.Delete(context.Background(), object))) })
}

func read(t testing.TB, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, into), path)
}

// unmanaged leaves the managed fields to the API server, which writes its own.
func unmanaged(g *v1alpha1.Glance) { g.ManagedFields = nil }
