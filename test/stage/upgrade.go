package stage

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// Patch is the merge patch that asks for a release and an image tag in one edit.
func Patch(release, tag string) string {
	return fmt.Sprintf(`{"spec":{"openStackRelease":"%s","image":{"tag":"%s"}}}`, release, tag)
}

// Tag gives an image that is in the node another tag.
func (s *Stage) Tag(ctx context.Context, from, to string) error {
	return s.inside(ctx, "ctr", "images", "tag", "--force", s.kind.Image(from), s.kind.Image(to))
}

// inside runs a command in the node.
func (s *Stage) inside(ctx context.Context, command ...string) error {
	args := append([]string{"exec", "--name", s.Cluster, "--"}, command...)
	if out, err := exec.CommandContext(ctx, s.layout.Self(), args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s in the node: %w: %s", strings.Join(command, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Job reads the Job of a task; nil when there is none.
func (s *Stage) Job(ctx context.Context, key client.ObjectKey, task upgrade.Task) (*batchv1.Job, error) {
	var job batchv1.Job
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: v1alpha1.JobName(key.Name, task)}, &job)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get the Job of %s: %w", task, err)
	}
	return &job, nil
}

// SyncedBy looks whether the sync of an image is complete.
func (s *Stage) SyncedBy(key client.ObjectKey, image string) Look {
	return func(ctx context.Context) (bool, string, error) {
		job, err := s.Job(ctx, key, upgrade.Sync)
		switch {
		case err != nil:
			return false, err.Error(), nil
		case job == nil:
			return false, "no Job yet", nil
		case job.Spec.Template.Spec.Containers[0].Image != image:
			return false, "the Job is still that of " + job.Spec.Template.Spec.Containers[0].Image, nil
		}
		return Complete(job), jobWords(job), nil
	}
}

// Complete tells whether a Job has done its work.
func Complete(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue
	})
}

func jobWords(job *batchv1.Job) string {
	switch {
	case job.DeletionTimestamp != nil:
		return "Job " + job.Name + " is being deleted"
	case Complete(job):
		return "Job " + job.Name + " is complete"
	case job.Status.Ready != nil && *job.Status.Ready > 0:
		return "Job " + job.Name + " runs"
	case job.Status.StartTime != nil && job.Status.Active == 0:
		return "Job " + job.Name + " is finishing"
	}
	return "Job " + job.Name + " is starting"
}

// Doing is what an object's upgrade is at right now, in the cluster's own figures.
func (s *Stage) Doing(ctx context.Context, key client.ObjectKey, phase string) string {
	if task, ok := upgrade.PhaseTask(upgrade.Phase(phase)); ok {
		job, err := s.Job(ctx, key, task)
		if err != nil || job == nil {
			return "the Job is not there yet"
		}
		return jobWords(job)
	}
	var d appsv1.Deployment
	if err := s.Client.Get(ctx, key, &d); err != nil {
		return "the Deployment is not there yet"
	}
	pods, err := s.Pods(ctx, key, "api")
	if err != nil {
		return err.Error()
	}
	ending := 0
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			ending++
		}
	}
	return fmt.Sprintf("%d of %d pods run the new template, %d available, %d terminating", d.Status.UpdatedReplicas, *d.Spec.Replicas, d.Status.AvailableReplicas, ending)
}

// Pods lists the pods of an object: those that serve are of component api, those of a Job of the task it does.
func (s *Stage) Pods(ctx context.Context, key client.ObjectKey, component string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := s.Client.List(ctx, &pods, client.InNamespace(key.Namespace), client.MatchingLabels{
		"app.kubernetes.io/managed-by": "openstack-upgrade", "app.kubernetes.io/instance": key.Name, "app.kubernetes.io/component": component})
	if err != nil {
		return nil, fmt.Errorf("list pods of %s: %w", key, err)
	}
	return pods.Items, nil
}

// Events lists what the controller has told about an object, in the order of time.
func (s *Stage) Events(ctx context.Context, key client.ObjectKey) ([]eventsv1.Event, error) {
	var list eventsv1.EventList
	if err := s.Client.List(ctx, &list, client.InNamespace(key.Namespace)); err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	events := slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool {
		return e.Regarding.Kind != s.kind.Name || e.Regarding.Name != key.Name
	})
	slices.SortStableFunc(events, func(a, b eventsv1.Event) int { return toldAt(a).Compare(toldAt(b)) })
	return events, nil
}

func toldAt(e eventsv1.Event) time.Time {
	if !e.EventTime.IsZero() {
		return e.EventTime.Time
	}
	return e.DeprecatedFirstTimestamp.Time
}

// Install makes a namespace, a database and a Glance in it, as a user would, and returns the object's place. What was
// there of an earlier run is removed first.
func (s *Stage) Install(ctx context.Context, g Glance, database string) (client.ObjectKey, error) {
	if err := s.Namespace(ctx, g.Namespace); err != nil {
		return g.Key(), err
	}
	url, err := s.Database(ctx, database)
	if err != nil {
		return g.Key(), err
	}
	if err := s.PutConnection(ctx, g.Namespace, url); err != nil {
		return g.Key(), err
	}
	_, err = s.Kubectl(ctx, g.Manifest(), "apply", "-f", "-")
	return g.Key(), err
}

// Moves counts the writes on film that moved the record of an upgrade; all others only said what is waited for.
func (f *Film) Moves() int {
	moves := 0
	moments := f.Moments()
	for i := 1; i < len(moments); i++ {
		before, after := moments[i-1].Object.Record(), moments[i].Object.Record()
		if before.UpgradePhase != after.UpgradePhase || before.TargetRelease != after.TargetRelease || before.InstalledRelease != after.InstalledRelease {
			moves++
		}
	}
	return moves
}
