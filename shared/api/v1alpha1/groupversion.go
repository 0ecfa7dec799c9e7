// Package v1alpha1 is the API of openstack-upgrade: the kinds that users
// write, and the bridge from them to the planner (Status ⇄ State, Spec →
// Desired). It holds no behaviour of its own.
//
// +kubebuilder:object:generate=true
// +groupName=openstack.c5c3.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "openstack.c5c3.io", Version: "v1alpha1"}

// SchemeBuilder registers the kinds; AddToScheme applies it.
var (
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	AddToScheme   = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Glance{}, &GlanceList{}, &Keystone{}, &KeystoneList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
