package reconcile

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

const (
	// patience is how long a Job may be without a pod, or a pod without a
	// word, before the events are read for the reason.
	patience = 10 * time.Second
	// podPatience is how long a pod of the API may take to become ready before
	// they are.
	podPatience = 2 * time.Minute
	// wordsPause is how long to wait before reading them again.
	wordsPause = 30 * time.Second
	// longest is what is kept of words that others wrote, in bytes.
	longest = 400
)

// wordsOfJob says what a Job waits for, or why it failed, in the words of the
// kubelet, the scheduler, the Job controller or the program itself.
func (r *Reconciler) wordsOfJob(ctx context.Context, job *batchv1.Job, pods []corev1.Pod, p upgrade.Progress, seen *observation) (string, bool) {
	switch p {
	case upgrade.Complete, upgrade.Ending:
		return "", false
	case upgrade.Failed:
		return failureOf(job, pods), true
	case upgrade.Pending, upgrade.Running:
	}
	if job.Spec.Suspend != nil && *job.Spec.Suspend {
		return fmt.Sprintf("Job %s is suspended: it goes on when spec.suspend is lifted", job.Name), true
	}
	tries := ""
	if job.Status.Failed > 0 {
		tries = fmt.Sprintf("%d of %d tries failed", job.Status.Failed, *job.Spec.BackoffLimit+1)
		if last := lastWords(pods); last != "" {
			tries += ": " + last
		}
	}
	for _, pod := range unfinished(pods) {
		if note := stuck(pod); note != "" {
			return also(tries, fmt.Sprintf("pod %s cannot start: %s", pod.Name, note)), true
		}
		if done, left := sidecars(pod); left != "" {
			return fmt.Sprintf("pod %s: %s has ended, %s has not; only when it ends is the Job complete", pod.Name, done, left), true
		}
		if !started(pod) && r.Now().Sub(pod.CreationTimestamp.Time) > patience {
			seen.again = sooner(seen.again, wordsPause)
			if said := r.warned(ctx, pod.Namespace, pod.UID); said != "" {
				return also(tries, fmt.Sprintf("pod %s cannot start: %s", pod.Name, said)), true
			}
		}
		if pod.DeletionTimestamp != nil {
			return also(tries, "waiting for "+called(pod)), false
		}
	}
	switch age := r.Now().Sub(job.CreationTimestamp.Time); {
	case len(pods) == 0 && age > patience:
		seen.again = sooner(seen.again, wordsPause)
		if said := r.warned(ctx, job.Namespace, job.UID); said != "" {
			return fmt.Sprintf("Job %s has no pod: %s", job.Name, said), true
		}
	case p == upgrade.Pending:
		seen.again = sooner(seen.again, patience+time.Second)
	}
	return also(tries, fmt.Sprintf("Job %s running since %s", job.Name, clock(job.CreationTimestamp.Time))), tries != ""
}

func saidAt(event corev1.Event) time.Time {
	switch {
	case event.Series != nil:
		return event.Series.LastObservedTime.Time
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp.Time
	}
	return event.EventTime.Time
}

// wordsOfDeployment says what a rollout waits for.
func wordsOfDeployment(live *appsv1.Deployment, pods []corev1.Pod) (string, bool) {
	for _, condition := range live.Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			return bounded(condition.Reason + ": " + condition.Message), true
		}
	}
	for _, pod := range unfinished(pods) {
		if note := stuck(pod); note != "" {
			return fmt.Sprintf("pod %s: %s", pod.Name, note), true
		}
	}
	for _, condition := range live.Status.Conditions {
		if condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionFalse {
			return bounded(condition.Reason + ": " + condition.Message), true
		}
	}
	return "", false
}

// explain adds, where pods of the API are late, what was last warned of about one
// of them: that it waits for a volume, or fails its probes.
func (r *Reconciler) explain(ctx context.Context, seen *observation) {
	d := &seen.Deployment
	if d.Standing != upgrade.Current || d.Available >= d.Replicas && d.Updated >= d.Replicas {
		return
	}
	for _, pod := range unfinished(seen.pods) {
		late := r.Now().Sub(pod.CreationTimestamp.Time) - podPatience
		switch {
		case pod.DeletionTimestamp != nil || isReady(pod) || stuck(pod) != "":
		case late <= 0:
			seen.again = sooner(seen.again, time.Second-late)
		default:
			seen.again = sooner(seen.again, wordsPause)
			if said := r.warned(ctx, pod.Namespace, pod.UID); said != "" {
				d.Note, d.Trouble = also(d.Note, fmt.Sprintf("pod %s is not ready: %s", pod.Name, said)), true
				return
			}
		}
	}
}

func isReady(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// stuck says why a pod does not start or does not stay up; empty when it is
// merely on its way.
func stuck(pod corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return bounded(condition.Reason + ": " + condition.Message)
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, status := range statuses {
			waiting := status.State.Waiting
			if waiting == nil || waiting.Reason == "ContainerCreating" || waiting.Reason == "PodInitializing" || waiting.Reason == "" {
				continue
			}
			words := bounded(waiting.Reason + ": " + waiting.Message)
			if ended := status.LastTerminationState.Terminated; ended != nil {
				words += fmt.Sprintf(" (last exit code %d: %s)", ended.ExitCode, tail(ended.Message, longest/2))
			}
			return words
		}
	}
	return ""
}

// sidecars finds a container that keeps a pod going after another has done
// its work.
func sidecars(pod corev1.Pod) (done, left string) {
	for _, status := range pod.Status.ContainerStatuses {
		switch {
		case status.State.Terminated != nil && status.State.Terminated.ExitCode == 0:
			done = "container " + status.Name
		case status.State.Running != nil:
			left = "container " + status.Name
		}
	}
	if done == "" {
		return "", ""
	}
	return done, left
}

// failureOf is why a Job failed: the words of its last pod, or of the Job
// controller.
func failureOf(job *batchv1.Job, pods []corev1.Pod) string {
	said := lastWords(pods)
	for _, condition := range job.Status.Conditions {
		if condition.Type == batchv1.JobFailed && condition.Status == corev1.ConditionTrue {
			if said == "" || condition.Reason != batchv1.JobReasonBackoffLimitExceeded {
				return also(bounded(condition.Reason+": "+condition.Message), said)
			}
		}
	}
	return said
}

// lastWords is what the container that failed last wrote at its end.
func lastWords(pods []corev1.Pod) string {
	var last *corev1.ContainerStateTerminated
	for _, pod := range pods {
		for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
			for _, status := range statuses {
				ended := status.State.Terminated
				if ended != nil && ended.ExitCode != 0 && (last == nil || ended.FinishedAt.After(last.FinishedAt.Time)) {
					last = ended
				}
			}
		}
	}
	if last == nil {
		return ""
	}
	words := fmt.Sprintf("exit code %d", last.ExitCode)
	if message := tail(last.Message, longest); message != "" {
		words += ": " + message
	}
	return words
}

// ending names the pods that are still there.
func ending(pods []corev1.Pod) string {
	var names []string
	for _, pod := range pods {
		names = append(names, called(pod))
	}
	return strings.Join(names, ", ")
}

// called is a pod's name, and since when it is ending.
func called(pod corev1.Pod) string {
	if pod.DeletionTimestamp == nil {
		return pod.Name
	}
	grace := time.Duration(0)
	if pod.DeletionGracePeriodSeconds != nil {
		grace = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
	}
	return fmt.Sprintf("%s (terminating since %s)", pod.Name, clock(pod.DeletionTimestamp.Add(-grace)))
}

// What credentials look like in what programs print: before the last @ of a
// URL or of a word that holds a colon, as oslo's and SQLAlchemy's connection
// texts are written, and behind the names people give to them.
var (
	control     = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0e-\x1f\x7f]`)
	urls        = regexp.MustCompile(`://[^@"'\n]{0,200}@`)
	accounts    = regexp.MustCompile(`[^\s"'=]*:[^\s"']*@`)
	assignments = regexp.MustCompile(`(?i)((?:password|passwd|pwd|secret|token|api_?key|connection)["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s,;]+)`)
)

// blotted takes credentials and control sequences out of words of others and
// makes one line of them. An image digest keeps its @.
func blotted(words string) string {
	words = control.ReplaceAllString(words, "")
	words = strings.ReplaceAll(words, "@sha256:", "\x00sha256:")
	words = urls.ReplaceAllString(words, "://***@")
	words = accounts.ReplaceAllStringFunc(words, func(account string) string {
		scheme, _, isURL := strings.Cut(account, "://")
		if isURL {
			return scheme + "://***@"
		}
		return "***@"
	})
	words = assignments.ReplaceAllString(words, "${1}***")
	words = strings.ReplaceAll(words, "\x00sha256:", "@sha256:")
	return strings.Join(strings.Fields(words), " ")
}

// bounded shortens words of others to their beginning.
func bounded(words string) string {
	words = blotted(words)
	if len(words) <= longest {
		return words
	}
	return strings.ToValidUTF8(words[:longest], "") + "…"
}

// tail shortens a termination message to its end, where programs say what was
// wrong.
func tail(words string, most int) string {
	words = blotted(words)
	if len(words) <= most {
		return words
	}
	return "…" + strings.ToValidUTF8(words[len(words)-most:], "")
}

func also(first, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	return first + "; " + second
}

func clock(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05Z") }
