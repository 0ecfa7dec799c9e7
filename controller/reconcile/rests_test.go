package reconcile

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/controller/shelf"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// shelved reads from a shelf, as the controller does, and counts how often.
type shelved struct {
	client.Client
	reader shelf.Reader
	reads  int
}

func (s *shelved) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	s.reads++
	return s.reader.Get(ctx, key, into, options...)
}

func (s *shelved) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	s.reads++
	return s.reader.List(ctx, into, options...)
}

// resting is the steady object and its children on a shelf, with a pod that serves; put replaces one of them.
func resting(tb testing.TB) (r *Reconciler, request ctrl.Request, from *shelved, put func(client.Object)) {
	tb.Helper()
	r, request, freeze := steady(tb)
	freeze()
	kept := shelf.New(r.Client.Scheme(), render.LabelInstance, render.LabelComponent)
	at := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: request.Namespace, Name: name}
	}
	stores := map[string]toolscache.Indexer{}
	put = func(object client.Object) {
		packed, err := kept.Pack(object.DeepCopyObject())
		require.NoError(tb, err)
		require.NoError(tb, stores[kindOf(object)].Add(packed))
	}
	for _, child := range []struct {
		object client.Object
		name   string
	}{
		{&v1alpha1.Glance{}, request.Name},
		{&batchv1.Job{}, v1alpha1.JobName(request.Name, upgrade.Sync)},
		{&appsv1.Deployment{}, request.Name},
		{&corev1.Service{}, request.Name},
		{&corev1.ConfigMap{}, render.Workload{Name: request.Name}.ConfigName()},
	} {
		stores[kindOf(child.object)] = kept.Informer(&toolscache.ListWatch{}, child.object, 0, nil).GetIndexer()
		require.NoError(tb, r.Client.Get(context.Background(), at(child.name), child.object))
		put(child.object)
	}
	var deployment appsv1.Deployment
	require.NoError(tb, r.Client.Get(context.Background(), at(request.Name), &deployment))
	pod := &corev1.Pod{ObjectMeta: *deployment.Spec.Template.DeepCopy().ObjectMeta.DeepCopy(), Spec: deployment.Spec.Template.Spec, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	pod.Namespace, pod.Name, pod.ResourceVersion = request.Namespace, request.Name+"-7d9f-abc", "1"
	stores[kindOf(pod)] = kept.Informer(&toolscache.ListWatch{}, pod, 0, nil).GetIndexer()
	put(pod)
	from = &shelved{Client: r.Client, reader: shelf.Reader{Shelf: kept}}
	r.Client, r.Versions, r.sample = from, kept, r.Service.New()
	return r, request, from, put
}

func TestWhatRestsIsLookedAtAgainOnlyWhenSomethingOfItHasChanged(t *testing.T) {
	r, request, from, put := resting(t)
	look := func() (reads int) {
		before := from.reads
		result, err := r.Reconcile(t.Context(), request)
		require.NoError(t, err)
		require.True(t, result.IsZero())
		return from.reads - before
	}
	assert.Positive(t, look())
	assert.Positive(t, look(), "one look that found nothing to do may have been too early")
	assert.Zero(t, look())

	for _, object := range []client.Object{&v1alpha1.Glance{}, &appsv1.Deployment{}, &corev1.Service{}} {
		require.NoError(t, from.Get(t.Context(), request.NamespacedName, object))
		object.SetResourceVersion(object.GetResourceVersion() + "1")
		put(object)
		assert.Positive(t, look(), "%T", object)
		look()
		assert.Zero(t, look(), "%T", object)
	}
	var pods corev1.PodList
	require.NoError(t, from.List(t.Context(), &pods, client.InNamespace(request.Namespace), client.MatchingLabels{render.LabelInstance: request.Name}))
	require.Len(t, pods.Items, 1)
	pods.Items[0].ResourceVersion = "2"
	put(&pods.Items[0])
	assert.Positive(t, look(), "a pod")
	look()
	assert.Zero(t, look())
	pods.Items[0].Name += "d"
	put(&pods.Items[0])
	assert.Positive(t, look(), "one more pod")
	look()
	assert.Zero(t, look())
	now := r.Now().Add(restTime)
	r.Now = func() time.Time { return now }
	assert.Positive(t, look(), "an unasked look is a look")
}

func TestWhatIsInAWalkIsAlwaysLookedAt(t *testing.T) {
	r, request, from, put := resting(t)
	g := &v1alpha1.Glance{}
	require.NoError(t, from.Get(t.Context(), request.NamespacedName, g))
	g.Status.TargetRelease, g.Status.TargetImage, g.Status.UpgradePhase = "2026.2", "registry/glance:2026.2", string(upgrade.Migrating)
	put(g)
	for range 4 {
		before := from.reads
		_, _ = r.Reconcile(t.Context(), request) // the frozen API refuses the next step
		assert.Greater(t, from.reads, before)
	}
}

// BenchmarkLookAtAShelf is a whole look at an object at rest, as after a start; BenchmarkLookAgain is what it takes to
// see that nothing has changed since.
func BenchmarkLookAtAShelf(b *testing.B) { looks(b, func(r *Reconciler) { r.Versions = nil }) }
func BenchmarkLookAgain(b *testing.B)    { looks(b, func(*Reconciler) {}) }

func looks(b *testing.B, prepare func(*Reconciler)) {
	r, request, _, _ := resting(b)
	prepare(r)
	for range 3 {
		_, err := r.Reconcile(b.Context(), request)
		require.NoError(b, err)
	}
	b.ReportAllocs()
	before, rounds := processorTime(b), 0
	for b.Loop() {
		if _, err := r.Reconcile(b.Context(), request); err != nil {
			b.Fatal(err)
		}
		rounds++
	}
	// What others do on the same processors does not count.
	b.ReportMetric(float64((processorTime(b)-before).Nanoseconds())/1000/float64(rounds), "cpu-µs/op")
}

func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var used syscall.Rusage
	require.NoError(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
