package render

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// jobGraceSeconds lets a schema change that a node drain interrupts come to
// its end: DDL is not transactional, and half of it is worse than a wait.
const jobGraceSeconds int64 = 300

// Job is the Job that does a piece of work. It is made to run one pod at a
// time, ever: a replacement waits until the pod before it has ended, and a
// disruption does not use up a retry.
func Job(w Workload, work upgrade.Work) *batchv1.Job {
	one, retries, grace := int32(1), int32(4), jobGraceSeconds
	replacement := batchv1.Failed
	component := string(work.Task)
	job := &batchv1.Job{
		ObjectMeta: w.meta(v1alpha1.JobName(w.Name, work.Task), component),
		Spec: batchv1.JobSpec{
			Parallelism: &one, Completions: &one, BackoffLimit: &retries,
			PodReplacementPolicy:  &replacement,
			ActiveDeadlineSeconds: w.Jobs.ActiveDeadlineSeconds,
			PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
				Action:          batchv1.PodFailurePolicyActionIgnore,
				OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
			}}},
		},
	}
	var containers []corev1.Container
	for i, command := range w.Tasks[work.Task] {
		containers = append(containers, corev1.Container{Name: stepName(component, i), Command: slices.Clone(command), Resources: jobResources(w.Jobs.Resources)})
	}
	if work.Task == upgrade.Sync {
		for i, command := range w.Install {
			containers = append(containers, corev1.Container{Name: stepName(install, i), Command: slices.Clone(command.Words), Env: command.Env, Resources: jobResources(w.Jobs.Resources)})
		}
	}
	pod := w.podSpec(component, work.Image, w.Jobs.Placement, containers...)
	// The commands of one task run in order, and the first that fails ends it.
	last := len(pod.Containers) - 1
	pod.InitContainers, pod.Containers = pod.Containers[:last], pod.Containers[last:]
	pod.RestartPolicy = corev1.RestartPolicyNever
	pod.TerminationGracePeriodSeconds = &grace
	job.Spec.Template = seal(corev1.PodTemplateSpec{ObjectMeta: w.podMeta(component, w.Jobs.PodLabels, w.Jobs.PodAnnotations), Spec: pod})
	job.Annotations = map[string]string{
		AnnotationWork:     Identity(w, work),
		AnnotationTemplate: hash(job.Spec),
	}
	return job
}

// install is how the steps of a sync are called that bring what a new service
// needs beside its schema.
const install = "install"

func stepName(of string, i int) string { return fmt.Sprintf("%s-%d", of, i+1) }

// IsStep tells whether a container of a Job's pod does a step of its work, and
// was not put there by somebody else.
func IsStep(component, container string) bool {
	return strings.HasPrefix(container, component+"-") || component == string(upgrade.Sync) && strings.HasPrefix(container, install+"-")
}

// Identity names the work of a Job: what it walks, with which image and
// command, on which database. Two Jobs with one identity do the same.
func Identity(w Workload, work upgrade.Work) string {
	var commands []string
	for _, command := range w.Tasks[work.Task] {
		commands = append(commands, strings.Join(command, " "))
	}
	return fmt.Sprintf("%s %s → %s; attempt %d; image %s; run %s; database %s",
		work.Task, work.From, work.To, work.Attempt, work.Image, strings.Join(commands, " && "), w.DatabaseName())
}
