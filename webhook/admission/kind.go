package admission

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// Kind is one kind of object that is judged: its names, and how to read one.
type Kind struct {
	metav1.GroupVersionKind
	// Resource is the plural of the API's paths; Singular is what a person
	// types to kubectl.
	Resource string
	Singular string
	// ReleaseField is the field of the spec that names the release, empty where
	// the tag of the image does.
	ReleaseField string
	// Decode reads an object out of JSON that is known to be well formed.
	Decode func(raw []byte) (Object, error)
}

// Object is what the law and an answer need to know of an object of any kind.
type Object struct {
	APIVersion string
	Kind       string
	Name       string
	// GenerateName is what the API server makes a name of where none is given.
	GenerateName string
	// Deleting is set when the object has been deleted and only waits for its
	// finalizers.
	Deleting bool
	State    upgrade.State
	Desired  upgrade.Desired
	// Notes are the kind's own warnings about the wish. One is said when it
	// begins to apply, not again with every later edit.
	Notes []Note
}

// Note is a warning of a kind's own about one field.
type Note struct {
	Path    string
	Reason  Reason
	Message string
	// Patch is the merge patch that does what Purpose says.
	Purpose string
	Patch   string
}

// Kinds is the table.
var Kinds = []Kind{glance, keystone}

var glance = Kind{
	GroupVersionKind: metav1.GroupVersionKind{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: "Glance"},
	Resource:         "glances",
	Singular:         "glance",
	ReleaseField:     "openStackRelease",
	Decode: func(raw []byte) (Object, error) {
		var g struct {
			common
			Spec struct {
				wish
				ExtraConfig unread `json:"extraConfig"`
				APIServer   struct {
					Workers *int32 `json:"workers"`
					UWSGI   struct {
						Processes int32 `json:"processes"`
					} `json:"uwsgi"`
				} `json:"apiServer"`
			} `json:"spec"`
		}
		if err := json.Unmarshal(raw, &g, validated); err != nil {
			return Object{}, err
		}
		object := g.object(g.Spec.wish)
		if g.Spec.APIServer.Workers != nil {
			object.Notes = append(object.Notes, workersAreDeprecated(*g.Spec.APIServer.Workers, g.Spec.APIServer.UWSGI.Processes))
		}
		return object, nil
	},
}

var keystone = Kind{
	GroupVersionKind: metav1.GroupVersionKind{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: "Keystone"},
	Resource:         "keystones",
	Singular:         "keystone",
	Decode: func(raw []byte) (Object, error) {
		var k struct {
			common
			Spec struct {
				wish
				ExtraConfig unread `json:"extraConfig"`
			} `json:"spec"`
		}
		if err := json.Unmarshal(raw, &k, validated); err != nil {
			return Object{}, err
		}
		return k.tagged(k.Spec.wish), nil
	},
}

// workersAreDeprecated asks for as many processes as there were to be workers,
// unless their number is given, or cannot be.
func workersAreDeprecated(workers, processes int32) Note {
	note := Note{Path: "spec.apiServer.workers", Reason: DeprecatedField, Purpose: "remove it",
		Message: "it has no effect on any release; spec.apiServer.uwsgi.processes has",
		Patch:   `{"spec":{"apiServer":{"workers":null}}}`}
	if processes == 0 && workers >= 1 && workers <= 512 {
		note.Purpose = "use that instead"
		note.Patch = fmt.Sprintf(`{"spec":{"apiServer":{"uwsgi":{"processes":%d},"workers":null}}}`, workers)
	}
	return note
}

// common is what every kind has outside its spec, and wish what every spec
// has, both cut down to what is judged.
type common struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name              string  `json:"name"`
		GenerateName      string  `json:"generateName"`
		Generation        int64   `json:"generation"`
		DeletionTimestamp *string `json:"deletionTimestamp"`
		ManagedFields     unread  `json:"managedFields"`
	} `json:"metadata"`
	Status struct {
		v1alpha1.ServiceStatus
		Conditions unread `json:"conditions"`
	} `json:"status"`
}

// unread is a large part that nobody judges. It is passed over as a whole,
// which takes half the time of passing over each of its tokens.
type unread struct{}

// UnmarshalJSONFrom passes over the value.
func (*unread) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	_, err := from.ReadValue()
	return err
}

type wish struct {
	OpenStackRelease string `json:"openStackRelease"`
	Image            struct {
		Repository string `json:"repository"`
		Tag        string `json:"tag"`
		Digest     string `json:"digest"`
	} `json:"image"`
}

func (c *common) object(w wish) Object {
	image := v1alpha1.ImageSpec{Repository: w.Image.Repository, Tag: w.Image.Tag, Digest: w.Image.Digest}
	return Object{
		APIVersion: c.APIVersion, Kind: c.Kind, Name: c.Metadata.Name, GenerateName: c.Metadata.GenerateName,
		Deleting: c.Metadata.DeletionTimestamp != nil,
		State:    c.Status.State(),
		Desired:  upgrade.Desired{Release: w.OpenStackRelease, Image: image.Reference(), Generation: c.Metadata.Generation},
	}
}

// tagged is object for a kind whose image tag names the release.
func (c *common) tagged(w wish) Object {
	object := c.object(w)
	object.State = c.Status.TaggedState()
	object.Desired = upgrade.Tagged(object.State, object.Desired.Image, c.Metadata.Generation)
	return object
}

// object reads an object of the kind, or says what is wrong with it.
func (k *Kind) object(raw []byte, which string) (Object, *fault) {
	if absent(raw) {
		return Object{}, &fault{Undecodable, fmt.Sprintf("the request has no %s to judge", which)}
	}
	object, err := k.Decode(raw)
	if err != nil {
		return Object{}, &fault{Undecodable, fmt.Sprintf("the %s cannot be read as a %s: %s", which, k.Kind, explain(err))}
	}
	if object.Kind != k.Kind || object.APIVersion != k.apiVersion() {
		return Object{}, &fault{Undecodable, fmt.Sprintf("the %s is a %q of %q, the request is about a %s of %s",
			which, clip(object.Kind, 60), clip(object.APIVersion, 60), k.Kind, k.apiVersion())}
	}
	return object, nil
}

func (k *Kind) apiVersion() string { return k.Group + "/" + k.Version }

// deleting tells whether an object that cannot be read as a whole is being
// deleted: it must be possible to finish that.
func deleting(raw []byte) bool {
	var object struct {
		Metadata struct {
			DeletionTimestamp *string `json:"deletionTimestamp"`
		} `json:"metadata"`
	}
	return !absent(raw) && json.Unmarshal(raw, &object, validated) == nil && object.Metadata.DeletionTimestamp != nil
}
