package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// name is that of the one Glance of a scene; old and next are the images of the two releases of most walks.
const (
	name = "images"
	old  = build.DefaultRepository + ":2026.1"
	next = build.DefaultRepository + ":2026.2"
)

// api is the component of the pods that serve; those of Jobs have the name of their task.
const api = "api"

// scene is a namespace with a database Secret, and soon a Glance and a controller.
type scene struct {
	*harness.Env
	t          testing.TB
	ns         string
	controller *harness.ControllerProcess
}

// open is a scene whose pods are watched for what must never be, whatever the test is about.
func open(t *testing.T) *scene {
	t.Helper()
	t.Parallel()
	s := stage(t)
	s.watchPods()
	return s
}

func stage(t testing.TB) *scene {
	t.Helper()
	env := harness.Shared(t)
	s := &scene{Env: env, t: t, ns: env.Namespace(t)}
	s.Create(t, build.DatabaseSecret(s.ns))
	return s
}

// start runs the controller.
func (s *scene) start(flags ...string) *scene {
	s.t.Helper()
	s.controller = s.StartController(s.t, s.ns, flags...)
	return s
}

// glance creates the Glance of the scene.
func (s *scene) glance(options ...build.GlanceOption) *scene {
	s.t.Helper()
	s.Create(s.t, build.Glance(name, append([]build.GlanceOption{build.In(s.ns), build.Replicas(1)}, options...)...))
	return s
}

// record sets the status, as an earlier controller left it.
func (s *scene) record(state upgrade.State) *scene {
	s.t.Helper()
	s.status(func(status *v1alpha1.ServiceStatus) { status.SetState(state) })
	return s
}

// status writes the status of the Glance as something else than the controller does.
func (s *scene) status(change func(*v1alpha1.ServiceStatus)) {
	s.t.Helper()
	s.Eventually(s.t, harness.Patience, "the status to be written", func(ctx context.Context) string {
		g := &v1alpha1.Glance{}
		if err := s.Client.Get(ctx, s.key(name), g); err != nil {
			return err.Error()
		}
		change(g.Record())
		if err := s.Client.Status().Update(ctx, g); err != nil {
			return err.Error()
		}
		return ""
	})
}

// installed2026 is the record of a Glance at rest.
var installed2026 = upgrade.State{Installed: "2026.1", InstalledImage: old}

// walking is the record of a walk that has come to a phase.
func walking(phase upgrade.Phase) upgrade.State {
	return upgrade.State{Installed: "2026.1", InstalledImage: old, Target: "2026.2", TargetImage: next, Phase: phase, Attempt: 1}
}

// steady is a scene with an installed Glance at rest.
func steady(t *testing.T, options ...build.GlanceOption) *scene {
	t.Helper()
	s := open(t).glance(options...).record(installed2026).start()
	s.await("the Glance to rest", rests("2026.1"))
	return s
}

// expanding is a scene with a walk that has just begun; scripts are in place before the Job is.
func expanding(t *testing.T, prepare func(*scene), options ...build.GlanceOption) *scene {
	t.Helper()
	s := open(t)
	if prepare != nil {
		prepare(s)
	}
	s.glance(append([]build.GlanceOption{build.Lockstep("2026.2")}, options...)...).record(walking(upgrade.Expanding)).start()
	return s
}

// rolling is a scene in which the old pods serve and the rollout to the new ones is about to begin: it does when release
// is called.
func rolling(t *testing.T, options ...build.GlanceOption) (s *scene, release func()) {
	t.Helper()
	s = open(t)
	release = s.script(upgrade.Migrate, harness.Hang())
	s.glance(append([]build.GlanceOption{build.Lockstep("2026.2")}, options...)...).record(walking(upgrade.Migrating)).start()
	s.awaitDeployment("the old pods to serve", func(d *appsv1.Deployment) string {
		return lacks(d.Status.AvailableReplicas == ptr.Deref(d.Spec.Replicas, 1) && d.Spec.Template.Spec.Containers[0].Image == old, "%d available", d.Status.AvailableReplicas)
	})
	s.await("the migration to run", says(upgrade.MigrateInProgress))
	return s, release
}

// contracting is a scene in which the new pods serve and contract runs, until release is called.
func contracting(t *testing.T, options ...build.GlanceOption) (s *scene, release func()) {
	t.Helper()
	s = open(t)
	release = s.script(upgrade.Contract, harness.Hang())
	s.glance(append([]build.GlanceOption{build.Lockstep("2026.2")}, options...)...).record(walking(upgrade.RollingUpdate)).start()
	s.awaitPod(string(upgrade.Contract), "to run", runs)
	return s, release
}

// script tells how the pods of a component behave.
func (s *scene) script(component any, behaviours ...harness.Behaviour) (takeBack func()) {
	s.t.Helper()
	return s.Kubelet.Script(s.t, s.podsOf(component), behaviours...)
}

// scriptImage is script for the pods of one image.
func (s *scene) scriptImage(component any, image string, behaviours ...harness.Behaviour) (takeBack func()) {
	s.t.Helper()
	which := s.podsOf(component)
	which.Image = image
	return s.Kubelet.Script(s.t, which, behaviours...)
}

func (s *scene) podsOf(component any) harness.Pods {
	return harness.Pods{Namespace: s.ns, Component: fmt.Sprint(component)}
}

func (s *scene) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.ns, Name: name}
}

// now reads the Glance.
func (s *scene) now() *v1alpha1.Glance {
	s.t.Helper()
	g := &v1alpha1.Glance{}
	require.NoError(s.t, s.Client.Get(s.t.Context(), s.key(name), g))
	return g
}

// edit changes the spec, as kubectl edit does.
func (s *scene) edit(options ...build.GlanceOption) *v1alpha1.Glance {
	s.t.Helper()
	before := s.now()
	after := build.Change(before.DeepCopy(), options...)
	require.NoError(s.t, s.Client.Patch(s.t.Context(), after, client.MergeFrom(before)))
	return after
}

// await waits until the Glance lacks nothing.
func (s *scene) await(what string, lack func(*v1alpha1.Glance) string) *v1alpha1.Glance {
	s.t.Helper()
	return harness.Await(s.t, s.Env, build.Glance(name, build.In(s.ns)), what, lack)
}

// holds demands that the Glance lacks nothing for a while.
func (s *scene) holds(during time.Duration, what string, lack func(*v1alpha1.Glance) string) {
	s.t.Helper()
	harness.Throughout(s.t, s.Env, during, build.Glance(name, build.In(s.ns)), what, lack)
}

func (s *scene) awaitDeployment(what string, lack func(*appsv1.Deployment) string) *appsv1.Deployment {
	s.t.Helper()
	return harness.Await(s.t, s.Env, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}, what, lack)
}

func (s *scene) deployment() *appsv1.Deployment {
	s.t.Helper()
	d := &appsv1.Deployment{}
	require.NoError(s.t, s.Client.Get(s.t.Context(), s.key(name), d))
	return d
}

// adjust changes any object but the Glance, as an administrator.
func adjust[T client.Object](s *scene, object T, change func(T)) {
	s.t.Helper()
	require.NoError(s.t, s.Client.Get(s.t.Context(), client.ObjectKeyFromObject(object), object))
	before := object.DeepCopyObject().(T)
	change(object)
	require.NoError(s.t, s.Client.Patch(s.t.Context(), object, client.MergeFrom(before)))
}

// adjustStatus is adjust for the status.
func adjustStatus[T client.Object](s *scene, object T, change func(T)) {
	s.t.Helper()
	require.NoError(s.t, s.Client.Get(s.t.Context(), client.ObjectKeyFromObject(object), object))
	before := object.DeepCopyObject().(T)
	change(object)
	require.NoError(s.t, s.Client.Status().Patch(s.t.Context(), object, client.MergeFrom(before)))
}

// job is the Job of a task; nil if there is none.
func (s *scene) job(task upgrade.Task) *batchv1.Job {
	s.t.Helper()
	job := &batchv1.Job{}
	err := s.Client.Get(s.t.Context(), s.key(v1alpha1.JobName(name, task)), job)
	if client.IgnoreNotFound(err) == nil && err != nil {
		return nil
	}
	require.NoError(s.t, err)
	return job
}

func (s *scene) awaitJob(task upgrade.Task, what string, lack func(*batchv1.Job) string) *batchv1.Job {
	s.t.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: v1alpha1.JobName(name, task)}}
	return harness.Await(s.t, s.Env, job, what, lack)
}

func (s *scene) deleteJob(task upgrade.Task) {
	s.t.Helper()
	require.NoError(s.t, s.Client.Delete(s.t.Context(), s.job(task), client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

func (s *scene) pods(component any) []corev1.Pod {
	s.t.Helper()
	return s.PodsOf(s.t, s.podsOf(component))
}

// awaitPod waits for a pod of a component that lacks nothing.
func (s *scene) awaitPod(component any, what string, lack func(corev1.Pod) string) (found corev1.Pod) {
	s.t.Helper()
	s.Eventually(s.t, harness.Patience, fmt.Sprintf("a pod of %s %s", component, what), func(context.Context) string {
		reply := "there is none"
		for _, found = range s.pods(component) {
			if reply = lack(found); reply == "" {
				return ""
			}
		}
		return reply
	})
	return found
}

// told lists the events about the Glance, oldest first: "Normal UpgradeInitiated".
func (s *scene) told() []string {
	s.t.Helper()
	var list corev1.EventList
	require.NoError(s.t, s.Client.List(s.t.Context(), &list, client.InNamespace(s.ns)))
	slices.SortFunc(list.Items, func(a, b corev1.Event) int {
		return a.EventTime.Compare(b.EventTime.Time)
	})
	var told []string
	for _, ev := range list.Items {
		if ev.InvolvedObject.Kind != "Glance" {
			continue
		}
		times := int32(1)
		if ev.Series != nil {
			times = ev.Series.Count
		}
		for range times {
			told = append(told, ev.Type+" "+ev.Reason)
		}
	}
	return told
}

// toldTimes waits until an event was given so many times, and knows that it was not given more often so far.
func (s *scene) toldTimes(event string, times int) {
	s.t.Helper()
	count := func() (found int) {
		for _, each := range s.told() {
			if each == event {
				found++
			}
		}
		return found
	}
	s.Eventually(s.t, 10*time.Second, fmt.Sprintf("%q to be told %d times", event, times), func(context.Context) string {
		return lacks(count() >= times, "told %d times: %v", count(), s.told())
	})
	require.Equal(s.t, times, count(), "%v", s.told())
}

// calls are what the controller has asked about this scene since a mark.
func (s *scene) calls(since harness.Mark) harness.Calls {
	s.t.Helper()
	return s.CallsSince(s.t, since, s.controller.Actor).Where(harness.In(s.ns))
}

// What a Glance may lack.

func lacks(holds bool, format string, args ...any) string {
	if holds {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func database(g *v1alpha1.Glance) metav1.Condition {
	if c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionDatabaseReady); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// says demands of DatabaseReady this reason, and all of these words in its message.
func says(reason upgrade.Reason, words ...string) func(*v1alpha1.Glance) string {
	return func(g *v1alpha1.Glance) string {
		c := database(g)
		holds := c.Reason == string(reason) && c.ObservedGeneration == g.Generation
		for _, each := range words {
			holds = holds && strings.Contains(c.Message, each)
		}
		return lacks(holds, "DatabaseReady is %s %s (generation %d of %d): %s", c.Status, c.Reason, c.ObservedGeneration, g.Generation, c.Message)
	}
}

// rests demands that a release is installed and everything is ready, with no walk under way.
func rests(release string) func(*v1alpha1.Glance) string {
	return func(g *v1alpha1.Glance) string {
		s := g.Status
		ready := meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady)
		return lacks(s.InstalledRelease == release && s.UpgradePhase == "" && s.TargetRelease == "" && s.InstalledImage == g.Spec.Image.Reference().String() && ready && s.ObservedGeneration == g.Generation,
			"installed %s %s, phase %q, target %q, ready %t, %s", s.InstalledRelease, s.InstalledImage, s.UpgradePhase, s.TargetRelease, ready, database(g).Message)
	}
}

// in demands a phase.
func in(phase upgrade.Phase) func(*v1alpha1.Glance) string {
	return func(g *v1alpha1.Glance) string {
		return lacks(g.Status.UpgradePhase == string(phase), "phase is %q", g.Status.UpgradePhase)
	}
}

// both demands two things.
func both(first, second func(*v1alpha1.Glance) string) func(*v1alpha1.Glance) string {
	return func(g *v1alpha1.Glance) string {
		if lack := first(g); lack != "" {
			return lack
		}
		return second(g)
	}
}

// What a Job, a pod or a Deployment may lack.

func isComplete(job *batchv1.Job) string { return outcome(job, batchv1.JobComplete) }
func hasFailed(job *batchv1.Job) string  { return outcome(job, batchv1.JobFailed) }
func exists(*batchv1.Job) string         { return "" }

func outcome(job *batchv1.Job, wanted batchv1.JobConditionType) string {
	for _, c := range job.Status.Conditions {
		if c.Type == wanted && c.Status == corev1.ConditionTrue {
			return ""
		}
	}
	return fmt.Sprintf("conditions are %v", job.Status.Conditions)
}

func runs(pod corev1.Pod) string {
	return lacks(pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil, "it is %s", pod.Status.Phase)
}

func ends(pod corev1.Pod) string {
	return lacks(pod.DeletionTimestamp != nil, "nobody has deleted it")
}

func rolledTo(image string) func(*appsv1.Deployment) string {
	return func(d *appsv1.Deployment) string {
		s, n := d.Status, ptr.Deref(d.Spec.Replicas, 1)
		found := d.Spec.Template.Spec.Containers[0].Image
		return lacks(found == image && s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == n && s.Replicas == n && s.AvailableReplicas == n,
			"image %s, updated %d, replicas %d, available %d of %d", found, s.UpdatedReplicas, s.Replicas, s.AvailableReplicas, n)
	}
}
