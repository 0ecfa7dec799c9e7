// Package service holds what the machine must know of each OpenStack service:
// one file of facts for each, turned into the neutral form that the rest of
// the controller works with. Nothing outside this package asks which service
// it deals with.
package service

import (
	"encoding/json"
	"fmt"
	"strings"

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
	// State is what the status records, and Desired what the spec asks for.
	State() upgrade.State
	Desired() upgrade.Desired
	// SetState records a state in the status.
	SetState(upgrade.State)
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
	// Facts are what is known of its schema work.
	Facts Facts
	// New makes an empty object of the kind.
	New func() Object
	// Workload is the object in neutral form.
	Workload func(Object) render.Workload
}

// All lists the services that this controller upgrades.
func All() []Service {
	return []Service{Glance(), Keystone()}
}

// Wish is what an object asks for, with the facts of its service.
func (s Service) Wish(object Object) upgrade.Desired {
	desired := object.Desired()
	desired.Facts = s.Facts.Upgrade
	return desired
}

// Command is what a person types to ask for something else.
func (s Service) Command(object Object, remedy upgrade.Remedy) string {
	now := object.Desired().Image
	image := map[string]any{}
	for _, part := range []struct{ name, now, then string }{
		{"repository", now.Repository, remedy.Image.Repository}, {"tag", now.Tag, remedy.Image.Tag}, {"digest", now.Digest, remedy.Image.Digest},
	} {
		switch {
		case part.then == "" && part.now != "":
			image[part.name] = nil
		case part.then != part.now:
			image[part.name] = part.then
		}
	}
	spec := map[string]any{"image": image}
	if s.Facts.ReleaseField != "" {
		spec[s.Facts.ReleaseField] = remedy.Release
	}
	return s.patch(object, "", map[string]any{"spec": spec})
}

// Forget is what a person types after restoring a backup that was made before
// the schema was expanded.
func (s Service) Forget(object Object) string {
	return s.patch(object, " --subresource=status", map[string]any{"status": map[string]any{"expandedRelease": nil}})
}

func (s Service) patch(object Object, where string, change map[string]any) string {
	text, err := json.Marshal(change)
	if err != nil {
		return "" // texts and nothing else marshal
	}
	quoted := strings.ReplaceAll(string(text), "'", `'\''`)
	return fmt.Sprintf("kubectl patch %s %s -n %s%s --type=merge -p '%s'", s.Name, object.GetName(), object.GetNamespace(), where, quoted)
}

// owner makes the object the controller of its children, so that they go when
// it goes.
func owner(object metav1.Object, kind string) metav1.OwnerReference {
	return *metav1.NewControllerRef(object, v1alpha1.GroupVersion.WithKind(kind))
}
