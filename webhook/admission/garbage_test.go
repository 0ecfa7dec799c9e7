package admission_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/webhook/admission"
)

// review is a body as the API server would send it.
func review(t testing.TB, request *admissionv1.AdmissionRequest) string {
	t.Helper()
	return string(raw(t, admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
	}))
}

// lawful is a request that would be admitted if nothing else were wrong.
func lawful(t testing.TB) *admissionv1.AdmissionRequest {
	t.Helper()
	return update(t, steady(glance("2026.1", "2026.1", ""), "2026.1"), glance("2026.2", "2026.2", ""))
}

func TestABodyThatHoldsNoRequestIsMalformed(t *testing.T) {
	h := serve(t, admission.Policy{}, admission.Kinds...)
	good := review(t, lawful(t))
	for what, wrong := range map[string]struct{ body, says string }{
		"empty":               {"", "the body is empty: send an AdmissionReview of admission.k8s.io/v1 as JSON"},
		"nothing in it":       {"{}", `the body is no AdmissionReview (kind "", apiVersion "")`},
		"null":                {"null", `the body is no AdmissionReview (kind "", apiVersion "")`},
		"another kind":        {`{"apiVersion":"v1","kind":"Pod"}`, `the body is no AdmissionReview (kind "Pod", apiVersion "v1")`},
		"not JSON":            {"<xml/>", "the body cannot be read as an AdmissionReview: "},
		"cut off":             {good[:len(good)/2], "the body cannot be read as an AdmissionReview: unexpected EOF at byte"},
		"something after":     {good + "{}", "the body cannot be read as an AdmissionReview: invalid character '{' after top-level value"},
		"no request":          {`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, "the AdmissionReview has no request"},
		"null request":        {`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}`, "the AdmissionReview has no request"},
		"a response":          {`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"1","allowed":true}}`, "the AdmissionReview has no request"},
		"no uid":              {strings.Replace(good, `"uid":"5f0e1c52-0b43-4b53-9a4e-0f5a6f6d2c11"`, `"uid":""`, 1), "has no uid to answer to"},
		"uid of another type": {strings.Replace(good, `"uid":"5f0e1c52-0b43-4b53-9a4e-0f5a6f6d2c11"`, `"uid":7`, 1), "the JSON number at /request/uid does not fit there"},
		"v1beta1":             {strings.Replace(good, "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1), "AdmissionReview admission.k8s.io/v1beta1 is not spoken here: set admissionReviewVersions: [v1]"},
		"a name twice":        {strings.Replace(good, `"operation":"UPDATE"`, `"operation":"UPDATE","operation":"DELETE"`, 1), "duplicate object member name at byte 506 within /request/operation"},
		"a release twice":     {strings.Replace(good, `"openStackRelease":"2026.2"`, `"openStackRelease":"2027.1","openStackRelease":"2026.2"`, 1), "within /request/object/spec/openStackRelease"},
		"in another case":     {strings.Replace(good, `"request":`, `"Request":`, 1), "the AdmissionReview has no request"},
		"two requests":        {strings.Replace(good, `"request":`, `"request":{},"request":`, 1), "duplicate object member name at byte 74 within /request"},
		"not UTF-8":           {strings.Replace(good, "images", "im\xffges", 1), "invalid UTF-8"},
		"100k deep":           {strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000), "does not fit there"},
		"100k deep inside": {strings.Replace(good, `"database":`, `"deep":`+strings.Repeat(`{"a":`, 100_000)+"1"+strings.Repeat("}", 100_000)+`,"database":`, 1),
			"exceeded max depth"},
		"100k names":                {strings.Replace(good, `"database":`, `"names":{`+manyNames(100_000)+`"":[{"a":1}]},"database":`, 1), "an object in the body has more than 10000 members"},
		"100k colons and no object": {strings.Repeat(":", 100_000), "the body cannot be read as an AdmissionReview: "},
		"a text that does not end":  {`{"` + strings.Repeat(`\`, 100_001), "the body cannot be read as an AdmissionReview: "},
	} {
		t.Run(what, func(t *testing.T) {
			code, answer := h.post(t, []byte(wrong.body))
			assert.Equal(t, http.StatusBadRequest, code)
			assert.Contains(t, string(answer), wrong.says)
			assert.Equal(t, 1, bytes.Count(answer, []byte("\n")), "one line: %s", answer)
			assert.Less(t, len(answer), 500)
		})
	}
}

// manyNames are so many members of an object, with a comma behind each.
func manyNames(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `"%d":{"a\"b:":1},`, i)
	}
	return text.String()
}

func TestManyMembersInAllAreNoFault(t *testing.T) {
	object := "{" + strings.TrimSuffix(manyNames(9_999), ",") + "}"
	request := lawful(t)
	request.Object.Raw = bytes.Replace(request.Object.Raw, []byte(`"database":`), []byte(`"large":[`+object+","+object+`],"database":`), 1)
	h := serve(t, admission.Policy{}, admission.Kinds...)
	assert.True(t, h.ask(t, request).Allowed)
}

func TestWhatStandsInATextIsNoMember(t *testing.T) {
	request := lawful(t)
	request.Object.Raw = bytes.Replace(request.Object.Raw, []byte(`"database":`), []byte(`"text":"`+strings.Repeat(`\":`, 40_000)+`","database":`), 1)
	h := serve(t, admission.Policy{}, admission.Kinds...)
	assert.True(t, h.ask(t, request).Allowed)
}

func TestARequestThatCannotBeJudgedIsAnErrorAndNeverAdmitted(t *testing.T) {
	h := serve(t, admission.Policy{}, admission.Kinds...)
	pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "images"}}
	for what, wrong := range map[string]struct {
		change func(r *admissionv1.AdmissionRequest)
		says   string
	}{
		"update without an old object": {func(r *admissionv1.AdmissionRequest) { r.OldObject.Raw = nil }, "the request has no old object to judge"},
		"update without an object":     {func(r *admissionv1.AdmissionRequest) { r.Object.Raw = nil }, "the request has no object to judge"},
		"create without an object":     {func(r *admissionv1.AdmissionRequest) { r.Operation, r.Object.Raw = "CREATE", nil }, "the request has no object to judge"},
		"object is an array":           {func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte("[]") }, "the object cannot be read as a Glance: the JSON array at / does not fit there"},
		"old object is a text":         {func(r *admissionv1.AdmissionRequest) { r.OldObject.Raw = []byte(`"x"`) }, "the old object cannot be read as a Glance: the JSON string at / does not fit there"},
		"release is a number": {func(r *admissionv1.AdmissionRequest) {
			r.Object.Raw = bytes.Replace(r.Object.Raw, []byte(`"2026.2"`), []byte(`2026.2`), 1)
		}, "the object cannot be read as a Glance: the JSON number at /spec/openStackRelease does not fit there"},
		"image is a text": {func(r *admissionv1.AdmissionRequest) {
			r.Object.Raw = []byte(`{"apiVersion":"openstack.c5c3.io/v1alpha1","kind":"Glance","spec":{"openStackRelease":"2026.2","image":"glance:2026.2"}}`)
		}, "the JSON string at /spec/image does not fit there"},
		"object of another kind":   {func(r *admissionv1.AdmissionRequest) { r.Object.Raw = raw(t, pod) }, `the object is a "Pod" of "v1", the request is about a Glance of openstack.c5c3.io/v1alpha1`},
		"object without a kind":    {func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte("{}") }, `the object is a "" of ""`},
		"request for another kind": {func(r *admissionv1.AdmissionRequest) { r.Kind.Kind = "Keystone" }, "Kind=Keystone (openstack.c5c3.io/v1alpha1, Resource=glances) is not judged here"},
		"another version":          {func(r *admissionv1.AdmissionRequest) { r.Kind.Version = "v1beta1" }, "is not judged here: correct the rules"},
		"another resource":         {func(r *admissionv1.AdmissionRequest) { r.Resource.Resource = "pods" }, "is not judged here: correct the rules"},
		"another group": {func(r *admissionv1.AdmissionRequest) {
			r.Kind.Group, r.Resource.Group = "glance.example.org", "glance.example.org"
		}, "is not judged here: correct the rules"},
		"another subresource": {func(r *admissionv1.AdmissionRequest) { r.SubResource = "scale" }, `subresource "scale" of glances is not judged here`},
		"connect":             {func(r *admissionv1.AdmissionRequest) { r.Operation = "CONNECT" }, `operation "CONNECT" is not judged here`},
		"no operation":        {func(r *admissionv1.AdmissionRequest) { r.Operation = "" }, `operation "" is not judged here`},
		"operation in lower case": {func(r *admissionv1.AdmissionRequest) { r.Operation = "update" },
			`operation "update" is not judged here`},
	} {
		t.Run(what, func(t *testing.T) {
			request := lawful(t)
			wrong.change(request)
			answer := h.ask(t, request)
			require.False(t, answer.Allowed)
			assert.Equal(t, int32(http.StatusBadRequest), answer.Result.Code)
			assert.Contains(t, answer.Result.Message, wrong.says)
			assert.NotContains(t, answer.Result.Message, "\n")
		})
	}
}

func TestANameInAnotherCaseIsAnotherName(t *testing.T) {
	h := serve(t, admission.Policy{}, admission.Kinds...)
	request := lawful(t)
	request.Object.Raw = bytes.Replace(request.Object.Raw, []byte(`"openStackRelease":"2026.2"`), []byte(`"openStackRelease":"2027.1","OpenStackRelease":"2026.2"`), 1)
	assert.False(t, h.ask(t, request).Allowed)
}

func TestAnObjectBeingDeletedCanAlwaysLoseItsFinalizers(t *testing.T) {
	h := serve(t, admission.Policy{}, admission.Kinds...)
	request := lawful(t)
	request.OldObject.Raw = []byte(`{"metadata":{"deletionTimestamp":"2026-05-01T10:00:00Z"},"spec":{"openStackRelease":7}}`)
	assert.True(t, h.ask(t, request).Allowed)

	t.Run("but the edit itself cannot claim it", func(t *testing.T) {
		request := update(t, steady(glance("2026.1", "2026.1", ""), "2026.1"), glance("2027.1", "2027.1", "", func(g *v1alpha1.Glance) { g.DeletionTimestamp = new(metav1.Now()) }))
		assert.False(t, h.ask(t, request).Allowed)
	})
}

func TestAStatusWriteIsNotJudged(t *testing.T) {
	h := serve(t, admission.Policy{}, admission.Kinds...)
	request := update(t, glance("2026.3", "2026.1", ""), glance("2026.3", "2026.2", ""))
	request.SubResource = "status"
	assert.True(t, h.ask(t, request).Allowed)
}

// The state is the stored one, whatever the edit says about it.
func TestAnEditCannotBringItsOwnStatus(t *testing.T) {
	h := serve(t, admission.Policy{}, admission.Kinds...)
	stored, wish := steady(glance("2026.1", "2026.1", ""), "2026.1"), glance("2027.1", "2027.1", "")
	wish.Status.SetState(upgrade.State{Installed: "2026.2", InstalledImage: wish.Spec.Image.Repository + ":2026.2"})
	assert.False(t, h.ask(t, requestFor(t, admissionv1.Update, "openstack", "images", wish, stored)).Allowed)
	assert.True(t, h.ask(t, creation(t, steady(glance("2026.1", "2026.1", ""), "2026.2"))).Allowed, "nothing is installed for a new object")
}

func TestAnotherKindJoinsAsOneEntry(t *testing.T) {
	placement := admission.Kind{
		GroupVersionKind: metav1.GroupVersionKind{Group: "openstack.c5c3.io", Version: "v1alpha1", Kind: "Placement"},
		Resource:         "placements", Singular: "placement",
		Decode: func(text []byte) (admission.Object, error) {
			var g v1alpha1.Glance
			err := json.Unmarshal(text, &g)
			return admission.Object{APIVersion: g.APIVersion, Kind: g.Kind, Name: g.Name, State: g.Status.State(), Desired: g.Desired()}, err
		},
	}
	h := serve(t, admission.Policy{}, append([]admission.Kind{placement}, admission.Kinds...)...)
	request := update(t, steady(glance("2026.1", "2026.1", ""), "2026.1"), glance("2027.1", "2027.1", ""))
	assert.Contains(t, h.ask(t, request).Result.Message, "kubectl patch glance images")

	request.Kind.Kind, request.Resource.Resource = "Placement", "placements"
	assert.Contains(t, h.ask(t, request).Result.Message, `the old object is a "Glance"`)
	for _, object := range []*[]byte{&request.Object.Raw, &request.OldObject.Raw} {
		*object = bytes.Replace(*object, []byte(`"kind":"Glance"`), []byte(`"kind":"Placement"`), 1)
	}
	answer := h.ask(t, request)
	assert.Contains(t, answer.Result.Message, "kubectl patch placement images")
	assert.Equal(t, "Placement", answer.Result.Details.Kind)
}

func TestALongWarningIsCutAndALineBreakTakenOut(t *testing.T) {
	h := serve(t, admission.Policy{}, admission.Kinds...)
	answer := h.ask(t, creation(t, glance("2026.1", "a\nb"+strings.Repeat("ü", 300), "")))
	require.Len(t, answer.Warnings, 1)
	said, command, _ := strings.Cut(answer.Warnings[0], ". To have it compared")
	assert.Len(t, []rune(said), 256)
	assert.True(t, strings.HasPrefix(said, `spec.image.tag: ImageReleaseUnknown: tag "a\nbüüü`), said)
	assert.True(t, strings.HasSuffix(said, "…"))
	assert.NotContains(t, answer.Warnings[0], "\n")
	assert.Contains(t, command, "kubectl patch", "the command is whole")

	request := lawful(t)
	request.Kind.Kind = "Gla\nnce"
	assert.NotContains(t, h.ask(t, request).Result.Message, "\n", "nor can a request bring a line of its own")
}

// A repository can come from a status, where nothing checks it.
func TestACommandIsSafeToPasteWhateverIsInIt(t *testing.T) {
	h := serve(t, admission.Policy{}, admission.Kinds...)
	hostile := `r/it's$(touch /tmp/x)"` + "`id`\\\n"
	stored := steady(glance("2026.1", "2026.1", "", func(g *v1alpha1.Glance) { g.Spec.Image.Repository = "r"; g.Namespace = "a;b"; g.Name = "x'y" }), "2026.1")
	wish := stored.DeepCopy()
	wish.Spec.OpenStackRelease, wish.Spec.Image.Repository = "2026.2", hostile
	answer := h.ask(t, update(t, stored, wish))
	require.False(t, answer.Allowed)
	_, command, _ := strings.Cut(answer.Result.Message, "\n  ")
	command, _, _ = strings.Cut(command, "\n")
	args := kubectlArguments(t, command)
	assert.Equal(t, []string{"patch", "glance", "x'y", "-n", "a;b", "--type=merge", "-p"}, args[:7])
	assert.Equal(t, hostile, merged(t, stored, args[7]).Spec.Image.Repository)
}
