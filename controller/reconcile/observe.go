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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// children reads Jobs, Deployment, Service and ConfigMap. What a cache should
// show for a while, and does not, is asked for past it.
func (r *Reconciler) children(ctx context.Context, w render.Workload, seen *observation) error {
	for _, task := range upgrade.Tasks {
		job, name := &batchv1.Job{}, v1alpha1.JobName(w.Name, task)
		found, err := get(ctx, r.Client, w, name, job)
		if left, known := r.deleted.quiet(w.Namespace, name, r.Now()); err == nil && !found && known && left == 0 {
			if found, err = get(ctx, r.Live, w, name, job); err == nil && !found {
				r.deleted.forget(w.Namespace, name)
			}
			if seen.unshown[task] = found; found {
				seen.again = sooner(seen.again, foreignPause) // no watch may ever tell of its end
			}
		}
		if err != nil {
			return err
		}
		if found {
			seen.live[task] = job
		}
	}
	deployment, address, config := &appsv1.Deployment{}, &corev1.Service{}, &corev1.ConfigMap{}
	found, err := r.deployment(ctx, w, deployment)
	if err != nil {
		return err
	}
	if found {
		seen.deployment = deployment
	}
	if found, err = get(ctx, r.Client, w, w.Name, address); err != nil {
		return err
	}
	if found {
		seen.address = address
	}
	if found, err = get(ctx, r.Client, w, w.ConfigName(), config); err != nil {
		return err
	}
	if found {
		seen.config = config
	}
	return nil
}

// deployment reads the Deployment, past the cache while that is behind what we
// wrote last.
func (r *Reconciler) deployment(ctx context.Context, w render.Workload, into *appsv1.Deployment) (bool, error) {
	key := client.ObjectKey{Namespace: w.Namespace, Name: w.Name}
	found, err := get(ctx, r.Client, w, w.Name, into)
	if err != nil {
		return false, err
	}
	var shown metav1.Object
	if found {
		shown = into
	}
	if behind, _ := r.rolled.behind(key, shown, r.Now()); !behind {
		return found, nil
	}
	*into = appsv1.Deployment{}
	if found, err = get(ctx, r.Live, w, w.Name, into); err != nil {
		return false, err
	}
	if !found || r.rolled.older(key, into) {
		r.rolled.forget(key)
	}
	return found, nil
}

func get(ctx context.Context, from client.Reader, w render.Workload, name string, into client.Object) (bool, error) {
	err := from.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: name}, into)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("get %s %s: %w", kindOf(into), name, err)
	}
	return err == nil, nil
}

// observeJob reduces one Job and its pods.
func (r *Reconciler) observeJob(ctx context.Context, w render.Workload, work upgrade.Work, job *batchv1.Job, pods []corev1.Pod, seen *observation) upgrade.Job {
	active := unfinished(pods)
	if job == nil {
		if left, known := r.deleted.quiet(w.Namespace, v1alpha1.JobName(w.Name, work.Task), r.Now()); known && len(active) == 0 {
			seen.again = sooner(seen.again, max(left, conflictPause))
			return upgrade.Job{Name: v1alpha1.JobName(w.Name, work.Task), Standing: upgrade.Leaving, Progress: upgrade.Running, Note: "it was deleted a moment ago, a pod of it may still come"}
		}
		if len(active) == 0 {
			return upgrade.Job{}
		}
		return upgrade.Job{Name: v1alpha1.JobName(w.Name, work.Task), Standing: upgrade.Leaving, Progress: upgrade.Running, Note: ending(active)}
	}
	found := upgrade.Job{Name: job.Name, Progress: progress(job, pods)}
	if finished := found.Progress == upgrade.Complete || found.Progress == upgrade.Failed; seen.unshown[work.Task] {
		r.deleted.unshown(job, finished)
	} else {
		r.deleted.seen(job, finished)
	}
	switch {
	case !controlled(job, w):
		found.Standing, found.Owner = upgrade.Foreign, ownerOf(job, w.Owner)
		seen.again = sooner(seen.again, foreignPause)
		return found
	case job.DeletionTimestamp != nil:
		found.Standing, found.Note = upgrade.Leaving, ending(active)
		return found
	case job.Annotations[render.AnnotationWork] != render.Identity(w, work):
		found.Standing = upgrade.Stale
	default:
		found.Standing = upgrade.Current
	}
	if found.Progress == upgrade.Failed || found.Progress == upgrade.Pending {
		// Of others nobody asks, and rendering takes its time.
		found.Revised = job.Annotations[render.AnnotationTemplate] != render.Job(w, work).Annotations[render.AnnotationTemplate]
	}
	found.Note, found.Trouble = r.wordsOfJob(ctx, job, pods, found.Progress, seen)
	r.count(work.Task, job, found.Progress)
	return found
}

// progress trusts two conditions as final, Complete and Failed with status
// True, and nothing else.
func progress(job *batchv1.Job, pods []corev1.Pod) upgrade.Progress {
	for _, condition := range job.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case batchv1.JobComplete:
			return upgrade.Complete
		case batchv1.JobFailed:
			return upgrade.Failed
		}
	}
	running := job.Status.Failed > 0 || (job.Status.Ready != nil && *job.Status.Ready > 0)
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodSucceeded {
			return upgrade.Ending
		}
		running = running || started(pod)
	}
	switch {
	case job.Status.Succeeded > 0:
		return upgrade.Ending
	case running:
		return upgrade.Running
	}
	return upgrade.Pending
}

// started tells whether a container of the pod has ever run.
func started(pod corev1.Pod) bool {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, status := range statuses {
			if status.State.Running != nil || status.State.Terminated != nil || status.LastTerminationState.Terminated != nil {
				return true
			}
		}
	}
	return false
}

// observeDeployment reduces the Deployment and the pods of the API.
func observeDeployment(s upgrade.State, w render.Workload, seen *observation) {
	live := seen.deployment
	seen.Deployment = upgrade.Deployment{Name: w.Name}
	d := &seen.Deployment
	image := s.TargetImage
	if !s.Walking() {
		image = s.InstalledImage
	}
	rendered := render.Deployment(w, image, s)
	observePods(rendered.Spec.Template.Annotations[render.AnnotationTemplate], seen)
	if live == nil {
		return
	}
	switch {
	case !ours(live, w):
		d.Standing, d.Owner = upgrade.Foreign, ownerOf(live, w.Owner)
		seen.again = sooner(seen.again, foreignPause)
		return
	case live.DeletionTimestamp != nil:
		d.Standing = upgrade.Leaving
	default:
		d.Standing = upgrade.Current
	}
	if record, ok := render.ReadRecord(live.Annotations[render.AnnotationRecord]); ok {
		seen.Recorded = &record
		seen.RecordedDone = contracted(record, w, seen.live)
	}
	if containers := live.Spec.Template.Spec.Containers; len(containers) > 0 {
		d.Image = containers[0].Image
	}
	d.Paused = live.Spec.Paused
	d.Unobserved = live.Status.ObservedGeneration < live.Generation
	d.Unrendered = !render.UpToDate(live, rendered)
	d.Replicas = 1
	if live.Spec.Replicas != nil {
		d.Replicas = *live.Spec.Replicas
	}
	d.Total, d.Updated, d.Available = live.Status.Replicas, live.Status.UpdatedReplicas, live.Status.AvailableReplicas
	d.Release = live.Spec.Template.Annotations[render.AnnotationRelease]
	if database := render.DatabaseOf(live.Spec.Template); database != "" {
		d.Elsewhere = database != w.DatabaseName()
	}
	d.Note, d.Trouble = wordsOfDeployment(live, seen.pods)
}

// observePods reduces the pods of the API by what is noted on them: which
// template they are of, and which release they were rendered for. Their image
// would not tell, since a cluster may rewrite it.
func observePods(template string, seen *observation) {
	d := &seen.Deployment
	for _, pod := range unfinished(seen.pods) {
		d.Pods++
		release := pod.Annotations[render.AnnotationRelease]
		if release == "" {
			release = upgrade.Unknown
		}
		if !slices.Contains(d.Releases, release) {
			d.Releases = append(d.Releases, release)
		}
		if pod.Annotations[render.AnnotationTemplate] != template {
			d.Outdated = append(d.Outdated, called(pod))
		}
	}
}

// contracted tells whether a Job proves that a walk noted on the Deployment
// has been contracted: its contract, or the sync that only follows promotion.
func contracted(record upgrade.State, w render.Workload, jobs map[upgrade.Task]*batchv1.Job) bool {
	if record.Target == "" {
		return false
	}
	proof := func(task upgrade.Task, work upgrade.Work) bool {
		job := jobs[task]
		return job != nil && controlled(job, w) && job.Annotations[render.AnnotationWork] == render.Identity(w, work)
	}
	contract := upgrade.Work{Task: upgrade.Contract, From: record.Installed, To: record.Target, Attempt: record.Attempt, Image: record.TargetImage}
	sync := upgrade.Work{Task: upgrade.Sync, From: record.Target, To: record.Target, Attempt: record.Attempt, Image: record.TargetImage}
	return (proof(upgrade.Contract, contract) && progress(jobs[upgrade.Contract], nil) == upgrade.Complete) || proof(upgrade.Sync, sync)
}

// count tells the meter about a finished Job.
func (r *Reconciler) count(task upgrade.Task, job *batchv1.Job, p upgrade.Progress) {
	if p != upgrade.Complete && p != upgrade.Failed {
		return
	}
	outcome, at := "complete", job.CreationTimestamp.Time
	if p == upgrade.Failed {
		outcome = "failed"
	}
	for _, condition := range job.Status.Conditions {
		if condition.Status == corev1.ConditionTrue && (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) {
			at = condition.LastTransitionTime.Time
		}
	}
	r.Meter.Job(r.Service.Kind, task, string(job.UID), outcome, at)
}
