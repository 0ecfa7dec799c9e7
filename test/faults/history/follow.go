package history

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// Recorder writes down the histories of all objects of a world.
type Recorder struct {
	env *harness.Env

	mu      sync.Mutex
	moments map[Subject][]Moment
	latest  map[string]uint64 // by kind and UID
	present map[string]map[string]origin
}

type origin struct {
	whose Subject
	last  Moment
}

// lists are the kinds that are followed; children carry our label.
var lists = map[string]func() client.ObjectList{
	"Glance": func() client.ObjectList { return &v1alpha1.GlanceList{} }, "Keystone": func() client.ObjectList { return &v1alpha1.KeystoneList{} },
	"Job": func() client.ObjectList { return &batchv1.JobList{} }, "Pod": func() client.ObjectList { return &corev1.PodList{} },
	"Deployment": func() client.ObjectList { return &appsv1.DeploymentList{} },
}

func optionsFor(kind string) []client.ListOption {
	if kind == "Glance" || kind == "Keystone" {
		return nil
	}
	return []client.ListOption{client.MatchingLabels{render.LabelManagedBy: render.ManagedBy}}
}

// Follow begins to write down, until the test ends. A watch that is cut is begun again from what is there then, and what
// is missing by then is taken for gone.
func Follow(t testing.TB, env *harness.Env) *Recorder {
	t.Helper()
	r := &Recorder{env: env, moments: map[Subject][]Moment{}, latest: map[string]uint64{}, present: map[string]map[string]origin{}}
	ctx, stop := context.WithCancel(context.Background())
	var readers sync.WaitGroup
	t.Cleanup(func() { stop(); readers.Wait() })
	for kind := range lists {
		r.present[kind] = map[string]origin{}
		begun := make(chan struct{})
		readers.Go(func() { r.follow(ctx, kind, sync.OnceFunc(func() { close(begun) })) })
		select {
		case <-begun:
		case <-time.After(harness.Patience):
			t.Fatalf("no watch of %s begins", kind)
		}
	}
	return r
}

func (r *Recorder) follow(ctx context.Context, kind string, begun func()) {
	for ctx.Err() == nil {
		if err := r.relist(ctx, kind, begun); err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
}

// relist begins with what is there and goes on until the watch is cut.
func (r *Recorder) relist(ctx context.Context, kind string, begun func()) error {
	list := lists[kind]()
	if err := r.env.Client.List(ctx, list, optionsFor(kind)...); err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	r.replace(kind, items, revision(list.GetResourceVersion()))
	from := &client.ListOptions{}
	for _, option := range optionsFor(kind) {
		option.ApplyToList(from)
	}
	from.Raw = &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}
	w, err := r.env.Client.Watch(ctx, lists[kind](), from)
	if err != nil {
		return err
	}
	defer w.Stop()
	begun()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, open := <-w.ResultChan():
			if !open || event.Type == watch.Error {
				return fmt.Errorf("the watch of %s was cut", kind)
			}
			r.note(kind, event)
		}
	}
}

// replace notes what is there, and what is no more as of a revision: when it went, nobody saw, and what came meanwhile is
// not judged to have come after.
func (r *Recorder) replace(kind string, items []runtime.Object, as uint64) {
	there := map[string]bool{}
	for _, item := range items {
		if object, ok := item.(client.Object); ok {
			there[string(object.GetUID())] = true
		}
		r.note(kind, watch.Event{Type: watch.Modified, Object: item})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid, known := range r.present[kind] {
		if !there[uid] {
			known.last.Gone, known.last.At, known.last.Revision = true, time.Now(), as
			r.moments[known.whose] = append(r.moments[known.whose], known.last)
			delete(r.present[kind], uid)
		}
	}
}

func (r *Recorder) note(kind string, event watch.Event) {
	whose, m, ok := read(event, time.Now())
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := kind + " " + string(m.UID)
	if r.latest[key] >= m.Revision {
		return
	}
	r.latest[key] = m.Revision
	r.moments[whose] = append(r.moments[whose], m)
	if m.Gone {
		delete(r.present[kind], string(m.UID))
		return
	}
	r.present[kind][string(m.UID)] = origin{whose, m}
}

// Of is the history of a subject so far, in order.
func (r *Recorder) Of(whose Subject) []Moment {
	r.mu.Lock()
	moments := slices.Clone(r.moments[whose])
	r.mu.Unlock()
	slices.SortStableFunc(moments, func(a, b Moment) int { return cmp.Compare(a.Revision, b.Revision) })
	return moments
}

// Whole waits until everything that is there now has been told, and gives the history of a subject.
func (r *Recorder) Whole(t testing.TB, whose Subject) []Moment {
	t.Helper()
	for kind := range lists {
		r.env.Eventually(t, harness.Patience, "the history of "+whose.Name+" to be told", func(ctx context.Context) string {
			return r.behind(ctx, kind, whose)
		})
	}
	return r.Of(whose)
}

// behind says which object of a subject the history does not tell the latest of.
func (r *Recorder) behind(ctx context.Context, kind string, whose Subject) string {
	list := lists[kind]()
	if err := r.env.Client.List(ctx, list, append(optionsFor(kind), client.InNamespace(whose.Namespace))...); err != nil {
		return err.Error()
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, item := range items {
		object, ok := item.(client.Object)
		if ok && r.latest[kind+" "+string(object.GetUID())] < revision(object.GetResourceVersion()) {
			return fmt.Sprintf("the latest of %s %s has not come", kind, object.GetName())
		}
	}
	return ""
}

// Forget drops a history that has been judged.
func (r *Recorder) Forget(whose Subject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.moments, whose)
}
