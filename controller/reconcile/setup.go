package reconcile

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
)

// firstRetry is the first pause after an error; each one doubles.
const firstRetry = 200 * time.Millisecond

// Options tune the queue of one kind.
type Options struct {
	// Concurrency is how many objects are looked at side by side.
	Concurrency int
	// MaxBackoff is the longest pause between two looks after failures.
	MaxBackoff time.Duration
}

// Setup puts the reconciler to work in a manager. Everything it ever waits
// for is watched, status changes included.
func (r *Reconciler) Setup(mgr ctrl.Manager, options Options) error {
	if r.Now == nil {
		r.Now = time.Now
	}
	r.sample = r.Service.New()
	warm := true
	// Runs where, and from when on, this replica leads.
	if err := mgr.Add(manager.RunnableFunc(func(context.Context) error { r.starts.note(r.Now()); return nil })); err != nil {
		return fmt.Errorf("set up %s: %w", r.Service.Kind, err)
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named(r.Service.Name).
		For(r.Service.New()).
		Watches(r.Service.New(), r.unsettledFirst()).
		Owns(&batchv1.Job{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Owns(&corev1.ConfigMap{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.ofPod)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: options.Concurrency,
			CacheSyncTimeout:        time.Minute,
			// A replica that waits has its queue filled: what it finds is told to it before it leads.
			EnableWarmup: &warm,
			RateLimiter:  workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, options.MaxBackoff),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up %s: %w", r.Service.Kind, err)
	}
	return nil
}

// ofPod finds the object that a pod belongs to by our labels; its owner is a
// Job or a ReplicaSet in between, which may be gone already.
func (r *Reconciler) ofPod(_ context.Context, pod client.Object) []reconcile.Request {
	labels := pod.GetLabels()
	if labels[render.LabelName] != r.Service.Name || labels[render.LabelInstance] == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: labels[render.LabelInstance]}}}
}

// unsettledFirst has whatever is not at rest looked at before what is, where all
// of it is found at once: after a start. The queue looks at what is found then
// last of all, whatever it is.
func (r *Reconciler) unsettledFirst() handler.EventHandler {
	return handler.Funcs{CreateFunc: func(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		queue, sorts := q.(priorityqueue.PriorityQueue[reconcile.Request])
		key, object := client.ObjectKeyFromObject(e.Object), r.Service.New()
		if !sorts || !e.IsInInitialList || r.Client.Get(ctx, key, object) != nil {
			return // the other handler has it looked at all the same
		}
		record := object.Record()
		if record.ObservedGeneration != object.GetGeneration() || record.UpgradePhase != "" || !meta.IsStatusConditionTrue(record.Conditions, v1alpha1.ConditionReady) {
			first := 0
			queue.AddWithOpts(priorityqueue.AddOpts{Priority: &first}, reconcile.Request{NamespacedName: key})
		}
	}}
}
