package stage

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
)

// Object is one of a service's kind, whichever that is.
type Object interface {
	client.Object
	Record() *v1alpha1.ServiceStatus
}

// Kind is a service as the stage knows it.
type Kind struct {
	// Name is its kind, Resource what kubectl calls many of it, Repository what its images are called.
	Name       string
	Resource   string
	Repository string
	// HeadsBefore and HeadsAfter are what the migrations of the older and of the newer release leave in the database.
	HeadsBefore []string
	HeadsAfter  []string

	empty func() Object
	list  func() client.ObjectList
}

// Image is the reference of its image with a tag.
func (k Kind) Image(tag string) string { return k.Repository + ":" + tag }

// Glances are what a stage looks at unless it is told otherwise.
var Glances = Kind{
	Name: "Glance", Resource: "glances", Repository: "localhost/glance",
	HeadsBefore: []string{"wallaby_contract01"}, HeadsAfter: []string{"2024_1_contract01"},
	empty: func() Object { return &v1alpha1.Glance{} },
	list:  func() client.ObjectList { return &v1alpha1.GlanceList{} },
}

// Keystones are the other kind. Its tags name the releases.
var Keystones = Kind{
	Name: "Keystone", Resource: "keystones", Repository: "localhost/keystone",
	HeadsBefore: []string{"29e87d24a316", "e25ffa003242"}, HeadsAfter: []string{"47147121", "c88cdce8f248"},
	empty: func() Object { return &v1alpha1.Keystone{} },
	list:  func() client.ObjectList { return &v1alpha1.KeystoneList{} },
}

// Of is the same stage, looking at objects of another kind.
func (s *Stage) Of(kind Kind) *Stage {
	other := *s
	other.kind = kind
	return &other
}
