package admission

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const reviewKind = "AdmissionReview"

// request is the part of an admission request that a judgement needs. Leaving
// the rest undecoded is most of the speed of this webhook.
type request struct {
	UID         types.UID                   `json:"uid"`
	Kind        metav1.GroupVersionKind     `json:"kind"`
	Resource    metav1.GroupVersionResource `json:"resource"`
	SubResource string                      `json:"subResource"`
	Name        string                      `json:"name"`
	Namespace   string                      `json:"namespace"`
	Operation   admissionv1.Operation       `json:"operation"`
	DryRun      bool                        `json:"dryRun"`
	Object      jsontext.Value              `json:"object"`
	OldObject   jsontext.Value              `json:"oldObject"`
}

// fault is a review, or an object in one, that cannot be understood.
type fault struct {
	reason  Reason
	message string
}

func (f *fault) Error() string { return f.message }

// read takes the request out of a review. The decoder is strict for the whole
// body: one JSON value, no name twice in any object, valid UTF-8, bounded
// depth, names compared by case. Two readers of one body that disagree about
// which of two equal names counts are how a check is passed by.
func read(body []byte) (*request, *fault) {
	var review struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Request    *request `json:"request"`
	}
	if len(body) == 0 {
		return nil, &fault{Malformed, "the body is empty: send an AdmissionReview of admission.k8s.io/v1 as JSON"}
	}
	if len(body) > suspicious && crowded(body) {
		return nil, &fault{Malformed, fmt.Sprintf("an object in the body has more than %d members", mostMembers)}
	}
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, &fault{Malformed, "the body cannot be read as an AdmissionReview: " + explain(err)}
	}
	if review.Kind != reviewKind || review.APIVersion == "" {
		return nil, &fault{Malformed, fmt.Sprintf("the body is no AdmissionReview (kind %q, apiVersion %q)", clip(review.Kind, 60), clip(review.APIVersion, 60))}
	}
	if version := admissionv1.SchemeGroupVersion.String(); review.APIVersion != version {
		return nil, &fault{UnsupportedVersion, fmt.Sprintf("AdmissionReview %s is not spoken here: set admissionReviewVersions: [v1] in the ValidatingWebhookConfiguration", clip(review.APIVersion, 60))}
	}
	r := review.Request
	if r == nil {
		return nil, &fault{Malformed, "the AdmissionReview has no request"}
	}
	if r.UID == "" {
		return nil, &fault{Malformed, "the request of the AdmissionReview has no uid to answer to"}
	}
	return r, nil
}

// Looking for a name that comes twice takes memory for every name of an
// object: 3 MB of nothing but names take thirty. No object of ours has so many
// members, so a body of a size that could hold them is looked through first.
const (
	suspicious  = 64 << 10
	mostMembers = 10_000
	// deepest is where the decoder gives up by itself.
	deepest = 10_000
)

// crowded tells whether an object in the text has too many members. What is no
// JSON is left to the decoder, which says why.
func crowded(text []byte) bool {
	var members []int
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{':
			if len(members) == deepest {
				return false
			}
			members = append(members, 0)
		case '}':
			members = members[:max(0, len(members)-1)]
		case ':':
			if len(members) == 0 {
				return false
			}
			if members[len(members)-1]++; members[len(members)-1] > mostMembers {
				return true
			}
		}
	}
	return false
}

// validated are the options for a part of a body that was read strictly
// before.
var validated = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

func absent(value jsontext.Value) bool { return len(value) == 0 || value.Kind() == 'n' }

// explain says in one line what is wrong with a JSON text, and where.
func explain(err error) string {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		where := ""
		if syntax.JSONPointer != "" {
			where = fmt.Sprintf(" within %s", clip(string(syntax.JSONPointer), 100))
		}
		return fmt.Sprintf("%s at byte %d%s", clip(syntax.Err.Error(), 200), syntax.ByteOffset, where)
	}
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		return fmt.Sprintf("the JSON %s at %s does not fit there", kindName(semantic.JSONKind), orRoot(semantic.JSONPointer))
	}
	return clip(err.Error(), 200)
}

func kindName(kind jsontext.Kind) string {
	switch kind {
	case jsontext.KindBeginObject:
		return "object"
	case jsontext.KindBeginArray:
		return "array"
	case 0:
		return "value"
	}
	return kind.String()
}

func orRoot(pointer jsontext.Pointer) string {
	if pointer == "" {
		return "/"
	}
	return clip(string(pointer), 100)
}
