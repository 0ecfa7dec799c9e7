package reconcile

import (
	"context"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// observeJob reduces one Job and its pods. Pods of a Job that was there before
// may be left; they say nothing of how far this one is.
func (r *Reconciler) observeJob(ctx context.Context, task upgrade.Task, pods []corev1.Pod, seen *observation) upgrade.Job {
	w, work, job := seen.workload, upgrade.WorkOf(seen.state, seen.desired, task), seen.live[task]
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
	pods = slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return !metav1.IsControlledBy(&pod, job) })
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
	found.Stuck = found.Progress == upgrade.Running && hangs(pods)
	if found.Progress == upgrade.Failed || found.Progress == upgrade.Pending || found.Stuck {
		// Of others nobody asks, and rendering takes its time.
		found.Revised = job.Annotations[render.AnnotationTemplate] != render.Job(w, work).Annotations[render.AnnotationTemplate]
	}
	found.Note, found.Trouble = r.wordsOfJob(ctx, job, pods, found.Progress, seen)
	r.count(w, task, job, found.Progress)
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

// hangs tells whether no pod works on a step, and each has one that cannot
// start. What others have put into the pod works on none.
func hangs(pods []corev1.Pod) bool {
	active := unfinished(pods)
	for _, pod := range active {
		open := true
		for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
			for _, status := range statuses {
				if !render.IsStep(componentOf(pod), status.Name) {
					continue
				}
				if status.State.Running != nil {
					return false
				}
				open = status.State.Terminated == nil
			}
		}
		if !open || stuck(pod) == "" {
			return false
		}
	}
	return len(active) > 0
}

// contracted tells whether a Job proves that a walk noted on the Deployment
// has been contracted: its contract, or the sync that only follows promotion. It
// proves that also where the object was deleted and its children were left.
func contracted(record upgrade.State, w render.Workload, jobs map[upgrade.Task]*batchv1.Job) bool {
	if record.Target == "" {
		return false
	}
	proof := func(task upgrade.Task, work upgrade.Work) bool {
		job := jobs[task]
		return job != nil && ours(job, w) && job.Annotations[render.AnnotationWork] == render.Identity(w, work)
	}
	contract := upgrade.Work{Task: upgrade.Contract, From: record.Installed, To: record.Target, Attempt: record.Attempt, Image: record.TargetImage}
	sync := upgrade.Work{Task: upgrade.Sync, From: record.Target, To: record.Target, Attempt: record.Attempt, Image: record.TargetImage}
	return (proof(upgrade.Contract, contract) && progress(jobs[upgrade.Contract], nil) == upgrade.Complete) || proof(upgrade.Sync, sync)
}

// count tells the meter about a finished Job.
func (r *Reconciler) count(w render.Workload, task upgrade.Task, job *batchv1.Job, p upgrade.Progress) {
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
	r.Meter.Job(r.Service.Kind, w.Namespace, w.Name, task, string(job.UID), outcome, at)
}
