package story

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/controller/service"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/faults/history"
)

// Object is an object of any kind.
type Object interface {
	client.Object
	service.Object
}

// Kind is how stories speak of one service.
type Kind struct {
	service.Service
	repository string
	made       func(namespace, name string) Object
	ask        func(o Object, release string)
}

// The kinds.
var (
	Glance = Kind{Service: service.Glance(), repository: build.DefaultRepository,
		made: func(namespace, name string) Object {
			return build.Glance(name, build.In(namespace), build.Replicas(1))
		},
		ask: func(o Object, release string) { build.Change(o.(*v1alpha1.Glance), build.Lockstep(release)) },
	}
	Keystone = Kind{Service: service.Keystone(), repository: build.KeystoneRepository,
		made: func(namespace, name string) Object { return build.Keystone(namespace, name) },
		ask: func(o Object, release string) {
			k := o.(*v1alpha1.Keystone)
			k.Spec.Image.Tag, k.Spec.Image.Digest = release, ""
		},
	}
	Kinds = []Kind{Glance, Keystone}
)

// Empty is an object to read into.
func (k Kind) Empty() Object { return k.New().(Object) }

// Image is that of a release.
func (k Kind) Image(release string) string { return k.repository + ":" + release }

func (k Kind) subject(namespace, name string) history.Subject {
	return history.Subject{Namespace: namespace, Service: k.Name, Name: name}
}
