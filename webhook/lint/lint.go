package lint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/image"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/webhook/admission"
)

// Options say as what the manifests are judged.
type Options struct {
	// Namespace is where objects go that name none.
	Namespace string
	// Installed is the release that the objects are at rest at; empty when
	// they are new. InstalledImage is what runs there; its zero value stands
	// for the manifest's repository with the release as the tag.
	Installed      string
	InstalledImage image.Reference
}

// Linter judges one object after the other.
type Linter struct {
	options Options
	judge   *admission.Judge
	kinds   []admission.Kind
	floors  map[string]*floor
}

// New makes a linter of the webhook's own kinds.
func New(o Options) (*Linter, error) {
	floors, err := readFloors()
	if err != nil {
		return nil, err
	}
	l := &Linter{options: o, judge: admission.New(admission.Policy{}, admission.Kinds...), kinds: admission.Kinds, floors: floors}
	for _, kind := range l.kinds {
		if l.floors[kind.Kind] == nil {
			return nil, fmt.Errorf("the CRD of %s is not part of this program", kind.Kind)
		}
	}
	return l, nil
}

// Finding is one thing that is wrong with an object.
type Finding struct {
	Field    string           `json:"field"`
	Reason   admission.Reason `json:"reason"`
	Message  string           `json:"message"`
	Commands []string         `json:"commands,omitempty"`
}

// Reasons that are the floor's and not the law's.
const (
	UnknownField   admission.Reason = "UnknownField"
	InvalidField   admission.Reason = "InvalidField"
	UnknownKind    admission.Reason = "UnknownKind"
	UnknownVersion admission.Reason = "UnknownVersion"
)

// Verdict is what becomes of one object.
type Verdict string

// The verdicts.
const (
	Admitted Verdict = "admitted"
	Refused  Verdict = "refused"
)

// Judgement is the answer about one object.
type Judgement struct {
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Verdict   Verdict   `json:"verdict"`
	Findings  []Finding `json:"findings,omitempty"`
	Warnings  []string  `json:"warnings,omitempty"`
}

// Judge answers about one object in JSON; false when it is of a kind that is
// not judged.
func (l *Linter) Judge(raw []byte) (Judgement, bool, error) {
	object := read(raw)
	group, version, _ := strings.Cut(object.APIVersion, "/")
	at := slices.IndexFunc(l.kinds, func(k admission.Kind) bool { return strings.EqualFold(k.Kind, object.Kind) && k.Group == group })
	if at < 0 {
		return l.unknown(object, group)
	}
	kind := l.kinds[at]
	j := Judgement{Kind: kind.Kind, Namespace: object.Namespace, Name: object.Name, Verdict: Refused}
	if j.Namespace == "" {
		j.Namespace = l.options.Namespace
	}
	if object.Kind != kind.Kind {
		j.Findings = []Finding{{Field: "kind", Reason: UnknownKind, Message: fmt.Sprintf("%s: there is no kind %q: write %s", UnknownKind, object.Kind, kind.Kind)}}
		return j, true, nil
	}
	if version != kind.Version {
		j.Findings = []Finding{{Field: "apiVersion", Reason: UnknownVersion,
			Message: fmt.Sprintf("%s: %s has no version %q: write %s/%s", UnknownVersion, kind.Kind, version, kind.Group, kind.Version)}}
		return j, true, nil
	}
	floor, err := l.floors[kind.Kind].refuses(raw)
	if err != nil {
		return j, true, err
	}
	law, warnings, err := l.law(kind, object, raw, len(floor) > 0)
	if err != nil {
		return j, true, err
	}
	j.Findings, j.Warnings = law, warnings
	for _, finding := range floor {
		// Where both speak, the law says what to do about it.
		if !slices.ContainsFunc(law, func(f Finding) bool { return f.Field == finding.Field }) {
			j.Findings = append(j.Findings, finding)
		}
	}
	if len(j.Findings) == 0 {
		j.Verdict = Admitted
	}
	return j, true, nil
}

// unknown refuses a kind that a group of ours does not have; those of other
// groups are not judged.
func (l *Linter) unknown(object *manifest, group string) (Judgement, bool, error) {
	var known []string
	for _, kind := range l.kinds {
		if kind.Group == group {
			known = append(known, kind.Kind)
		}
	}
	if len(known) == 0 {
		return Judgement{}, false, nil
	}
	return Judgement{Kind: object.Kind, Namespace: cmp.Or(object.Namespace, l.options.Namespace), Name: object.Name, Verdict: Refused,
		Findings: []Finding{{Field: "kind", Reason: UnknownKind,
			Message: fmt.Sprintf("%s: there is no kind %q in %s: write %s", UnknownKind, object.Kind, group, strings.Join(known, " or "))}}}, true, nil
}

// manifest is what a review repeats of an object, as far as it has it: what has
// another type counts as absent.
type manifest struct {
	APIVersion string
	Kind       string
	Name       string
	Namespace  string
	Repository string
}

func read(raw []byte) *manifest {
	var anything any
	// What is no JSON has been refused before, what is no object is of no kind.
	_ = json.Unmarshal(raw, &anything)
	text := func(path ...string) string {
		value := anything
		for _, name := range path {
			fields, _ := value.(map[string]any)
			value = fields[name]
		}
		found, _ := value.(string)
		return found
	}
	return &manifest{APIVersion: text("apiVersion"), Kind: text("kind"), Name: text("metadata", "name"), Namespace: text("metadata", "namespace"),
		Repository: text("spec", "image", "repository")}
}

// law asks the webhook's judge. An object that the judge cannot read is said
// to be so, unless the floor has said it better.
func (l *Linter) law(kind admission.Kind, object *manifest, raw []byte, explained bool) ([]Finding, []string, error) {
	request := &admissionv1.AdmissionRequest{
		UID: "lint", Operation: admissionv1.Create, Kind: kind.GroupVersionKind,
		Resource: metav1.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: kind.Resource},
		Name:     object.Name, Namespace: object.Namespace,
	}
	if request.Namespace == "" {
		request.Namespace = l.options.Namespace
	}
	request.Object.Raw = raw
	if l.options.Installed != "" {
		request.Operation = admissionv1.Update
		request.OldObject.Raw = l.atRest(kind, object)
		request.Object.Raw = l.recorded(object, raw)
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}, Request: request,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("write review: %w", err)
	}
	answer, decision, err := l.judge.Review(body)
	if err != nil {
		return nil, nil, fmt.Errorf("judge: %w", err)
	}
	response := answer.Response
	switch {
	case response.Allowed:
		return nil, response.Warnings, nil
	case response.Result.Details == nil && explained:
		return nil, nil, nil
	case response.Result.Details == nil:
		return []Finding{{Reason: decision.Reason, Message: string(decision.Reason) + ": " + response.Result.Message}}, response.Warnings, nil
	}
	var findings []Finding
	for _, cause := range response.Result.Details.Causes {
		reason, _, _ := strings.Cut(cause.Message, ": ")
		findings = append(findings, Finding{Field: cause.Field, Reason: admission.Reason(reason), Message: cause.Message, Commands: commands(cause.Message)})
	}
	return findings, response.Warnings, nil
}

// commands are the lines of a message that can be typed.
func commands(message string) []string {
	var all []string
	for line := range strings.Lines(message) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "kubectl ") {
			all = append(all, line)
		}
	}
	return all
}

// recorded is the edit as the API server hands it on: with the status that is
// stored, whatever the manifest has there.
func (l *Linter) recorded(object *manifest, raw []byte) []byte {
	var edit map[string]json.RawMessage
	if err := json.Unmarshal(raw, &edit); err != nil {
		return raw // which the judge will say
	}
	status, err := json.Marshal(l.status(l.runs(object)))
	if err != nil {
		panic(fmt.Errorf("write a status made of texts: %w", err))
	}
	edit["status"] = status
	text, err := json.Marshal(edit)
	if err != nil {
		return raw
	}
	return text
}

// runs is the image that the object is at rest with.
func (l *Linter) runs(object *manifest) image.Reference {
	if l.options.InstalledImage == (image.Reference{}) {
		return image.Reference{Repository: object.Repository, Tag: l.options.Installed}
	}
	return l.options.InstalledImage
}

func (l *Linter) status(runs image.Reference) v1alpha1.ServiceStatus {
	var status v1alpha1.ServiceStatus
	status.SetState(upgrade.State{Installed: l.options.release(), InstalledImage: runs.String()})
	return status
}

// release is the release that is installed.
func (o Options) release() string {
	if named, ok := image.ReleaseOfTag(o.Installed); ok {
		return named.String()
	}
	return o.Installed
}

// atRest is the object as it would be stored before the edit.
func (l *Linter) atRest(kind admission.Kind, object *manifest) []byte {
	runs := l.runs(object)
	text, err := json.Marshal(map[string]any{
		"apiVersion": object.APIVersion, "kind": kind.Kind,
		"metadata": map[string]any{"name": object.Name, "namespace": object.Namespace},
		"spec": map[string]any{"openStackRelease": l.options.release(),
			"image": map[string]any{"repository": runs.Repository, "tag": runs.Tag, "digest": runs.Digest}},
		"status": l.status(runs),
	})
	if err != nil {
		panic(fmt.Errorf("write an object made of texts: %w", err))
	}
	return text
}
