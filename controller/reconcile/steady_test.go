package reconcile

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/c5c3/openstack-upgrade/controller/service"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
)

// errCall is what every call past the cache ends in. The fake client stands
// for the cache alone: it answers reads, and knows no controllers.
var errCall = errors.New("a call to the API server")

// kinds are those that the controller works with.
func kinds(tb testing.TB) *runtime.Scheme {
	tb.Helper()
	scheme := runtime.NewScheme()
	require.NoError(tb, errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
	return scheme
}

type silent struct{}

func (silent) Phase(string, string, string, upgrade.Phase, time.Time)              {}
func (silent) PhaseEnded(string, upgrade.Phase, time.Duration)                     {}
func (silent) Ended(string, string)                                                {}
func (silent) Job(string, string, string, upgrade.Task, string, string, time.Time) {}
func (silent) Gone(string, string, string)                                         {}

// steady gives a reconciler and the request for an object that is installed
// and at rest; writes are counted once frozen is set.
func steady(tb testing.TB) (r *Reconciler, request ctrl.Request, freeze func()) {
	tb.Helper()
	scheme := kinds(tb)
	glance := build.Glance("images", build.In("openstack"))
	glance.UID, glance.Generation = "a-uid", 1
	frozen := false
	refuse := func(format error) error {
		if frozen {
			return format
		}
		return nil
	}
	cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(glance).WithStatusSubresource(glance).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return errors.Join(refuse(errCall), c.Create(ctx, object, options...))
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			return errors.Join(refuse(errCall), c.Update(ctx, object, options...))
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, object client.Object, options ...client.SubResourceUpdateOption) error {
			return errors.Join(refuse(errCall), c.SubResource(sub).Update(ctx, object, options...))
		},
	}).Build()
	past := interceptor.NewClient(cached, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			return errors.Join(refuse(errCall), c.Get(ctx, key, object, options...))
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return errors.Join(refuse(errCall), c.List(ctx, list, options...))
		},
	})
	now := time.Unix(1_000_000, 0)
	r = &Reconciler{Client: cached, Live: past, Events: events.NewFakeRecorder(100), Service: service.Glance(), Meter: silent{}, Now: func() time.Time { return now }}
	request = ctrl.Request{NamespacedName: client.ObjectKeyFromObject(glance)}
	ctx := context.Background()
	for range 5 {
		_, err := r.Reconcile(ctx, request)
		require.NoError(tb, err)
		now = now.Add(time.Hour)
		var job batchv1.Job
		if cached.Get(ctx, client.ObjectKey{Namespace: "openstack", Name: "images-db-sync"}, &job) == nil {
			job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
			require.NoError(tb, cached.Status().Update(ctx, &job))
		}
		var deployment appsv1.Deployment
		if cached.Get(ctx, client.ObjectKey{Namespace: "openstack", Name: "images"}, &deployment) == nil {
			deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3, ReadyReplicas: 3}
			require.NoError(tb, cached.Status().Update(ctx, &deployment))
		}
	}
	var rested v1alpha1.Glance
	require.NoError(tb, cached.Get(ctx, request.NamespacedName, &rested))
	require.Equal(tb, "2026.1", rested.Status.InstalledRelease, "%+v", rested.Status)
	return r, request, func() { frozen = true }
}

func TestALookAtASteadyObjectCallsNobody(t *testing.T) {
	r, request, freeze := steady(t)
	freeze()
	result, err := r.Reconcile(context.Background(), request)
	require.NoError(t, err)
	require.Zero(t, result.RequeueAfter, "nothing is polled")
}

func BenchmarkReconcileSteady(b *testing.B) {
	r, request, freeze := steady(b)
	freeze()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Reconcile(context.Background(), request); err != nil {
			b.Fatal(err)
		}
	}
}
