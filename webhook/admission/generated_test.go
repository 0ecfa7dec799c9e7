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
	dry := func(r *admissionv1.AdmissionRequest) { r.DryRun = new(true) }
	ask := func(metadata, tag string, changes ...func(*admissionv1.AdmissionRequest)) *admissionv1.AdmissionResponse {
		object := json.RawMessage(`{"apiVersion":"openstack.c5c3.io/v1alpha1","kind":"Glance","metadata":{` + metadata + `},` +
			`"spec":{"openStackRelease":"2026.1","image":{"repository":"a/b","tag":"` + tag + `"}}}`)
		request := requestFor(t, admissionv1.Create, "openstack", "", object, nil)
		for _, change := range changes {
			change(request)
		}
		return hook.ask(t, request)
	}
	refused := ask(`"generateName":"images-","name":"images-x7k2p"`, "2026.2")
	require.False(t, refused.Allowed)
	assert.Contains(t, refused.Result.Message, "-o yaml | kubectl create -n ")
	assert.NotContains(t, refused.Result.Message, "kubectl apply", "which takes no manifest without a name")

	long := ask(`"generateName":"`+strings.Repeat("a", 60)+`","name":"`+strings.Repeat("a", 58)+`x7k2p"`, "2026.1")
	require.False(t, long.Allowed)
	assert.Contains(t, long.Result.Message, "-o yaml | kubectl apply -n ", "the command gives it a name")

	warned := ask(`"generateName":"images-","name":"images-x7k2p"`, "latest")
	require.True(t, warned.Allowed)
	assert.Contains(t, strings.Join(warned.Warnings, "\n"), "kubectl patch glance images-x7k2p -n openstack --type=merge -p ", "creating it again would make a second one")
	rehearsed := ask(`"generateName":"images-","name":"images-x7k2p"`, "latest", dry)
	assert.Contains(t, strings.Join(rehearsed.Warnings, "\n"), "-o yaml | kubectl create -n ", "after a dry run there is none")

	named := ask(`"name":"images"`, "2026.2")
	assert.Contains(t, named.Result.Message, "-o yaml | kubectl apply -n ")
}
