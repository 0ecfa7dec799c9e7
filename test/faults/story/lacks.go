package story

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// What an object may lack.

func lacks(holds bool, format string, args ...any) string {
	if holds {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func database(o Object) metav1.Condition {
	if c := meta.FindStatusCondition(o.Record().Conditions, v1alpha1.ConditionDatabaseReady); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// rests demands that a release is installed and everything is ready, with no walk under way.
func (p *Play) rests(release string) func(Object) string {
	return func(o Object) string {
		s, c := o.State(), o.Record()
		ready := meta.IsStatusConditionTrue(c.Conditions, v1alpha1.ConditionReady)
		holds := s.Installed == release && s.InstalledImage == p.Image(release) && !s.Walking() && s.Ahead == "" && ready && c.ObservedGeneration == o.GetGeneration()
		return lacks(holds, "recorded %+v, ready %t, %s", s, ready, database(o).Message)
	}
}

// synced is rests, and the sync of the release is complete.
func (p *Play) synced(release string) func(Object) string {
	return func(o Object) string {
		if lack := p.rests(release)(o); lack != "" {
			return lack
		}
		job := p.Job(upgrade.Sync)
		holds := job != nil && job.Spec.Template.Spec.Containers[0].Image == p.Image(release) && OutcomeOf(job) == batchv1.JobComplete
		return lacks(holds, "the sync is not complete")
	}
}

// says demands a reason, said of the wish as it is.
func says(reason upgrade.Reason) func(Object) string {
	return func(o Object) string {
		c := database(o)
		return lacks(c.Reason == string(reason) && c.ObservedGeneration == o.GetGeneration(), "%s: %s (generation %d of %d)", c.Reason, c.Message, c.ObservedGeneration, o.GetGeneration())
	}
}

// in demands a phase.
func in(phase upgrade.Phase) func(Object) string {
	return func(o Object) string { return lacks(o.State().Phase == phase, "phase is %q", o.State().Phase) }
}

// OutcomeOf is how a Job has ended: Complete, Failed, or empty while it has not.
func OutcomeOf(job *batchv1.Job) batchv1.JobConditionType {
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return c.Type
		}
	}
	return ""
}
