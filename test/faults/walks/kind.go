package walks

import (
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/controller/service"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/faults/history"
)

// object is one of either kind.
type object interface {
	client.Object
	service.Object
}

// tables are the facts of the kinds by their short names.
var tables = map[string]service.Service{history.Glance: service.Glance(), history.Keystone: service.Keystone()}

// empty is an object to read into.
func (w Walk) empty() object {
	if w.Service == history.Keystone {
		return &v1alpha1.Keystone{}
	}
	return &v1alpha1.Glance{}
}

// made is the object of a walk before it is created.
func (w Walk) made(namespace, name string) object {
	if w.Service == history.Keystone {
		k := build.Keystone(namespace, name)
		k.Spec.Deployment.Replicas = ptr.To(w.Replicas)
		ask(k, w.first())
		return k
	}
	g := build.Glance(name, build.In(namespace), build.Replicas(w.Replicas))
	ask(g, w.first())
	return g
}

// ask puts a wish into the spec.
func ask(o object, asked wish) {
	switch o := o.(type) {
	case *v1alpha1.Glance:
		o.Spec.OpenStackRelease, o.Spec.Image = asked.release, asked.image
	case *v1alpha1.Keystone:
		o.Spec.Image = asked.image
	}
}

// asked is the wish in the spec.
func asked(o object) wish {
	switch o := o.(type) {
	case *v1alpha1.Glance:
		return wish{release: o.Spec.OpenStackRelease, image: o.Spec.Image}
	case *v1alpha1.Keystone:
		return wish{image: o.Spec.Image}
	}
	return wish{}
}

// scale asks for another number of API pods.
func scale(o object, replicas int32) {
	switch o := o.(type) {
	case *v1alpha1.Glance:
		o.Spec.Deployment.Replicas = &replicas
	case *v1alpha1.Keystone:
		o.Spec.Deployment.Replicas = &replicas
	}
}
