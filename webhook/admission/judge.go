package admission

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// Policy is what whoever runs the webhook can choose.
type Policy struct {
	// RejectAbortWhileContracting refuses an abort that begins while contract
	// runs, instead of warning about it.
	RejectAbortWhileContracting bool
}

// Judge answers reviews about the kinds of its table.
type Judge struct {
	policy Policy
	kinds  map[metav1.GroupVersionKind]*Kind
}

// New makes a judge of the kinds given.
func New(policy Policy, kinds ...Kind) *Judge {
	j := &Judge{policy: policy, kinds: make(map[metav1.GroupVersionKind]*Kind, len(kinds))}
	for i := range kinds {
		j.kinds[kinds[i].GroupVersionKind] = &kinds[i]
	}
	return j
}

// Review answers one AdmissionReview. The error is for a body that holds no
// request to answer to; the decision tells about either outcome.
func (j *Judge) Review(body []byte) (*admissionv1.AdmissionReview, Decision, error) {
	r, wrong := read(body)
	if wrong != nil {
		return nil, Decision{Kind: Other, Operation: Other, Verdict: Failed, Reason: wrong.reason}, wrong
	}
	response, verdict, reason := j.answer(r)
	response.UID = r.UID
	return &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: reviewKind},
		Response: response,
	}, j.decision(r, verdict, reason), nil
}

func (j *Judge) answer(r *request) (*admissionv1.AdmissionResponse, Verdict, Reason) {
	switch r.Operation {
	case admissionv1.Delete:
		return allow(Deletion)
	case admissionv1.Create, admissionv1.Update:
	case admissionv1.Connect:
		fallthrough
	default:
		return fail(&fault{UnknownRequest, fmt.Sprintf("operation %q is not judged here: let the rules of the ValidatingWebhookConfiguration name CREATE and UPDATE alone", clip(string(r.Operation), 60))})
	}
	kind, known := j.kinds[r.Kind]
	if !known || r.Resource.Group != kind.Group || r.Resource.Resource != kind.Resource {
		return fail(&fault{UnknownRequest, fmt.Sprintf("%s (%s) is not judged here: correct the rules of the ValidatingWebhookConfiguration",
			clip(r.Kind.String(), 150), clip(r.Resource.String(), 150))})
	}
	switch r.SubResource {
	case "":
	case "status":
		// The API server takes nothing but the status from such a write.
		return allow(StatusWrite)
	default:
		return fail(&fault{UnknownRequest, fmt.Sprintf("subresource %q of %s is not judged here: let the rules of the ValidatingWebhookConfiguration name %s alone",
			clip(r.SubResource, 60), kind.Resource, kind.Resource)})
	}
	if r.Operation == admissionv1.Create {
		return j.create(kind, r)
	}
	return j.update(kind, r)
}

func (j *Judge) create(kind *Kind, r *request) (*admissionv1.AdmissionResponse, Verdict, Reason) {
	object, wrong := kind.object(r.Object, "object")
	if wrong != nil {
		return fail(wrong)
	}
	name := cmp.Or(object.Name, generated(object.GenerateName))
	subject := subject{kind: kind, namespace: r.Namespace, name: name, creates: true, generates: object.GenerateName != "", stored: object.Desired, wished: object.Desired}
	// The API server drops what a new object says about its own status.
	violations := j.violations(kind, upgrade.State{}, nil, object.Desired)
	if unusable := unusableName(name); len(unusable) > 0 {
		subject.rename = usable(name)
		violations = append(unusable, violations...)
	}
	if len(violations) > 0 {
		return deny(subject, violations)
	}
	// Who reads a warning has the object by then, and creating it again would
	// make another one under another name.
	subject.creates = !subject.generates || object.Name == "" || r.DryRun
	return allow(Accepted, append(subject.advices(upgrade.Advise(upgrade.State{}, nil, object.Desired)), subject.notes(object.Notes)...)...)
}

func (j *Judge) update(kind *Kind, r *request) (*admissionv1.AdmissionResponse, Verdict, Reason) {
	stored, wrong := kind.object(r.OldObject, "old object")
	if wrong == nil && stored.Deleting || wrong != nil && deleting(r.OldObject) {
		return allow(BeingDeleted)
	}
	if wrong != nil {
		return fail(wrong)
	}
	object, wrong := kind.object(r.Object, "object")
	if wrong != nil {
		return fail(wrong)
	}
	before, wish := stored.Desired, object.Desired
	subject := subject{kind: kind, namespace: r.Namespace, name: stored.Name, stored: before, wished: wish}
	notes := subject.notes(slices.DeleteFunc(object.Notes, func(note Note) bool {
		return slices.ContainsFunc(stored.Notes, func(known Note) bool { return known.Path == note.Path })
	}))
	if before.Release == wish.Release && before.Image == wish.Image {
		return allow(Unchanged, notes...)
	}
	violations := j.violations(kind, stored.State, &before, wish)
	if len(violations) > 0 && violations[0].record && before.Release == wish.Release {
		broken := violations[0]
		return allow(Accepted, append([]string{warning(broken.path, broken.reason, broken.message, "repair the status", subject.repair())}, notes...)...)
	}
	if len(violations) > 0 {
		return deny(subject, violations)
	}
	return allow(Accepted, append(subject.advices(upgrade.Advise(stored.State, &before, wish)), notes...)...)
}

func allow(reason Reason, warnings ...string) (*admissionv1.AdmissionResponse, Verdict, Reason) {
	return &admissionv1.AdmissionResponse{Allowed: true, Warnings: warnings}, Allowed, reason
}

func fail(f *fault) (*admissionv1.AdmissionResponse, Verdict, Reason) {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: f.message,
	}}, Failed, f.reason
}

func (j *Judge) decision(r *request, verdict Verdict, reason Reason) Decision {
	d := Decision{Kind: Other, Operation: Other, Verdict: verdict, Reason: reason,
		UID: r.UID, Namespace: r.Namespace, Name: r.Name, DryRun: r.DryRun}
	if kind, known := j.kinds[r.Kind]; known {
		d.Kind = kind.Kind
	}
	switch r.Operation {
	case admissionv1.Create, admissionv1.Update, admissionv1.Delete:
		d.Operation = string(r.Operation)
	case admissionv1.Connect:
	}
	return d
}

// Decision is what an answer was, for a log line and for metrics. Kind,
// Operation, Verdict and Reason come from closed sets, whatever was sent.
type Decision struct {
	Kind      string
	Operation string
	Verdict   Verdict
	Reason    Reason

	UID       types.UID
	Namespace string
	Name      string
	DryRun    bool
}
