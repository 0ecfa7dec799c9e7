package hook

import (
	"encoding/json"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
)

// Installed is the record of a Glance at rest.
var Installed = upgrade.State{Installed: build.DefaultRelease, InstalledImage: build.DefaultRepository + ":" + build.DefaultRelease}

// Large makes an object as large as given, of what real objects carry and nobody judges: configuration, conditions and
// managed fields.
func Large(size int) build.GlanceOption {
	return func(g *v1alpha1.Glance) {
		for _, kind := range []string{v1alpha1.ConditionDatabaseReady, v1alpha1.ConditionDeploymentReady, v1alpha1.ConditionReady} {
			g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAllReady,
				Message: "everything is as it was asked to be", LastTransitionTime: metav1.Unix(1_750_000_000, 0)})
		}
		fields := metav1.NewFieldsV1(`{"f:spec":{".":{},"f:openStackRelease":{},"f:image":{".":{},"f:repository":{},"f:tag":{}},"f:deployment":{".":{},"f:replicas":{}}}}`)
		for i := 0; ; i++ {
			if text, err := json.Marshal(g); err != nil || len(text) >= size-200 {
				return
			}
			section := fmt.Sprintf("section_%d", i)
			build.Config(section, "an_option", "a value of the usual length")(g)
			build.Config(section, "a_third_one", "https://keystone.example.org:5000/v3")(g)
			if i%4 == 0 {
				g.ManagedFields = append(g.ManagedFields, metav1.ManagedFieldsEntry{Manager: fmt.Sprintf("manager-%d", i), Operation: metav1.ManagedFieldsOperationUpdate,
					APIVersion: g.APIVersion, FieldsType: "FieldsV1", FieldsV1: fields})
			}
		}
	}
}

// Review asks about an upgrade of an object, in a body of about the size given: the object before and after fill it.
func Review(t testing.TB, size int) []byte {
	t.Helper()
	const envelope = 900
	before := build.Glance("images", build.In("openstack"), build.Recorded(Installed), Large((size-envelope)/2))
	after := build.Change(before.DeepCopy(), build.Lockstep("2026.2"))
	raw := func(g *v1alpha1.Glance) runtime.RawExtension {
		text, err := json.Marshal(g)
		must(t, err)
		return runtime.RawExtension{Raw: text}
	}
	kind := metav1.GroupVersionKind{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: "Glance"}
	resource := metav1.GroupVersionResource{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Resource: "glances"}
	dryRun := false
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "705ab4f5-6393-11e8-b7cc-42010a800002", Kind: kind, Resource: resource, RequestKind: &kind, RequestResource: &resource,
			Name: "images", Namespace: "openstack", Operation: admissionv1.Update, DryRun: &dryRun,
			UserInfo: authenticationv1.UserInfo{Username: "somebody", Groups: []string{"system:authenticated"}},
			Object:   raw(after), OldObject: raw(before),
			Options: runtime.RawExtension{Raw: []byte(`{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"kubectl-edit"}`)},
		},
	})
	must(t, err)
	return body
}
