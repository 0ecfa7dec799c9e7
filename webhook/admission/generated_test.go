package admission_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/c5c3/openstack-upgrade/webhook/admission"
)

// A manifest with generateName has a name by the time it is judged, and none
// where it is applied from.
func TestACommandForAGeneratedNameCreates(t *testing.T) {
	hook := serve(t, admission.Policy{}, admission.Kinds...)
	ask := func(metadata, tag string) *admissionv1.AdmissionResponse {
		object := json.RawMessage(`{"apiVersion":"openstack.c5c3.io/v1alpha1","kind":"Glance","metadata":{` + metadata + `},` +
			`"spec":{"openStackRelease":"2026.1","image":{"repository":"a/b","tag":"` + tag + `"}}}`)
		return hook.ask(t, requestFor(t, admissionv1.Create, "openstack", "", object, nil))
	}
	refused := ask(`"generateName":"images-","name":"images-x7k2p"`, "2026.2")
	require.False(t, refused.Allowed)
	assert.Contains(t, refused.Result.Message, "-o yaml | kubectl create -n ")
	assert.NotContains(t, refused.Result.Message, "kubectl apply", "which takes no manifest without a name")

	long := ask(`"generateName":"`+strings.Repeat("a", 60)+`","name":"`+strings.Repeat("a", 58)+`x7k2p"`, "2026.1")
	require.False(t, long.Allowed)
	assert.Contains(t, long.Result.Message, "-o yaml | kubectl apply -n ", "the command gives it a name")

	named := ask(`"name":"images"`, "2026.2")
	assert.Contains(t, named.Result.Message, "-o yaml | kubectl apply -n ")
}
