package story

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/faults/history"
)

// Outcome is what a story came to.
type Outcome struct {
	// Ran is every command that was executed on the schema, with its image, in order; Served every image that the
	// Deployment was given, in order.
	Ran, Served []string
	// End is what was there at the end.
	End string
	// Broken are the rules that did not hold on the way.
	Broken []history.Wrong
	// Told is the whole history.
	Told string
}

// Differs says what of an outcome is not as it was in another; empty when nothing.
func (o Outcome) Differs(from Outcome) string {
	var out strings.Builder
	for _, part := range []struct{ name, is, was string }{
		{"executed", strings.Join(o.Ran, "\n"), strings.Join(from.Ran, "\n")},
		{"served", strings.Join(o.Served, "\n"), strings.Join(from.Served, "\n")},
		{"in the end", o.End, from.End},
	} {
		if part.is != part.was {
			fmt.Fprintf(&out, "%s:\n%s\nundisturbed:\n%s\n", part.name, indent(part.is), indent(part.was))
		}
	}
	return out.String()
}

func indent(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }

func (p *Play) outcome() Outcome {
	p.t.Helper()
	told := p.Told.Whole(p.t, p.subject(p.NS, p.Name))
	o := Outcome{Ran: ran(told), Served: served(told), End: p.end(), Told: history.Tell(told)}
	for i := range o.Ran {
		o.Ran[i] = p.anonymous(o.Ran[i])
	}
	o.Broken = history.Check(slices.Concat(p.past(told), told), history.ByTag)
	return o
}

// past is what a record that was written by hand says has been.
func (p *Play) past(told []history.Moment) (past []history.Moment) {
	if p.from.Installed == "" {
		return nil
	}
	var owner types.UID
	for _, m := range told {
		if m.Record != nil {
			owner = m.UID
			break
		}
	}
	did := func(task upgrade.Task, from, to string, attempt int64) {
		uid := types.UID("past " + string(task))
		work := upgrade.Work{Task: task, From: from, To: to, Attempt: attempt, Image: p.Image(to)}
		past = append(past,
			history.Moment{UID: uid, Job: &history.Job{Owner: owner, Work: work, Image: work.Image}},
			history.Moment{UID: uid, Pod: &history.Pod{Task: task, Release: to, Image: work.Image, Phase: "Succeeded"}},
			history.Moment{UID: uid, Job: &history.Job{Owner: owner, Work: work, Image: work.Image, Outcome: "Complete"}})
	}
	did(upgrade.Sync, p.from.Installed, p.from.Installed, 0)
	for _, phase := range upgrade.Phases {
		if task, runs := upgrade.PhaseTask(phase); runs && p.from.Walking() && phase != p.from.Phase {
			did(task, p.from.Installed, p.from.Target, 1)
			continue
		}
		break
	}
	for i := range past {
		past[i].Revision = uint64(i + 1)
	}
	return past
}

// ran lists the pods of Jobs that came to run, in the order in which they did.
func ran(told []history.Moment) (all []string) {
	runs := map[upgrade.Task]string{}
	seen := map[types.UID]bool{}
	for _, m := range told {
		switch {
		case m.Job != nil:
			runs[m.Job.Work.Task] = m.Job.Run
		case m.Pod != nil && m.Pod.Task != "" && m.Pod.Phase != "Pending" && !seen[m.UID]:
			seen[m.UID] = true
			all = append(all, fmt.Sprintf("%s on %s: %s", m.Pod.Task, m.Pod.Image, runs[m.Pod.Task]))
		}
	}
	return all
}

// served lists the images of the Deployment, and each again if it was made anew: then nothing served for a while.
func served(told []history.Moment) (images []string) {
	var last types.UID
	for _, m := range told {
		if m.Serving != nil && (last != m.UID || images[len(images)-1] != m.Serving.Image) {
			last, images = m.UID, append(images, m.Serving.Image)
		}
	}
	return images
}

// CatchUp waits until the history tells of everything that is there now.
func (p *Play) CatchUp() { p.t.Helper(); p.Told.Whole(p.t, p.subject(p.NS, p.Name)) }

// Moments is of how many moments of a resource the history tells so far.
func (p *Play) Moments(resource string) int {
	return history.About(p.Told.Of(p.subject(p.NS, p.Name)), resource)
}

// end is what is there, without what differs from run to run: times, and names.
func (p *Play) end() string {
	p.t.Helper()
	var out strings.Builder
	o := p.Now()
	fmt.Fprintf(&out, "wants %s\nrecorded %+v\n", p.Wish(o).Image, o.State())
	fmt.Fprintf(&out, "generation %d of %d, at %s, in a phase since: %t\n", o.Record().ObservedGeneration, o.GetGeneration(), o.Record().Endpoint, o.Record().PhaseStartTime != nil)
	for _, c := range o.Record().Conditions {
		fmt.Fprintf(&out, "%s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, task := range upgrade.Tasks {
		if job := p.Job(task); job != nil {
			fmt.Fprintf(&out, "Job %s %s: %s\n", job.Name, OutcomeOf(job), job.Annotations[render.AnnotationWork])
		}
	}
	if d, there := read[*appsv1.Deployment](p, p.Name); there {
		fmt.Fprintf(&out, "Deployment %s, %d of %d available, %s\n", d.Spec.Template.Spec.Containers[0].Image, d.Status.AvailableReplicas, ptr.Deref(d.Spec.Replicas, 1), d.Annotations[render.AnnotationRecord])
	}
	return p.anonymous(out.String())
}

func (p *Play) anonymous(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, p.NS, "NAMESPACE"), p.Name, alias)
}
