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
	live       map[upgrade.Task]*batchv1.Job
	unshown    map[upgrade.Task]bool // Jobs that are there and that the cache does not show
	deployment *appsv1.Deployment
	address    *corev1.Service
	config     *corev1.ConfigMap
	pods       []corev1.Pod // of the API
	// again asks to look again soon, for words that no watch brings.
	again time.Duration
}

// observe reads the children through the caches, and past them where the
// planner is about to rely on pods being gone.
func (r *Reconciler) observe(ctx context.Context, object service.Object, state upgrade.State, desired upgrade.Desired, w render.Workload) (observation, error) {
	seen := observation{live: map[upgrade.Task]*batchv1.Job{}, unshown: map[upgrade.Task]bool{}, Observed: upgrade.Observed{Jobs: map[upgrade.Task]upgrade.Job{}}}
	if condition := meta.FindStatusCondition(object.Record().Conditions, v1alpha1.ConditionDatabaseReady); condition != nil {
		seen.Ready = condition.Status == "True"
		if condition.ObservedGeneration == object.GetGeneration() {
			seen.Reported = upgrade.Reason(condition.Reason)
		}
	}
	pods, err := list(ctx, r.Client, w)
	if err != nil {
		return seen, err
	}
	if err := r.children(ctx, w, &seen); err != nil {
		return seen, err
	}
	for _, task := range upgrade.Tasks {
		seen.Jobs[task] = r.observeJob(ctx, w, upgrade.WorkOf(state, desired, task), seen.live[task], of(pods, string(task)), &seen)
	}
	seen.pods = of(pods, render.ComponentAPI)
	observeDeployment(state, w, &seen)
	if !decisive(state, desired, seen.Observed) {
		return seen, nil
	}
	if upgrade.Aborts(state, desired) {
		if err := r.unseenJobs(ctx, desired, state, w, &seen); err != nil {
			return seen, err
		}
	}
	return seen, r.confirm(ctx, state, w, &seen)
}

// decisive tells whether the next decision would be another if the caches were
// known to be right, so that it must be found out.
func decisive(s upgrade.State, d upgrade.Desired, o upgrade.Observed) bool {
	doubting := upgrade.Decide(s, d, o)
	o.Confirmed = true
	return upgrade.Decide(s, d, o).Step != doubting.Step
}

// unseenJobs looks past the caches for phase Jobs that they do not show yet:
// one that was created a moment ago must not outlive an abort.
func (r *Reconciler) unseenJobs(ctx context.Context, d upgrade.Desired, s upgrade.State, w render.Workload, seen *observation) error {
	var jobs batchv1.JobList
	if err := r.Live.List(ctx, &jobs, client.InNamespace(w.Namespace), mine(w)); err != nil {
		return fmt.Errorf("list jobs of %s: %w", w.Name, err)
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		for _, task := range upgrade.PhaseTasks {
			if job.Name == v1alpha1.JobName(w.Name, task) && seen.Jobs[task].Standing == upgrade.Absent {
				seen.live[task], seen.unshown[task] = job, true
				seen.Jobs[task] = r.observeJob(ctx, w, upgrade.WorkOf(s, d, task), job, nil, seen)
			}
		}
	}
	return nil
}

// confirm repeats the questions about pods past the caches, and that about a
// Deployment that they do not show: it may be that of a namesake deleted a
// moment ago, and its pods be about to come.
func (r *Reconciler) confirm(ctx context.Context, s upgrade.State, w render.Workload, seen *observation) error {
	if seen.deployment == nil {
		unshown := &appsv1.Deployment{}
		found, err := get(ctx, r.Live, w, w.Name, unshown)
		if err != nil {
			return err
		}
		if found {
			seen.deployment = unshown
			seen.again = sooner(seen.again, conflictPause) // until they show it
		}
	}
	pods, err := list(ctx, r.Live, w)
	if err != nil {
		return err
	}
	for _, task := range upgrade.PhaseTasks {
		if job := seen.Jobs[task]; job.Standing == upgrade.Absent && len(unfinished(of(pods, string(task)))) > 0 {
			job.Name, job.Standing, job.Progress = v1alpha1.JobName(w.Name, task), upgrade.Leaving, upgrade.Running
			seen.Jobs[task] = job
		}
	}
	seen.pods = of(pods, render.ComponentAPI)
	observeDeployment(s, w, seen)
	seen.Confirmed = true
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
