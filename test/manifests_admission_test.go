package test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
)

func TestTheWebhookIsAskedAboutOurKindsOnlyAndFailsClosed(t *testing.T) {
	for _, overlay := range overlays(t) {
		t.Run(overlay, func(t *testing.T) {
			all := build(t, "overlays/"+overlay)
			configuration := one[*admissionregistrationv1.ValidatingWebhookConfiguration](t, all)
			require.Len(t, configuration.Webhooks, 1)
			hook := configuration.Webhooks[0]
			assert.Equal(t, admissionregistrationv1.Fail, *hook.FailurePolicy)
			assert.Equal(t, admissionregistrationv1.Equivalent, *hook.MatchPolicy)
			assert.Equal(t, admissionregistrationv1.SideEffectClassNone, *hook.SideEffects)
			assert.Equal(t, int32(3), *hook.TimeoutSeconds)
			assert.Equal(t, []string{"v1"}, hook.AdmissionReviewVersions)
			assert.Empty(t, hook.ClientConfig.CABundle, "the CA is injected, not shipped")

			var plurals, versions []string
			for _, crd := range pick[*apiextensionsv1.CustomResourceDefinition](all) {
				plurals = append(plurals, crd.Spec.Names.Plural)
				for _, version := range crd.Spec.Versions {
					if !slices.Contains(versions, version.Name) {
						versions = append(versions, version.Name)
					}
				}
			}
			require.Len(t, hook.Rules, 1)
			rule := hook.Rules[0]
			assert.Equal(t, []string{v1alpha1.GroupVersion.Group}, rule.APIGroups)
			assert.ElementsMatch(t, versions, rule.APIVersions)
			assert.ElementsMatch(t, plurals, rule.Resources, "the main resource of each kind, no status, nothing of others")
			assert.ElementsMatch(t, []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}, rule.Operations)

			elsewhere, err := metav1.LabelSelectorAsSelector(hook.NamespaceSelector)
			require.NoError(t, err)
			assert.False(t, elsewhere.Matches(labels.Set{"kubernetes.io/metadata.name": namespace}), "its own namespace is left alone")
			assert.True(t, elsewhere.Matches(labels.Set{"kubernetes.io/metadata.name": "openstack"}))
		})
	}
}

// The API server's own evaluator decides here whether the webhook would be called.
func TestTheWebhookIsCalledWhenReleaseOrImageIsWrittenAndNotOtherwise(t *testing.T) {
	stored := func(change func(metadata, spec map[string]any)) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Glance",
			"metadata": map[string]any{"name": "images", "namespace": "openstack", "finalizers": []any{"example.org/keep"}},
			"spec":     map[string]any{"openStackRelease": "2026.1", "image": map[string]any{"repository": "glance", "tag": "2026.1"}},
			"status":   map[string]any{"installedRelease": "2026.1"},
		}}
		object = object.DeepCopy()
		if change != nil {
			change(object.Object["metadata"].(map[string]any), object.Object["spec"].(map[string]any))
		}
		return object
	}
	deleted := func(metadata map[string]any) {
		metadata["deletionTimestamp"] = time.Unix(0, 0).UTC().Format(time.RFC3339)
	}
	same := stored(nil)
	cases := map[string]struct {
		old, new *unstructured.Unstructured
		called   bool
	}{
		"a new object":                   {new: same, called: true},
		"a changed release":              {old: same, new: stored(func(_, spec map[string]any) { spec["openStackRelease"] = "2026.2" }), called: true},
		"a changed tag":                  {old: same, new: stored(func(_, spec map[string]any) { spec["image"].(map[string]any)["tag"] = "2026.2" }), called: true},
		"a changed digest":               {old: same, new: stored(func(_, spec map[string]any) { spec["image"].(map[string]any)["digest"] = "sha256:a" }), called: true},
		"a tag that is taken off":        {old: same, new: stored(func(_, spec map[string]any) { delete(spec["image"].(map[string]any), "tag") }), called: true},
		"a deprecated field that begins": {old: same, new: stored(func(_, spec map[string]any) { spec["apiServer"] = map[string]any{"workers": int64(2)} }), called: true},
		"replicas":                       {old: same, new: stored(func(_, spec map[string]any) { spec["deployment"] = map[string]any{"replicas": int64(2)} })},
		"another part of apiServer":      {old: same, new: stored(func(_, spec map[string]any) { spec["apiServer"] = map[string]any{"command": []any{"x"}} })},
		"a release where none was":       {old: stored(func(_, spec map[string]any) { delete(spec, "openStackRelease") }), new: same, called: true},
		"a label of what has no image": {old: stored(func(_, spec map[string]any) { delete(spec, "image") }), new: stored(func(metadata, spec map[string]any) {
			delete(spec, "image")
			metadata["labels"] = map[string]any{"a": "b"}
		})},
		"a kind without a release": {old: stored(func(_, spec map[string]any) { delete(spec, "openStackRelease") }), new: stored(func(_, spec map[string]any) {
			delete(spec, "openStackRelease")
			spec["image"].(map[string]any)["tag"] = "2026.2"
		}), called: true},
		"nothing at all":                   {old: same, new: stored(nil)},
		"a label":                          {old: same, new: stored(func(metadata, _ map[string]any) { metadata["labels"] = map[string]any{"a": "b"} })},
		"a finalizer that is taken off":    {old: same, new: stored(func(metadata, _ map[string]any) { delete(metadata, "finalizers") })},
		"an object that is being deleted":  {old: stored(func(metadata, _ map[string]any) { deleted(metadata) }), new: stored(func(metadata, spec map[string]any) { deleted(metadata); spec["openStackRelease"] = "2027.1" })},
		"the last finalizer of a deletion": {old: stored(func(metadata, _ map[string]any) { deleted(metadata) }), new: stored(func(metadata, _ map[string]any) { deleted(metadata); delete(metadata, "finalizers") })},
	}
	configuration := one[*admissionregistrationv1.ValidatingWebhookConfiguration](t, build(t, "base"))
	hook := configuration.Webhooks[0]
	var conditions []cel.ExpressionAccessor
	for _, condition := range hook.MatchConditions {
		conditions = append(conditions, &matchconditions.MatchCondition{Name: condition.Name, Expression: condition.Expression})
	}
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	compiled := compiler.CompileCondition(conditions, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
	matcher := matchconditions.NewMatcher(compiled, hook.FailurePolicy, "webhook", "validating", hook.Name)
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			c := cases[name]
			result := matcher.Match(t.Context(), review(c.old, c.new), nil, nil)
			require.NoError(t, result.Error)
			assert.Equal(t, c.called, result.Matches, "stopped by %q", result.FailedConditionName)
		})
	}
}

func review(old, updated *unstructured.Unstructured) *admission.VersionedAttributes {
	kind := v1alpha1.GroupVersion.WithKind("Glance")
	resource := v1alpha1.GroupVersion.WithResource("glances")
	operation := admission.Create
	var before runtime.Object
	if old != nil {
		operation, before = admission.Update, old
	}
	attributes := admission.NewAttributesRecord(updated, before, kind, updated.GetNamespace(), updated.GetName(), resource, "", operation, nil, false, nil)
	return &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind, VersionedObject: admission.NewLazyObject(updated), VersionedOldObject: admission.NewLazyObject(before)}
}

func TestTheNameOfTheWebhookBelongsToOurGroup(t *testing.T) {
	configuration := one[*admissionregistrationv1.ValidatingWebhookConfiguration](t, build(t, "base"))
	assert.True(t, strings.HasSuffix(configuration.Webhooks[0].Name, "."+v1alpha1.GroupVersion.Group))
	assert.Equal(t, configuration.Name+"."+v1alpha1.GroupVersion.Group, configuration.Webhooks[0].Name, "what people read when nobody answers is what to look at, and what to delete")
	assert.Equal(t, configuration.Webhooks[0].ClientConfig.Service.Name, configuration.Name)
}
