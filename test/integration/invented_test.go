package integration

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/c5c3/openstack-upgrade/controller/metrics"
	"github.com/c5c3/openstack-upgrade/controller/reconcile"
	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/controller/service"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// pantry is a service that nobody has: its type, its facts and its rendering are all there is of it.
type pantry struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Vintage  string                `json:"vintage"`
		Image    v1alpha1.ImageSpec    `json:"image"`
		Database v1alpha1.DatabaseSpec `json:"database"`
	} `json:"spec"`
	Status v1alpha1.ServiceStatus `json:"status,omitempty"`
}

func (p *pantry) DeepCopyObject() runtime.Object {
	fresh := *p
	fresh.ObjectMeta, fresh.Status = *p.ObjectMeta.DeepCopy(), *p.Status.DeepCopy()
	return &fresh
}

func (p *pantry) State() upgrade.State            { return p.Status.State() }
func (p *pantry) SetState(s upgrade.State)        { p.Status.SetState(s) }
func (p *pantry) Record() *v1alpha1.ServiceStatus { return &p.Status }
func (p *pantry) Desired() upgrade.Desired {
	return upgrade.Desired{Release: p.Spec.Vintage, Image: p.Spec.Image.Reference(), Generation: p.Generation}
}

type pantryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []pantry `json:"items"`
}

func (l *pantryList) DeepCopyObject() runtime.Object {
	fresh := *l
	fresh.Items = nil
	for i := range l.Items {
		fresh.Items = append(fresh.Items, *l.Items[i].DeepCopyObject().(*pantry))
	}
	return &fresh
}

var pantryVersion = schema.GroupVersion{Group: "example.org", Version: "v1"}

func pantries() service.Service {
	do := func(words ...string) service.Step { return service.Step{Commands: [][]string{words}} }
	facts := service.Facts{
		ReleaseField: "vintage",
		Sync:         do("pantry", "tidy"),
		Phases:       map[upgrade.Phase]service.Step{upgrade.Expanding: do("pantry", "add"), upgrade.Migrating: do("pantry", "move"), upgrade.Contracting: do("pantry", "drop")},
		Rollout:      []string{render.ComponentAPI},
	}
	return service.Service{
		Kind: "Pantry", Name: "pantry", Resource: "pantries", Facts: facts,
		New: func() service.Object { return &pantry{} },
		Workload: func(object service.Object) render.Workload {
			p := object.(*pantry)
			return render.Workload{
				Namespace: p.Namespace, Name: p.Name, Service: "pantry", Owner: *metav1.NewControllerRef(p, pantryVersion.WithKind("Pantry")),
				Image: p.Spec.Image, Database: p.Spec.Database, Deployment: v1alpha1.DeploymentSpec{Replicas: new(int32(1))},
				ConfigDirs: []string{"/etc/pantry.d/"}, ScratchDirs: []string{"/tmp"},
				Command: []string{"pantry", "serve"}, Port: 8888, ProbePath: "/", Tasks: facts.Tasks(),
			}
		},
	}
}

func TestAnInventedServiceIsFactsAndRenderingAndWalks(t *testing.T) {
	s := open(t)
	facts := pantries().Facts
	require.Empty(t, facts.Faults())
	require.Empty(t, facts.Unwalked())

	s.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "pantries.example.org"},
		"spec": map[string]any{
			"group": "example.org", "scope": "Namespaced", "names": map[string]any{"kind": "Pantry", "listKind": "PantryList", "plural": "pantries", "singular": "pantry"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
		},
	}})
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	scheme.AddKnownTypeWithName(pantryVersion.WithKind("Pantry"), &pantry{})
	scheme.AddKnownTypeWithName(pantryVersion.WithKind("PantryList"), &pantryList{})
	metav1.AddToGroupVersion(scheme, pantryVersion)

	users, err := client.New(s.Config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	p := &pantry{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
	p.Spec.Vintage, p.Spec.Image = "2026.1", v1alpha1.ImageSpec{Repository: "registry.example.org/pantry", Tag: "2026.1"}
	p.Spec.Database.SecretRef = v1alpha1.SecretKeyReference{Name: build.DatabaseSecretRef, Key: "connection"}
	s.Eventually(t, harness.Patience, "the kind to be served", func(ctx context.Context) string {
		err := users.Create(ctx, p.DeepCopyObject().(*pantry))
		if err == nil || apierrors.IsAlreadyExists(err) {
			return ""
		}
		return err.Error()
	})

	mgr, err := ctrl.NewManager(s.Config, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{s.ns: {}}}})
	require.NoError(t, err)
	r := &reconcile.Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("pantry"), Service: pantries(), Now: time.Now,
		Meter: metrics.New(prometheus.NewRegistry(), "test", time.Now())}
	require.NoError(t, r.Setup(mgr, reconcile.Options{Concurrency: 1, MaxBackoff: time.Minute}))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })

	phases := map[string]bool{}
	restsAt := func(release string) {
		t.Helper()
		s.Eventually(t, harness.Patience, "the pantry to rest at "+release, func(ctx context.Context) string {
			if err := users.Get(ctx, s.key(name), p); err != nil {
				return err.Error()
			}
			phases[p.Status.UpgradePhase] = true
			ready := meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady)
			return lacks(ready && p.Status.InstalledRelease == release && p.Status.UpgradePhase == "", "%+v", p.Status)
		})
	}
	restsAt("2026.1")
	require.Equal(t, []string{"pantry tidy"}, commandsOf(s.job(upgrade.Sync)))
	p.Spec.Vintage, p.Spec.Image.Tag = "2026.2", "2026.2"
	require.NoError(t, users.Update(t.Context(), p))
	restsAt("2026.2")
	require.Equal(t, []string{"pantry drop"}, commandsOf(s.job(upgrade.Contract)))
	require.Subset(t, slices.Collect(maps.Keys(phases)), []string{"Expanding", "Migrating"})
}
