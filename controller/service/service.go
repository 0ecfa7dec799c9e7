// Package service holds what the machine must know of each OpenStack service:
// one file of facts for each, turned into the neutral form that the rest of
// the controller works with. Nothing outside this package asks which service
// it deals with.
package service

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// Object is what every kind of this API offers to the machine.
type Object interface {
	metav1.Object
	runtime.Object
	// Desired is what the spec asks for.
	Desired() upgrade.Desired
	// Record is the status as it can be read and written.
	Record() *v1alpha1.ServiceStatus
}

// Service is one kind, as the machine sees it.
type Service struct {
	// Kind is the kind of the API; Name its short name, a label value.
	Kind string
	Name string
	// Resource is the plural that RBAC and kubectl use.
	Resource string
	// New makes an empty object of the kind.
	New func() Object
	// Workload is the object in neutral form.
	Workload func(Object) render.Workload
}

// All lists the services that this controller upgrades.
func All() []Service {
	return []Service{Glance()}
}

// owner makes the object the controller of its children, so that they go when
// it goes.
func owner(object metav1.Object, kind string) metav1.OwnerReference {
	return *metav1.NewControllerRef(object, v1alpha1.GroupVersion.WithKind(kind))
}
