package admission

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/image"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// path is where a field of a wish lies in the kind's spec.
func (k *Kind) path(field upgrade.Field) string {
	if field == upgrade.FieldRelease && k.ReleaseField != "" {
		return "spec." + k.ReleaseField
	}
	return "spec.image.tag"
}

// violation is one thing that is wrong with a request.
type violation struct {
	reason   Reason
	path     string
	message  string
	remedies []upgrade.Remedy
	record   bool
}

// violations lists everything that is wrong with a wish; before is the stored
// one, nil when there is none.
func (j *Judge) violations(kind *Kind, s upgrade.State, before *upgrade.Desired, d upgrade.Desired) []violation {
	var all []violation
	for _, found := range upgrade.Violations(s, d) {
		v := violation{reason: found.Reason, path: kind.path(found.Field), message: found.Message, remedies: found.Remedies, record: found.Record}
		if len(v.remedies) == 0 && before != nil {
			v.remedies = []upgrade.Remedy{{Purpose: "keep what is stored", Release: before.Release, Image: before.Image}}
		}
		all = append(all, v)
	}
	if late := j.abortsTooLate(kind, s, before, d); late != nil {
		all = append(all, *late)
	}
	return all
}

// abortsTooLate refuses, where that is the policy, the edit that begins an
// abort while contract runs; not the ones that follow an abort asked for
// before.
func (j *Judge) abortsTooLate(kind *Kind, s upgrade.State, before *upgrade.Desired, d upgrade.Desired) *violation {
	if !j.policy.RejectAbortWhileContracting || before == nil || !upgrade.AbortsContract(s, d) || upgrade.Aborts(s, *before) {
		return nil
	}
	remedy := upgrade.Remedy{Purpose: "go on to " + s.Target, Release: s.Target, Image: before.Image}
	if pinned, err := image.Parse(s.TargetImage); err == nil {
		remedy.Image = pinned
	}
	return &violation{reason: AbortWhileContracting, path: kind.path(upgrade.FieldRelease),
		message: fmt.Sprintf("%s → %s would abort while contract runs: it may already have dropped columns that %s reads, and this cluster refuses that; let it finish",
			s.Target, s.Installed, s.Installed),
		remedies: []upgrade.Remedy{remedy}}
}

const namePath = "metadata.name"

var namePattern = regexp.MustCompile(v1alpha1.NamePattern)

// unusableName lists why nothing could be named after an object. That there is
// no name at all is for the API server to say.
func unusableName(name string) []violation {
	var all []violation
	if len(name) > v1alpha1.MaxNameLength {
		all = append(all, violation{reason: NameTooLong, path: namePath,
			message: fmt.Sprintf("the name has %d characters, %d are possible: the Jobs of an upgrade are named after it (%s)",
				len(name), v1alpha1.MaxNameLength, v1alpha1.JobName("…", upgrade.Contract))})
	}
	if name != "" && !namePattern.MatchString(name) {
		all = append(all, violation{reason: NameInvalid, path: namePath,
			message: fmt.Sprintf("%.63q must begin with a letter and hold letters, digits and dashes alone: the Service is named after it", name)})
	}
	return all
}

// generated is a name as the API server makes one: what was given, cut, and
// five characters of its own.
func generated(from string) string {
	const longest, ending = 63, "xxxxx"
	if from == "" {
		return ""
	}
	return from[:min(len(from), longest-len(ending))] + ending
}

// usable is a name that would do instead.
func usable(name string) string {
	name = strings.TrimLeft(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name)), "-")
	if name == "" || name[0] <= '9' {
		name = "x" + name
	}
	return strings.TrimRight(name[:min(len(name), v1alpha1.MaxNameLength)], "-")
}

// onlyName is whether nothing but the name is wrong.
func onlyName(violations []violation) bool {
	return !slices.ContainsFunc(violations, func(v violation) bool { return v.path != namePath })
}

// deny answers with every violation. kubectl shows the causes of an Invalid
// status and not its message, other clients the message and not the causes:
// both carry the whole text.
func deny(s subject, violations []violation) (*admissionv1.AdmissionResponse, Verdict, Reason) {
	status := &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Details: &metav1.StatusDetails{Name: s.name, Group: s.kind.Group, Kind: s.kind.Kind},
	}
	said := map[string]bool{}
	var messages []string
	for _, v := range violations {
		message := string(v.reason) + ": " + v.message
		for _, advice := range s.advice(v, onlyName(violations)) {
			if !said[advice] {
				said[advice] = true
				message += "\n" + advice
			}
		}
		messages = append(messages, message)
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: v.path, Message: message})
	}
	status.Message = strings.Join(messages, "\n")
	return &admissionv1.AdmissionResponse{Result: status}, Denied, violations[0].reason
}
