package admission_test

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	kjson "sigs.k8s.io/json"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/rows"
	"github.com/c5c3/openstack-upgrade/webhook/admission"
)

// FuzzReview sends anything. Whatever it is, there is no panic, and what is
// admitted is lawful for a second reader: the decoder of the API machinery,
// with the whole types.
func FuzzReview(f *testing.F) {
	for _, r := range rows.All() {
		request := func() *admissionv1.AdmissionRequest {
			if r.Stored != nil {
				return update(f, r.Stored, r.Wish)
			}
			return creation(f, r.Wish)
		}()
		if body := review(f, request); len(body) < 4096 {
			f.Add([]byte(body))
		}
	}
	good := review(f, lawful(f))
	for _, body := range []string{"", "{}", "null", "[]", good + "{}", strings.Repeat("[", 1000),
		strings.Replace(good, `"operation":"UPDATE"`, `"operation":"UPDATE","operation":"DELETE"`, 1),
		strings.Replace(good, `"operation"`, `"Operation":"DELETE","operation"`, 1),
		strings.Replace(good, `"oldObject":{`, `"oldObject":{"metadata":{"deletionTimestamp":null},`, 1)} {
		f.Add([]byte(body))
	}
	judge := admission.New(admission.Policy{}, admission.Kinds...)
	f.Fuzz(func(t *testing.T, body []byte) {
		answer, decision, err := judge.Review(body)
		if err != nil {
			if answer != nil || decision.Verdict != admission.Failed || strings.Contains(err.Error(), "\n") || len(err.Error()) > 1000 {
				t.Fatalf("a body that is refused gets one short line: %v %+v", err, decision)
			}
			return
		}
		var second admissionv1.AdmissionReview
		if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &second); err != nil {
			return // a field that is not judged is of another type
		}
		if second.Request == nil || answer.Response.UID != second.Request.UID {
			t.Fatalf("the answer is to %q, asked was %+v", answer.Response.UID, second.Request)
		}
		if answer.Response.Allowed != (decision.Verdict == admission.Allowed) {
			t.Fatalf("answer and decision differ: %+v", decision)
		}
		if answer.Response.Allowed && !lawfully(second.Request) {
			t.Fatalf("admitted as %s: %s", decision.Reason, body)
		}
	})
}

// lawfully judges an admitted request the slow way.
func lawfully(r *admissionv1.AdmissionRequest) bool {
	if r.Operation == admissionv1.Delete || r.SubResource == "status" {
		return true
	}
	var old, wish v1alpha1.Glance
	if kjson.UnmarshalCaseSensitivePreserveInts(r.Object.Raw, &wish) != nil {
		return true // a field that is not judged is of another type
	}
	switch r.Operation {
	case admissionv1.Create:
		return len(wish.Name) <= v1alpha1.MaxNameLength && upgrade.Check(upgrade.State{}, wish.Desired()) == nil
	case admissionv1.Update:
		if kjson.UnmarshalCaseSensitivePreserveInts(r.OldObject.Raw, &old) != nil || old.DeletionTimestamp != nil {
			return true
		}
		before, after := old.Desired(), wish.Desired()
		if before.Release == after.Release && before.Image == after.Image {
			return true
		}
		found := upgrade.Check(old.Status.State(), after)
		return found == nil || found.Record && before.Release == after.Release
	case admissionv1.Delete, admissionv1.Connect:
	}
	return false
}
