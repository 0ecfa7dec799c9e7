package reconcile

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/controller/service"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
)

const (
	old  = build.DefaultRepository + ":2026.1"
	next = build.DefaultRepository + ":2026.2"
)

// stage is a reconciler between an API server and caches that can be stopped, so that they go on showing the past.
type stage struct {
	*Reconciler
	t       *testing.T
	server  client.WithWatch
	stopped map[string]client.Client // by the kind that is shown as it was
	now     time.Time
	told    *events.FakeRecorder
	deletes []client.DeleteOptions
	refuses func(object client.Object) error // what the server says to an update
}

func open(t *testing.T, state upgrade.State, options ...build.GlanceOption) *stage {
	t.Helper()
	s := &stage{t: t, stopped: map[string]client.Client{}, now: time.Unix(1_000_000, 0), told: events.NewFakeRecorder(100), refuses: func(client.Object) error { return nil }}
	glance := build.Glance("images", append([]build.GlanceOption{build.In("openstack"), build.Replicas(1)}, options...)...)
	glance.UID, glance.Generation = "a-uid", 1
	glance.SetState(state)
	s.server = interceptor.NewClient(s.holding(glance), interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			var asked client.DeleteOptions
			asked.ApplyOptions(options)
			s.deletes = append(s.deletes, asked)
			return c.Delete(ctx, object, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			return errors.Join(s.refuses(object), c.Update(ctx, object, options...))
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, object client.Object, options ...client.SubResourceUpdateOption) error {
			if err := s.refuses(object); err != nil {
				return err
			}
			return c.SubResource(sub).Update(ctx, object, options...)
		},
	})
	shown := func(object runtime.Object, otherwise client.Client) client.Client {
		if past, is := s.stopped[fmt.Sprintf("%T", object)]; is {
			return past
		}
		return otherwise
	}
	caches := interceptor.NewClient(s.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			return shown(object, c).Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return shown(list, c).List(ctx, list, options...)
		},
	})
	s.Reconciler = &Reconciler{Client: caches, Live: s.server, Events: s.told, Service: service.Glance(), Meter: silent{}, Now: func() time.Time { return s.now }}
	s.Reconciler.starts.note(s.now.Add(-quietTime))
	return s
}

func (s *stage) holding(objects ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().WithScheme(kinds(s.t)).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Glance{}, &batchv1.Job{}, &appsv1.Deployment{}).
		WithIndex(&corev1.Event{}, "type", func(o client.Object) []string { return []string{o.(*corev1.Event).Type} }).Build()
}

// stop has the cache of a kind go on showing what is there now.
func (s *stage) stop(list client.ObjectList, one client.Object) {
	s.t.Helper()
	require.NoError(s.t, s.server.List(s.t.Context(), list))
	items, err := meta.ExtractList(list)
	require.NoError(s.t, err)
	var objects []client.Object
	for _, item := range items {
		objects = append(objects, item.(client.Object))
	}
	past := s.holding(objects...)
	s.stopped[fmt.Sprintf("%T", list)], s.stopped[fmt.Sprintf("%T", one)] = past, past
}

func (s *stage) look() (ctrl.Result, error) {
	return s.Reconcile(s.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "openstack", Name: "images"}})
}

// looks takes some looks, with time between them in which caches should catch up.
func (s *stage) looks(count int) {
	s.t.Helper()
	for range count {
		_, err := s.look()
		require.NoError(s.t, err)
		s.now = s.now.Add(quietTime)
	}
}

func (s *stage) glance() *v1alpha1.Glance {
	s.t.Helper()
	g := &v1alpha1.Glance{}
	require.NoError(s.t, s.server.Get(s.t.Context(), client.ObjectKey{Namespace: "openstack", Name: "images"}, g))
	return g
}

func (s *stage) edit(options ...build.GlanceOption) {
	s.t.Helper()
	g := build.Change(s.glance(), options...)
	g.Generation++
	require.NoError(s.t, s.server.Update(s.t.Context(), g))
}

func (s *stage) workload() render.Workload { return s.Service.Workload(s.glance()) }

// job is the Job of a task, nil when there is none.
func (s *stage) job(task upgrade.Task) *batchv1.Job {
	s.t.Helper()
	job := &batchv1.Job{}
	if err := s.server.Get(s.t.Context(), client.ObjectKey{Namespace: "openstack", Name: v1alpha1.JobName("images", task)}, job); err != nil {
		require.NoError(s.t, client.IgnoreNotFound(err))
		return nil
	}
	return job
}

func (s *stage) has(task upgrade.Task) bool { s.t.Helper(); return s.job(task) != nil }

// made puts the Job of a task there, as an earlier look has made it for a state.
func (s *stage) made(state upgrade.State, task upgrade.Task, conditions ...batchv1.JobConditionType) {
	s.t.Helper()
	job := render.Job(s.workload(), upgrade.WorkOf(state, s.Service.Wish(s.glance()), task))
	job.UID = "job-uid"
	for _, condition := range conditions {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: condition, Status: corev1.ConditionTrue})
	}
	require.NoError(s.t, s.server.Create(s.t.Context(), job))
}

// served puts a finished rollout there, noted at a state.
func (s *stage) served(image string, noted upgrade.State) {
	s.t.Helper()
	d := render.Creation(render.Deployment(s.workload(), image, noted))
	d.Generation = 1
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1, ReadyReplicas: 1}
	require.NoError(s.t, s.server.Create(s.t.Context(), d))
	s.pod(d.Spec.Template, "images-1")
}

func (s *stage) pod(of corev1.PodTemplateSpec, name string, changes ...func(*corev1.Pod)) {
	s.t.Helper()
	pod := &corev1.Pod{ObjectMeta: *of.ObjectMeta.DeepCopy(), Spec: *of.Spec.DeepCopy(), Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	pod.Namespace, pod.Name, pod.OwnerReferences = "openstack", name, []metav1.OwnerReference{}
	for _, change := range changes {
		change(pod)
	}
	require.NoError(s.t, s.server.Create(s.t.Context(), pod))
}

func (s *stage) deployment() *appsv1.Deployment {
	s.t.Helper()
	d := &appsv1.Deployment{}
	require.NoError(s.t, s.server.Get(s.t.Context(), client.ObjectKey{Namespace: "openstack", Name: "images"}, d))
	return d
}

func atRest() upgrade.State {
	return upgrade.State{Installed: "2026.1", InstalledImage: old, Attempt: 1}
}

func walking(phase upgrade.Phase) upgrade.State {
	return upgrade.State{Installed: "2026.1", InstalledImage: old, Target: "2026.2", TargetImage: next, Phase: phase, Attempt: 2}
}
