package walks

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/faults/wire"
)

const (
	// bound is how long a walk may take to come to rest once nothing disturbs it any more: an upgrade and what is left of
	// another, Jobs of two seconds each, on a machine that does a dozen such walks side by side.
	bound = 2 * time.Minute
	// silence is how long the controller must have written nothing for what it does to count as done.
	silence = 2 * time.Second
)

// repair takes back every fault, asks for something that the law accepts, and waits for rest.
func (r *runner) repair() {
	r.t.Helper()
	r.say("repair")
	r.clear(&r.storm)
	r.calm()
	r.heal()
	if o, err := r.now(r.t.Context()); err == nil && o == nil {
		r.create()
	}
	already := false
	deadline := time.Now().Add(bound)
	for lack := "nothing was looked at"; lack != ""; {
		if time.Now().After(deadline) {
			r.t.Fatalf("not at rest %s after the last fault: %s", bound, lack)
		}
		lack, already = r.mend(already)
		time.Sleep(100 * time.Millisecond)
	}
	r.say("at rest")
}

// mend does what a person does next who looks at the object, and says what is still lacking.
func (r *runner) mend(already bool) (lack string, hasAsked bool) {
	r.t.Helper()
	ctx := r.t.Context()
	o, err := r.now(ctx)
	switch {
	case err != nil:
		return err.Error(), already
	case o == nil:
		return "there is no object", already
	}
	s, condition := o.State(), meta.FindStatusCondition(o.Record().Conditions, v1alpha1.ConditionDatabaseReady)
	current := condition != nil && condition.ObservedGeneration == o.GetGeneration()
	switch {
	case !already && current, current && upgrade.Check(s, tables[r.Service].Wish(o)) != nil, current && s.Ahead != "" && !s.Walking() && !asked(o).same(r.good(s)):
		if wanted := r.good(s); !wanted.same(asked(o)) {
			r.request(wanted)
		}
		return "a good wish was asked for a moment ago", true
	case current && strings.HasSuffix(condition.Reason, "Failed"):
		r.retry()
		return condition.Message, already
	case current && condition.Reason == string(upgrade.VersionParseError) && strings.Contains(condition.Message, "or delete that Job"):
		r.dropPhaseJobs()
		return condition.Message, already
	}
	return r.unsettled(ctx, o), already
}

// dropPhaseJobs answers the question of whether Jobs without a record are of a database that is no more.
func (r *runner) dropPhaseJobs() {
	r.t.Helper()
	for _, task := range upgrade.PhaseTasks {
		job := &batchv1.Job{}
		if err := r.Client.Get(r.t.Context(), client.ObjectKey{Namespace: r.ns, Name: v1alpha1.JobName(r.name, task)}, job); err == nil {
			r.say("delete Job %s, of which nothing is on record", job.Name)
			r.remove(job)
		}
	}
}

// unsettled says what an object lacks of being at rest where it was asked to be.
func (r *runner) unsettled(ctx context.Context, o object) string {
	s, record := o.State(), o.Record()
	wanted := tables[r.Service].Wish(o)
	switch {
	case record.ObservedGeneration != o.GetGeneration() || !meta.IsStatusConditionTrue(record.Conditions, v1alpha1.ConditionReady),
		s.Walking() || s.Ahead != "" || s.Installed != wanted.Release || s.InstalledImage != wanted.Image.String():
		message := ""
		if c := meta.FindStatusCondition(record.Conditions, v1alpha1.ConditionDatabaseReady); c != nil {
			message = c.Reason + ": " + c.Message
		}
		return fmt.Sprintf("recorded %+v, generation %d of %d, %s", s, record.ObservedGeneration, o.GetGeneration(), message)
	}
	if c := meta.FindStatusCondition(record.Conditions, v1alpha1.ConditionDatabaseReady); !strings.HasPrefix(c.Message, "Schema is at ") {
		return "words are held back for a while: it still says " + c.Message
	}
	sync := &batchv1.Job{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.ns, Name: v1alpha1.JobName(r.name, upgrade.Sync)}, sync); err != nil {
		return err.Error()
	}
	for _, c := range sync.Status.Conditions {
		if c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue && sync.Spec.Template.Spec.Containers[0].Image == s.InstalledImage {
			return ""
		}
	}
	return "the sync is not complete"
}

// serves is whether there is a Deployment of the object.
func (r *runner) serves(ctx context.Context, o object) bool {
	d := &appsv1.Deployment{}
	return r.Client.Get(ctx, r.key(), d) == nil && d.DeletionTimestamp == nil && ptr.Deref(d.Spec.Replicas, 1) > 0 &&
		len(d.OwnerReferences) > 0 && d.OwnerReferences[0].UID == o.GetUID()
}

// fallSilent waits until the controller has written nothing for a while, and gives that moment.
func (r *runner) fallSilent() time.Time {
	r.t.Helper()
	deadline := time.Now().Add(bound)
	count, since := -1, time.Now()
	for time.Since(since) < silence {
		if time.Now().After(deadline) {
			r.t.Fatalf("the controller goes on writing: %v", last(r.writes(r.name)))
		}
		if n := len(r.writes(r.name)); n != count {
			count, since = n, time.Now()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return since
}

func last(writes []wire.Write) []wire.Write { return writes[max(0, len(writes)-6):] }

// isOf is whether something with this name was made for an object, or is the object.
func isOf(child, name string) bool {
	return child == name || strings.HasPrefix(child, name+"-") || strings.HasPrefix(child, name+".") // an event
}
