package test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/webhook/lint"
)

// rich has a value in most of the places where one can be wrong.
const rich = `{
  "apiVersion": "openstack.c5c3.io/v1alpha1", "kind": "Glance", "metadata": {"name": "images", "namespace": "openstack"},
  "spec": {
    "openStackRelease": "2026.1",
    "image": {"repository": "registry.example.org:5000/glance", "tag": "2026.1", "pullPolicy": "Always", "pullSecrets": [{"name": "s"}]},
    "database": {"secretRef": {"name": "images-database", "key": "connection"}},
    "deployment": {"replicas": 3, "strategy": {"maxSurge": 1, "maxUnavailable": "0%"}, "minReadySeconds": 5,
      "resources": {"requests": {"cpu": "100m", "memory": 1000}}, "nodeSelector": {"a": "b"}, "podLabels": {"team": "x"},
      "tolerations": [{"key": "k", "tolerationSeconds": 7}],
      "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]},
    "extraConfig": {"DEFAULT": {"debug": "true"}},
    "configSecretRefs": [{"name": "more"}],
    "apiServer": {"uwsgi": {"processes": 2}},
    "jobs": {"podAnnotations": {"a": "b"}, "activeDeadlineSeconds": 100}
  }
}`

// richKeystone has the fields that are a Keystone's own.
const richKeystone = `{
  "apiVersion": "openstack.c5c3.io/v1alpha1", "kind": "Keystone", "metadata": {"name": "identity", "namespace": "openstack"},
  "spec": {
    "image": {"repository": "registry.example.org:5000/keystone", "tag": "2026.1", "digest": "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
    "database": {"secretRef": {"name": "identity-database", "key": "connection"}},
    "deployment": {"replicas": 3, "strategy": {"maxSurge": 1, "maxUnavailable": "0%"}},
    "extraConfig": {"DEFAULT": {"debug": "true"}},
    "configSecretRefs": [{"name": "more"}],
    "fernetKeysSecretRef": {"name": "fernet"}, "credentialKeysSecretRef": {"name": "credential"},
    "bootstrap": {"passwordSecretRef": {"name": "admin", "key": "password"}, "username": "admin", "projectName": "admin", "regionID": "RegionOne", "publicURL": "https://identity.example.org/v3"},
    "apiServer": {"uwsgi": {"processes": 2}, "command": ["serve"]},
    "security": {"fsGroup": 7}, "jobs": {"activeDeadlineSeconds": 100}
  }
}`

// TestLintHoldsTheFloorThatTheCRDHolds changes one value after the other into whatever a manifest may have there, and
// compares with the API server's own reading of the CRD, CEL included.
func TestLintHoldsTheFloorThatTheCRDHolds(t *testing.T) {
	for kind, text := range map[string]string{"Glance": rich, "Keystone": richKeystone} {
		t.Run(kind, func(t *testing.T) { assertFloor(t, crdSchema(t, kind), text) })
	}
}

func assertFloor(t *testing.T, schema floor, rich string) {
	t.Helper()
	linter, err := lint.New(lint.Options{Namespace: "default"})
	require.NoError(t, err)
	compared, refused := 0, 0
	compare := func(what string, object map[string]any) {
		text, err := json.Marshal(object)
		require.NoError(t, err)
		got, judged, err := linter.Judge(text)
		require.NoError(t, err, what)
		require.True(t, judged, what)
		var said []string
		byFloor := false
		for _, finding := range got.Findings {
			said = append(said, finding.Message)
			byFloor = byFloor || finding.Reason == lint.InvalidField || finding.Reason == lint.UnknownField
		}
		seen := runtime.DeepCopyJSON(object)
		defaulting.PruneNonNullableNullsWithoutDefaults(seen, schema.structural)
		floor := schema.refuses(t, &unstructured.Unstructured{Object: seen})
		compared++
		switch {
		case len(floor) > 0:
			refused++
			assert.Equal(t, lint.Refused, got.Verdict, "%s: the CRD says %v", what, floor)
		default:
			assert.False(t, byFloor, "%s: the CRD has nothing against it, lint says %v", what, said)
		}
	}
	sample := &unstructured.Unstructured{}
	require.NoError(t, sample.UnmarshalJSON([]byte(rich)))
	whole := sample.Object
	compare("unchanged", whole)
	for _, path := range paths(whole["spec"], "spec") {
		for _, value := range []any{nil, "", "x", "a b", "0", "0%", "a]b", "2026.10", int64(0), int64(-1), int64(99999), 1.5, true, []any{}, []any{"x"}, map[string]any{},
			map[string]any{"unheard": "of"}, map[string]any{"a": map[string]any{"b c": "d"}}} {
			object := runtime.DeepCopyJSON(whole)
			set(object, path, value)
			compare(fmt.Sprintf("%s = %#v", strings.Join(path, "."), value), object)
		}
		object := runtime.DeepCopyJSON(whole)
		remove(object, path)
		compare("without "+strings.Join(path, "."), object)
	}
	for _, name := range []string{"a", "a-b", "a.b", "2a", "A", strings.Repeat("a", v1alpha1.MaxNameLength), strings.Repeat("a", v1alpha1.MaxNameLength+1)} {
		object := runtime.DeepCopyJSON(whole)
		set(object, []string{"metadata", "name"}, name)
		compare("name "+name, object)
	}
	assert.Greater(t, refused, 300, "of %d", compared)
	assert.Greater(t, compared-refused, 100, "of %d", compared)
}

// paths lists where values are; an item of a list is found by its index.
func paths(value any, at ...string) [][]string {
	all := [][]string{slices.Clone(at)}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			all = append(all, paths(value[key], append(slices.Clone(at), key)...)...)
		}
	case []any:
		for i, item := range value {
			all = append(all, paths(item, append(slices.Clone(at), fmt.Sprint(i))...)...)
		}
	}
	return all
}

func set(object map[string]any, path []string, value any) {
	change(object, path, func(parent any, last string) {
		switch parent := parent.(type) {
		case map[string]any:
			parent[last] = value
		case []any:
			parent[0] = value
		}
	})
}

func remove(object map[string]any, path []string) {
	change(object, path, func(parent any, last string) {
		if fields, ok := parent.(map[string]any); ok {
			delete(fields, last)
		}
	})
}

func change(object map[string]any, path []string, deed func(parent any, last string)) {
	var parent any = object
	for _, step := range path[:len(path)-1] {
		switch at := parent.(type) {
		case map[string]any:
			parent = at[step]
		case []any:
			parent = at[0]
		}
	}
	deed(parent, path[len(path)-1])
}
