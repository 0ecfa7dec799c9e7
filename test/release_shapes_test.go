package test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/c5c3/openstack-upgrade/shared/image"
	"github.com/c5c3/openstack-upgrade/shared/release"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/webhook/admission"
)

// Answers about a text: as a release, and as a tag beside the release 2026.1.
const (
	isRelease = "release"
	noRelease = "none"

	agrees  = "agrees"  // the tag names 2026.1
	differs = "differs" // it names another release
	trusted = "trusted" // it names none
	noTag   = "no tag"  // the CRD refuses it as a tag; what it would name is not asked
)

var shapes = []struct{ text, asRelease, asTag string }{
	{"2026.1", isRelease, agrees},
	{"2026.2", isRelease, differs},
	{"2025.2", isRelease, differs},
	{"2027.1", isRelease, differs},
	{"0000.1", isRelease, differs},
	{"0000.2", isRelease, differs},
	{"9999.1", isRelease, differs},
	{"9999.2", isRelease, differs},
	// Other numbers.
	{"2026.0", noRelease, trusted},
	{"2026.3", noRelease, trusted},
	{"2025.9", noRelease, trusted},
	{"2026.10", noRelease, trusted},
	{"2026.11", noRelease, trusted},
	{"2026.01", noRelease, trusted},
	{"2026.1.0", noRelease, trusted},
	{"2026.1.1", noRelease, trusted},
	{"2026.1.2026.1", noRelease, trusted},
	{"26.1", noRelease, trusted},
	{"026.1", noRelease, trusted},
	{"02026.1", noRelease, trusted},
	{"12026.1", noRelease, trusted},
	{"20261", noRelease, trusted},
	{"2026", noRelease, trusted},
	{"2026.", noRelease, trusted},
	{".1", noRelease, noTag},
	{"0x7EA.1", noRelease, trusted},
	{"2e3.1", noRelease, trusted},
	{"-2026.1", noRelease, noTag},
	{"+2026.1", noRelease, noTag},
	{"2026,1", noRelease, noTag},
	{"2026-1", noRelease, trusted},
	{"2026_1", noRelease, trusted},
	{"2026..1", noRelease, trusted},
	// Prefixes and suffixes.
	{"v2026.1", noRelease, trusted},
	{"V2026.2", noRelease, trusted},
	{"stable-2026.1", noRelease, trusted},
	{"stable/2026.1", noRelease, noTag},
	{"2026.1-p1", noRelease, agrees},
	{"2026.1-p1.2_3-4", noRelease, agrees},
	{"2026.1-ubuntu_jammy", noRelease, agrees},
	{"2026.2-p1", noRelease, differs},
	{"2026.1-2026.2", noRelease, agrees},
	{"2026.2-2026.1", noRelease, differs},
	{"2026.1--", noRelease, agrees},
	{"2026.1-", noRelease, trusted},
	{"2026.1_p1", noRelease, trusted},
	{"2026.1p1", noRelease, trusted},
	{"2026.1rc1", noRelease, trusted},
	{"2026.1+build", noRelease, noTag},
	{"2026.1~1", noRelease, noTag},
	{"2026.3-p1", noRelease, trusted},
	{"2026.10-p1", noRelease, trusted},
	{"latest", noRelease, trusted},
	{"master", noRelease, trusted},
	{"bookworm", noRelease, trusted},
	{"zed", noRelease, trusted},
	{"", noRelease, trusted},
	// References where a tag is expected.
	{"glance:2026.1", noRelease, noTag},
	{"registry:5000/glance:2026.1", noRelease, noTag},
	{"2026.1@sha256:" + hash, noRelease, noTag},
	{"sha256:" + hash, noRelease, noTag},
	// White space, line ends, control characters.
	{" 2026.1", noRelease, noTag},
	{"2026.1 ", noRelease, noTag},
	{"2026. 1", noRelease, noTag},
	{"2026.1\n", noRelease, noTag},
	{"2026.1\r\n", noRelease, noTag},
	{"\n2026.1", noRelease, noTag},
	{"2026.1\n2026.2", noRelease, noTag},
	{"2026.1\t", noRelease, noTag},
	{"2026.1\x00", noRelease, noTag},
	{"20\x0026.1", noRelease, noTag},
	{"2026.1\u2028", noRelease, noTag},
	{"\ufeff2026.1", noRelease, noTag},
	{"2026.1\u200b", noRelease, noTag},
	{"\u00a02026.1", noRelease, noTag},
	// Characters that look like others.
	{"２０２６.１", noRelease, noTag},
	{"٢٠٢٦.١", noRelease, noTag},
	{"2026.\u0661", noRelease, noTag},
	{"2026．1", noRelease, noTag},
	{"2026․1", noRelease, noTag},
	{"²026.1", noRelease, noTag},
	{"2026.l", noRelease, trusted},
	{"2O26.1", noRelease, trusted},
	{"2026.1\u0301", noRelease, noTag},
	{"2026.1\xff", noRelease, noTag},
	// Lengths.
	{"2026.1-" + strings.Repeat("x", 121), noRelease, agrees},
	{"2026.1-" + strings.Repeat("x", 122), noRelease, noTag},
	{strings.Repeat("2", 128), noRelease, trusted},
	{strings.Repeat("2026.1", 10_000/6), noRelease, noTag},
	{strings.Repeat("9", 10_000) + ".1", noRelease, noTag},
	{strings.Repeat("\x00", 10_000), noRelease, noTag},
}

const hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// TestParserCRDLockstepAndAdmissionAgreeAboutEveryShape asks all who read a release or a tag.
func TestParserCRDLockstepAndAdmissionAgreeAboutEveryShape(t *testing.T) {
	require.GreaterOrEqual(t, len(shapes), 60)
	spec := crdOf(t, "Glance").Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	releases, tags := spec.Properties["openStackRelease"], spec.Properties["image"].Properties["tag"]
	keystone := crdOf(t, "Keystone").Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["image"].Properties["tag"]
	wanted, err := release.Parse("2026.1")
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, shape := range shapes {
		t.Run(fmt.Sprintf("%.60q", shape.text), func(t *testing.T) {
			require.False(t, seen[shape.text], "listed twice")
			seen[shape.text] = true

			parsed, err := release.Parse(shape.text)
			assert.Equal(t, shape.asRelease == isRelease, err == nil, "the parser")
			assert.Equal(t, shape.asRelease == isRelease, accepts(t, releases, shape.text), "the CRD")
			if err == nil {
				assert.Equal(t, shape.text, parsed.String())
			} else {
				assert.Less(t, len(err.Error()), 400)
				assert.NotContains(t, err.Error(), "\n")
			}
			assert.Equal(t, shape.asRelease == isRelease, upgrade.Check(upgrade.State{}, upgrade.Desired{Release: shape.text, Image: image.Reference{Repository: "r", Tag: "latest"}}) == nil, "the law")
			if utf8.ValidString(shape.text) {
				assert.Equal(t, shape.asRelease == isRelease, admitted(t, shape.text, "latest"), "admission")
			}

			ref := image.Reference{Repository: "registry.example.org:5000/glance", Tag: shape.text}
			named, ok := ref.Release()
			got := trusted
			if ok {
				got = differs
				if named == wanted {
					got = agrees
				}
			}
			legal := shape.text == "" || accepts(t, tags, shape.text)
			assert.Equal(t, shape.asTag != noTag, legal, "the CRD of Glance, as a tag")
			assert.Equal(t, shape.asTag != noTag, shape.text == "" || accepts(t, keystone, shape.text), "the CRD of Keystone, as a tag")
			if shape.asTag == noTag {
				assert.False(t, ok, "what is no tag names no release")
				return
			}
			assert.Equal(t, shape.asTag, got, "the tag")
			if shape.text == "" {
				ref.Digest = "sha256:" + hash // something must be named
			}
			rejected := upgrade.Check(upgrade.State{}, upgrade.Desired{Release: "2026.1", Image: ref})
			assert.Equal(t, shape.asTag == differs, rejected != nil, "the lockstep")
			if rejected != nil {
				assert.Equal(t, upgrade.ImageReleaseMismatch, rejected.Reason)
			}
			if shape.text != "" {
				assert.Equal(t, shape.asTag != differs, admitted(t, "2026.1", shape.text), "admission, as a tag")
				whole, err := image.Parse(ref.String())
				require.NoError(t, err)
				assert.Equal(t, ref, whole, "the reference, read again")
			}
		})
	}
}

// accepts asks the schema of a text as the API server does: pattern and length, counted in characters.
func accepts(t *testing.T, schema apiextensionsv1.JSONSchemaProps, text string) bool {
	t.Helper()
	require.NotEmpty(t, schema.Pattern)
	require.NotNil(t, schema.MaxLength)
	return regexp.MustCompile(schema.Pattern).MatchString(text) && int64(utf8.RuneCountInString(text)) <= *schema.MaxLength
}

func admitted(t *testing.T, releaseName, tag string) bool {
	t.Helper()
	object, err := json.Marshal(map[string]any{
		"apiVersion": "openstack.c5c3.io/v1alpha1", "kind": "Glance", "metadata": map[string]any{"name": "images"},
		"spec": map[string]any{"openStackRelease": releaseName, "image": map[string]any{"repository": "r", "tag": tag}},
	})
	require.NoError(t, err)
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{UID: "u", Operation: admissionv1.Create, Name: "images", Namespace: "openstack",
			Kind:     metav1.GroupVersionKind{Group: "openstack.c5c3.io", Version: "v1alpha1", Kind: "Glance"},
			Resource: metav1.GroupVersionResource{Group: "openstack.c5c3.io", Version: "v1alpha1", Resource: "glances"},
			Object:   runtime.RawExtension{Raw: object}},
	})
	require.NoError(t, err)
	answer, _, err := admission.New(admission.Policy{}, admission.Kinds...).Review(body)
	require.NoError(t, err)
	return answer.Response.Allowed
}
