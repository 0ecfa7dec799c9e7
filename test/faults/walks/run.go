package walks

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/faults/history"
	"github.com/c5c3/openstack-upgrade/test/faults/wire"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// runner takes one walk in a lane.
type runner struct {
	*lane
	Walk
	t     testing.TB
	name  string
	begun time.Time
	said  []string
	// hookSince is since when the webhook judges; zero while it does not.
	hookSince time.Time
	scripts   []func()
	// storm and haze are the conflicts and the disturbed view that have not been judged yet.
	storm, haze *weather
	// seen is how many moments there were when a watch was cut, and missed how many came until it was back.
	seen, missed int
	metLock      sync.Mutex
	met          map[int]bool // by step
}

// hookLag is how long the API server may take to learn that a namespace has another label.
const hookLag = time.Second

func (r *runner) say(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf("%6.1fs  %s", time.Since(r.begun).Seconds(), fmt.Sprintf(format, args...)))
}

// key is the object's.
func (r *runner) key() client.ObjectKey { return client.ObjectKey{Namespace: r.ns, Name: r.name} }

// now reads the object; nil when there is none.
func (r *runner) now(ctx context.Context) (object, error) {
	o := r.empty()
	err := r.Client.Get(ctx, r.key(), o)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", r.name, err)
	}
	return o, nil
}

// walk does all steps.
func (r *runner) walk() {
	r.t.Helper()
	r.create()
	for i, step := range r.Steps {
		r.say("%d. %s", i+1, step)
		r.do(i, step)
		r.wait(step)
	}
}

func (r *runner) create() {
	r.t.Helper()
	if err := r.patiently("create it", func(ctx context.Context) error { return r.Client.Create(ctx, r.made(r.ns, r.name)) }); err != nil {
		r.t.Fatalf("create %s: %v", r.name, err)
	}
}

// patiently repeats what the webhook did not answer in time: the machine is small.
func (r *runner) patiently(what string, try func(context.Context) error) error {
	for attempt := 1; ; attempt++ {
		err := try(r.t.Context())
		if err == nil || attempt == 10 || !strings.Contains(err.Error(), "failed calling webhook") {
			return err
		}
		r.say("%s: %v", what, err)
		time.Sleep(200 * time.Millisecond)
	}
}

func (r *runner) do(i int, step Step) {
	r.t.Helper()
	switch step.Deed {
	case Scale:
		if r.change("scale", func(o object) { scale(o, 1+int32(step.Build)%2) }) {
			r.meets(i)
		}
	case Label:
		if r.change("label", func(o object) { o.SetLabels(map[string]string{"chance": fmt.Sprint(step.Build)}) }) {
			r.meets(i)
		}
	case Recreate:
		if r.recreate() {
			r.meets(i)
		}
	case HookOff:
		if !r.hookSince.IsZero() {
			r.meets(i)
		}
		r.hook(r.t, false)
		r.hookSince = time.Time{}
	case HookOn:
		r.hook(r.t, true)
		if r.hookSince.IsZero() {
			r.meets(i)
			r.hookSince = time.Now()
		}
	case Fail:
		r.script(step.Task, failing(step.Task).Telling(func() { r.meets(i) }))
	case Hang:
		r.script(step.Task, hanging(step.Task).Telling(func() { r.meets(i) }))
	case Heal:
		if len(r.scripts) > 0 {
			r.meets(i)
		}
		r.heal()
	case Crash:
		r.meets(i)
		r.crash(r.t, time.Duration(step.Build)*300*time.Millisecond)
	case Conflict:
		number := 1
		if writes := r.line.Writes(); len(writes) > 0 {
			number += writes[len(writes)-1].Number
		}
		r.clear(&r.storm)
		r.storm = &weather{i, func() bool { return len(r.line.Unmet()) == 0 }}
		r.line.Plan(wire.Fault{Deed: wire.Conflict, Number: number, Times: step.Times})
	case Freeze:
		r.disturb(i, func() bool { return r.line.Kept(r.name) > 0 })
		r.line.Freeze(step.Resource)
	case Thaw:
		r.line.Thaw(step.Resource)
	case Blind:
		r.disturb(i, func() bool { return r.missed > 0 && r.line.Relists() > 0 })
		r.line.Blind(step.Resource)
		r.seen = history.About(r.told.Whole(r.t, r.subject()), step.Resource)
	case See:
		r.missed = history.About(r.told.Of(r.subject()), step.Resource) - r.seen
		r.line.See(step.Resource)
	case Wipe:
		if r.wipe() {
			r.meets(i)
		}
	default:
		if r.edit(step) {
			r.meets(i)
		}
	}
}

// disturb judges the view that was disturbed before, and will this one.
func (r *runner) disturb(step int, met func() bool) {
	r.clear(&r.haze)
	r.haze = &weather{step, met}
}

// failing and hanging are how pods misbehave: those of the API do not get ready, or crash.
func failing(task upgrade.Task) harness.Behaviour {
	if task == "" {
		return harness.CrashLoop(1, "chance")
	}
	return harness.Fail(1, "chance")
}

func hanging(task upgrade.Task) harness.Behaviour {
	if task == "" {
		return harness.SlowReady(harness.Forever)
	}
	return harness.Hang()
}

func (r *runner) script(task upgrade.Task, how harness.Behaviour) {
	r.t.Helper()
	pods := harness.Pods{Namespace: r.ns, Instance: r.name, Component: component(task)}
	r.scripts = append(r.scripts, r.Kubelet.Script(r.t, pods, how))
}

// heal lets pods behave, and deletes the Jobs that have failed, as a person does who has fixed the cause.
func (r *runner) heal() {
	r.t.Helper()
	for _, takeBack := range r.scripts {
		takeBack()
	}
	r.scripts = nil
	r.retry()
}

func (r *runner) retry() {
	r.t.Helper()
	var jobs batchv1.JobList
	if err := r.Client.List(r.t.Context(), &jobs, client.InNamespace(r.ns), client.MatchingLabels{render.LabelInstance: r.name}); err != nil {
		r.t.Fatalf("list Jobs: %v", err)
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		for _, c := range job.Status.Conditions {
			if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue && job.DeletionTimestamp == nil {
				r.say("delete failed Job %s", job.Name)
				r.remove(job)
			}
		}
	}
}

func (r *runner) remove(job *batchv1.Job) {
	r.t.Helper()
	err := r.Client.Delete(r.t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &job.UID})
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		r.t.Fatalf("delete Job %s: %v", job.Name, err)
	}
}

// before is the object as it is before a deed, nil if there is none.
func (r *runner) before() object {
	r.t.Helper()
	o, err := r.now(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return o
}

// recreate deletes the object and asks for it anew, while its children are still going. The new one is of the release
// that was installed, as a person who restores manifests would have it.
func (r *runner) recreate() (was bool) {
	r.t.Helper()
	before := r.before()
	if before == nil {
		return false
	}
	if err := r.Client.Delete(r.t.Context(), before); client.IgnoreNotFound(err) != nil {
		r.t.Fatalf("delete %s: %v", r.name, err)
	}
	again := r.made(r.ns, r.name)
	if s := before.State(); s.Installed != "" {
		ask(again, r.good(upgrade.State{Installed: s.Installed, InstalledImage: s.InstalledImage, Ahead: s.Ahead}))
	}
	r.say("created again, asking for %s", asked(again))
	r.Eventually(r.t, harness.Patience, "the object to be created again", func(ctx context.Context) string {
		if err := r.Client.Create(ctx, again); err != nil {
			again.SetResourceVersion("")
			return err.Error()
		}
		return ""
	})
	return true
}

// wipe empties the status, as a restore without subresources does. Before pods serve there is nothing that could tell
// what is installed, and nobody could know.
func (r *runner) wipe() (lost bool) {
	r.t.Helper()
	var deployments int
	r.Eventually(r.t, harness.Patience, "the status to be lost", func(ctx context.Context) string {
		o, err := r.now(ctx)
		if err != nil {
			return err.Error()
		}
		if o == nil || !r.serves(ctx, o) {
			return ""
		}
		deployments++
		*o.Record() = v1alpha1.ServiceStatus{}
		if err := r.Client.Status().Update(ctx, o); err != nil {
			return err.Error()
		}
		return ""
	})
	if deployments == 0 {
		r.say("nothing serves yet: the status is left alone")
	}
	return deployments > 0
}

// change edits something else than the wish, and tells whether it was not so already.
func (r *runner) change(what string, edit func(object)) (changed bool) {
	r.t.Helper()
	err := r.patiently(what, func(ctx context.Context) error {
		o, err := r.now(ctx)
		if err != nil || o == nil {
			return err
		}
		old := o.DeepCopyObject().(object)
		edit(o)
		err = r.Client.Patch(ctx, o, client.MergeFrom(old))
		changed = err == nil && o.GetResourceVersion() != old.GetResourceVersion()
		return err
	})
	if err != nil {
		r.t.Fatalf("%s: %v", what, err)
	}
	return changed
}

// wait waits for what a step wants to be met by the next, which may never come.
func (r *runner) wait(step Step) {
	deadline := time.Now().Add(step.AtMost)
	if step.Until == AMoment {
		time.Sleep(step.AtMost)
		return
	}
	for time.Now().Before(deadline) {
		o, err := r.now(r.t.Context())
		if err == nil && o != nil && (step.Until == Rest && r.unsettled(r.t.Context(), o) == "" || o.Record().UpgradePhase == string(step.Until)) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (r *runner) subject() history.Subject {
	return history.Subject{Namespace: r.ns, Service: r.Service, Name: r.name}
}
