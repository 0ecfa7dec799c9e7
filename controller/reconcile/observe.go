package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/controller/service"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// observation is what was seen: reduced for the planner, and as it is for
// those who act on it.
type observation struct {
	upgrade.Observed
	workload   render.Workload
	state      upgrade.State
	desired    upgrade.Desired
	live       map[upgrade.Task]*batchv1.Job
	unshown    map[upgrade.Task]bool // Jobs that are there and that the cache does not show
	deployment *appsv1.Deployment
	address    *corev1.Service
	config     *corev1.ConfigMap
	pods       []corev1.Pod // of the API
	jobPods    []corev1.Pod // of Jobs
	sets       sets         // where they were asked for
	rendered   rendered
	// again asks to look again soon, for words that no watch brings.
	again time.Duration
}

// rendered is a Deployment, and what it was rendered for.
type rendered struct {
	image      string
	note       upgrade.State
	deployment *appsv1.Deployment
}

// begin is an observation of an object before anything else was seen.
func (r *Reconciler) begin(object service.Object) observation {
	seen := observation{workload: r.Service.Workload(object), state: object.State(), desired: r.Service.Wish(object),
		live: map[upgrade.Task]*batchv1.Job{}, unshown: map[upgrade.Task]bool{}, Observed: upgrade.Observed{Jobs: map[upgrade.Task]upgrade.Job{}}}
	if condition := meta.FindStatusCondition(object.Record().Conditions, v1alpha1.ConditionDatabaseReady); condition != nil {
		seen.Ready = condition.Status == "True"
		if condition.ObservedGeneration == object.GetGeneration() {
			seen.Reported = upgrade.Reason(condition.Reason)
		}
	}
	return seen
}

// observe reads the children through the caches, and past them where the
// planner is about to rely on pods being gone, unless everything is in doubt:
// then nothing of it would be believed.
func (r *Reconciler) observe(ctx context.Context, object service.Object) (observation, error) {
	seen := r.begin(object)
	pods, err := list(ctx, r.Client, seen.workload)
	if err != nil {
		return seen, err
	}
	if err := r.children(ctx, seen.workload, &seen); err != nil {
		return seen, err
	}
	r.reduce(ctx, pods, &seen)
	if r.doubts.about(client.ObjectKeyFromObject(object)) || !seen.decisive() {
		return seen, nil
	}
	if upgrade.Aborts(seen.state, seen.desired) {
		if err := r.unseenJobs(ctx, &seen); err != nil {
			return seen, err
		}
	}
	return seen, r.confirm(ctx, &seen)
}

// reduce makes of Jobs, Deployment and pods what the planner asks for.
func (r *Reconciler) reduce(ctx context.Context, pods []corev1.Pod, seen *observation) {
	for _, task := range upgrade.Tasks {
		seen.Jobs[task] = r.observeJob(ctx, task, of(pods, string(task)), seen)
		seen.jobPods = append(seen.jobPods, of(pods, string(task))...)
	}
	seen.pods = of(pods, render.ComponentAPI)
	observeDeployment(seen.state, seen.workload, seen)
}

// decides is the next decision if the caches were known to be right, or not.
func (seen *observation) decides(confirmed bool) upgrade.Decision {
	o := seen.Observed
	o.Confirmed = confirmed
	return upgrade.Decide(seen.state, seen.desired, o)
}

// decisive tells whether the next decision would be another if the caches were
// known to be right, so that it must be found out.
func (seen *observation) decisive() bool { return seen.decides(true).Step != seen.decides(false).Step }

// handlesJobs tells whether a Job would be run, or taken away, if the caches
// were known to be right.
func (seen *observation) handlesJobs() bool {
	step := seen.decides(true).Step
	return step == upgrade.RunJob || step == upgrade.DeleteJob
}

// acts tells whether anything would be done, whether or not the caches were
// known to be right: to what serves, also where a walk waits.
func (seen *observation) acts() bool {
	doubting, surely := seen.decides(false), seen.decides(true)
	return doubting.Step != upgrade.Wait || surely.Step != upgrade.Wait || seen.rolls(doubting.Serve) || surely.Serve != doubting.Serve && seen.rolls(surely.Serve)
}

// rolls tells whether keeping the Deployment at an image would change it.
func (seen *observation) rolls(image string) bool {
	switch {
	case image == "":
		return false
	case seen.deployment == nil:
		return true
	case !ours(seen.deployment, seen.workload) || seen.deployment.DeletionTimestamp != nil:
		return false
	}
	_, changes := seen.keeps(seen.rendering(image, seen.note()))
	return changes
}

// rollsFor tells whether pods will be replaced, or their number changed, once a
// state at rest is recorded.
func (seen *observation) rollsFor(s upgrade.State) bool {
	if s.Walking() || seen.deployment == nil || !ours(seen.deployment, seen.workload) {
		return false
	}
	merged, changes := seen.keeps(seen.rendering(s.InstalledImage, upgrade.Note(s, seen.Observed)))
	return changes && seen.differs(merged)
}

// differs tells whether a Deployment asks for something else than the live one,
// and is not merely noted otherwise.
func (seen *observation) differs(merged *appsv1.Deployment) bool {
	return !equality.Semantic.DeepEqual(seen.deployment.Spec, merged.Spec)
}

// note is the state to write on the Deployment.
func (seen *observation) note() upgrade.State { return upgrade.Note(seen.state, seen.Observed) }

// keeps puts a rendered Deployment over the live one, and tells whether that
// changes it.
func (seen *observation) keeps(rendered *appsv1.Deployment) (merged *appsv1.Deployment, changes bool) {
	return render.Merge(seen.deployment, rendered, !upgrade.Noted(seen.state, seen.Observed))
}

// rendering is the Deployment that serves an image with a state noted on it.
// The last one is kept: a look that finds nothing to do asks for one alone,
// several times.
func (seen *observation) rendering(image string, note upgrade.State) *appsv1.Deployment {
	if last := seen.rendered; last.deployment == nil || last.image != image || last.note != note {
		seen.rendered = rendered{image, note, render.Deployment(seen.workload, image, note)}
	}
	return seen.rendered.deployment
}

// unseenJobs looks past the caches for Jobs that they do not show yet: one that
// was created a moment ago must not outlive an abort.
func (r *Reconciler) unseenJobs(ctx context.Context, seen *observation) error {
	jobs, err := r.liveJobs(ctx, seen.workload)
	if err != nil {
		return err
	}
	for task, job := range jobs {
		if seen.Jobs[task].Standing == upgrade.Absent {
			seen.live[task], seen.unshown[task] = job, true
			seen.Jobs[task] = r.observeJob(ctx, task, nil, seen)
		}
	}
	return nil
}

// liveJobs lists the Jobs of an object past the caches.
func (r *Reconciler) liveJobs(ctx context.Context, w render.Workload) (map[upgrade.Task]*batchv1.Job, error) {
	var jobs batchv1.JobList
	if err := r.Live.List(ctx, &jobs, client.InNamespace(w.Namespace), mine(w)); err != nil {
		return nil, fmt.Errorf("list jobs of %s: %w", w.Name, err)
	}
	found := map[upgrade.Task]*batchv1.Job{}
	for i := range jobs.Items {
		for _, task := range upgrade.Tasks {
			if jobs.Items[i].Name == v1alpha1.JobName(w.Name, task) {
				found[task] = &jobs.Items[i]
			}
		}
	}
	return found, nil
}

// confirm repeats the questions about pods past the caches, and that about the
// Deployment where a Job is about to run, or to be taken away because of it, for
// somebody may have turned it back a moment ago, or where they do not show one:
// it may be that of a namesake deleted a moment ago, and its pods be about to
// come.
func (r *Reconciler) confirm(ctx context.Context, seen *observation) error {
	if seen.deployment == nil || seen.handlesJobs() {
		if err := r.liveDeployment(ctx, seen); err != nil {
			return err
		}
	}
	pods, err := list(ctx, r.Live, seen.workload)
	if err != nil {
		return err
	}
	for _, task := range upgrade.Tasks {
		if job := seen.Jobs[task]; job.Standing == upgrade.Absent && len(unfinished(of(pods, string(task)))) > 0 {
			job.Name, job.Standing, job.Progress = v1alpha1.JobName(seen.workload.Name, task), upgrade.Leaving, upgrade.Running
			seen.Jobs[task] = job
		}
	}
	seen.pods = of(pods, render.ComponentAPI)
	observeDeployment(seen.state, seen.workload, seen)
	seen.Confirmed = true
	return r.orders(ctx, seen)
}

func (r *Reconciler) liveDeployment(ctx context.Context, seen *observation) error {
	live := &appsv1.Deployment{}
	found, err := get(ctx, r.Live, seen.workload, seen.workload.Name, live)
	if err != nil {
		return err
	}
	if seen.deployment = nil; found {
		seen.deployment = live
	}
	return nil
}

// list gives all pods of the object. Pods carry our labels alone, so those of
// a deleted namesake are among them, as they must be.
func list(ctx context.Context, from client.Reader, w render.Workload) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := from.List(ctx, &pods, client.InNamespace(w.Namespace), mine(w)); err != nil {
		return nil, fmt.Errorf("list pods of %s: %w", w.Name, err)
	}
	return pods.Items, nil
}

// mine selects everything that was made for an object of this name.
func mine(w render.Workload) client.MatchingLabels {
	return client.MatchingLabels{render.LabelManagedBy: render.ManagedBy, render.LabelName: w.Service, render.LabelInstance: w.Name}
}

func of(pods []corev1.Pod, component string) []corev1.Pod {
	var found []corev1.Pod
	for _, pod := range pods {
		if componentOf(pod) == component {
			found = append(found, pod)
		}
	}
	slices.SortFunc(found, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// componentOf is the task that a pod runs, and the API for every other: also
// for one whose label was taken away to set it apart, for it still works.
func componentOf(pod corev1.Pod) string {
	for _, task := range upgrade.Tasks {
		if pod.Labels[render.LabelComponent] == string(task) {
			return string(task)
		}
	}
	return render.ComponentAPI
}

// unfinished leaves out pods whose containers have ended for good: those
// neither serve nor migrate, whatever keeps the object.
func unfinished(pods []corev1.Pod) []corev1.Pod {
	var found []corev1.Pod
	for _, pod := range pods {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			found = append(found, pod)
		}
	}
	return found
}

func get(ctx context.Context, from client.Reader, w render.Workload, name string, into client.Object) (bool, error) {
	err := from.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: name}, into)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("get %s %s: %w", kindOf(into), name, err)
	}
	return err == nil, nil
}
