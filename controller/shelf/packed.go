package shelf

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// packed is an object on the shelf. It is never changed; what is asked most, its key and its version, is at hand. There
// are a hundred thousand of them, so every word counts.
type packed struct {
	sample *sample
	// key is namespace/name. The instance, by our label whose the object is, is nearly always how the name begins, and
	// then the same memory.
	key      string
	instance string
	version  string
	body     string
}

var _ client.Object = &packed{}

// protocol is what objects of Kubernetes itself offer; others are written as JSON.
type protocol interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

func encode(object client.Object) ([]byte, error) {
	if p, ok := object.(protocol); ok {
		return p.Marshal()
	}
	return json.Marshal(object)
}

func decode(text []byte, into client.Object) error {
	if p, ok := into.(protocol); ok {
		return p.Unmarshal(text)
	}
	return json.Unmarshal(text, into)
}

// unpack fills an empty object.
func (p *packed) unpack(into client.Object) error {
	text, err := p.sample.whole(p.body)
	if err == nil {
		err = decode(text, into)
	}
	if err != nil {
		return fmt.Errorf("unpack %s: %w", p.key, err)
	}
	return nil
}

// head is what every object has, without the rest; empty if it cannot be read, which only broken memory brings about.
func (p *packed) head() *metav1.PartialObjectMetadata {
	head := &metav1.PartialObjectMetadata{}
	text, err := p.sample.whole(p.body)
	if err == nil && p.sample.json {
		err = json.Unmarshal(text, head)
	} else if err == nil {
		// Metadata is the first field of every kind, and others are skipped.
		err = head.Unmarshal(text)
	}
	if err != nil {
		return &metav1.PartialObjectMetadata{}
	}
	return head
}

func (p *packed) GetNamespace() string {
	namespace, _, _ := strings.Cut(p.key, "/")
	return namespace
}

func (p *packed) GetName() string {
	_, name, _ := strings.Cut(p.key, "/")
	return name
}

func (p *packed) GetResourceVersion() string         { return p.version }
func (p *packed) GetObjectKind() schema.ObjectKind   { return schema.EmptyObjectKind }
func (p *packed) DeepCopyObject() runtime.Object     { return p }
func (p *packed) GetGenerateName() string            { return p.head().GetGenerateName() }
func (p *packed) GetUID() types.UID                  { return p.head().GetUID() }
func (p *packed) GetGeneration() int64               { return p.head().GetGeneration() }
func (p *packed) GetSelfLink() string                { return p.head().GetSelfLink() }
func (p *packed) GetCreationTimestamp() metav1.Time  { return p.head().GetCreationTimestamp() }
func (p *packed) GetDeletionTimestamp() *metav1.Time { return p.head().GetDeletionTimestamp() }
func (p *packed) GetDeletionGracePeriodSeconds() *int64 {
	return p.head().GetDeletionGracePeriodSeconds()
}
func (p *packed) GetLabels() map[string]string                  { return p.head().GetLabels() }
func (p *packed) GetAnnotations() map[string]string             { return p.head().GetAnnotations() }
func (p *packed) GetFinalizers() []string                       { return p.head().GetFinalizers() }
func (p *packed) GetOwnerReferences() []metav1.OwnerReference   { return p.head().GetOwnerReferences() }
func (p *packed) GetManagedFields() []metav1.ManagedFieldsEntry { return nil }

// What lies on the shelf is not changed there.
func (*packed) SetNamespace(string)                          {}
func (*packed) SetName(string)                               {}
func (*packed) SetGenerateName(string)                       {}
func (*packed) SetUID(types.UID)                             {}
func (*packed) SetResourceVersion(string)                    {}
func (*packed) SetGeneration(int64)                          {}
func (*packed) SetSelfLink(string)                           {}
func (*packed) SetCreationTimestamp(metav1.Time)             {}
func (*packed) SetDeletionTimestamp(*metav1.Time)            {}
func (*packed) SetDeletionGracePeriodSeconds(*int64)         {}
func (*packed) SetLabels(map[string]string)                  {}
func (*packed) SetAnnotations(map[string]string)             {}
func (*packed) SetFinalizers([]string)                       {}
func (*packed) SetOwnerReferences([]metav1.OwnerReference)   {}
func (*packed) SetManagedFields([]metav1.ManagedFieldsEntry) {}
