package history

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/c5c3/openstack-upgrade/shared/release"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// rule is a statement about every moment. What the moment replaced is in earlier, what came of it in replay.
type rule struct {
	says   string
	broken func(*replay, earlier, Moment) string
}

// before is the phase that must be complete for another to begin.
var before = map[upgrade.Task]upgrade.Task{upgrade.Migrate: upgrade.Expand, upgrade.Contract: upgrade.Migrate}

// behind is the last task that a walk has behind it in a phase.
var behind = map[upgrade.Phase]upgrade.Task{upgrade.Migrating: upgrade.Expand, upgrade.RollingUpdate: upgrade.Migrate, upgrade.Contracting: upgrade.Migrate}

var rules = []rule{
	{"installed releases rise one step at a time", func(_ *replay, was earlier, m Moment) string {
		if !rises(was, m) {
			return ""
		}
		return oneStep(was.installed, m.Record.State.Installed)
	}},
	{"each step has its three Jobs, complete on its own image, one after the other", func(r *replay, was earlier, m Moment) string {
		if !rises(was, m) {
			return ""
		}
		return r.stepped(m.UID, was.installed, m.Record.State)
	}},
	{"a first release is installed by a sync that is complete", func(r *replay, was earlier, m Moment) string {
		if m.Record == nil || was.installed != "" || m.Record.State.Installed == "" {
			return ""
		}
		for _, job := range r.jobs {
			if job.Owner == m.UID && job.Work.Task == upgrade.Sync && job.done > 0 && job.Work.Image == m.Record.State.InstalledImage {
				return ""
			}
		}
		return fmt.Sprintf("no sync with %s is complete", m.Record.State.InstalledImage)
	}},
	{"no phase begins before the one before it is complete", func(r *replay, was earlier, m Moment) string {
		if m.Job == nil || was.known || before[m.Job.Work.Task] == "" {
			return ""
		}
		wanted := m.Job.Work
		wanted.Task = before[wanted.Task]
		for _, job := range r.jobs {
			if job.Owner == m.Job.Owner && job.Work == wanted && job.done > 0 {
				return ""
			}
		}
		return fmt.Sprintf("%s begins, and %s of %s → %s, attempt %d, is not complete", m.Job.Work.Task, wanted.Task, wanted.From, wanted.To, wanted.Attempt)
	}},
	{"no phase is recorded before the Jobs that lead to it are complete", func(r *replay, _ earlier, m Moment) string {
		if m.Record == nil || behind[m.Record.State.Phase] == "" {
			return ""
		}
		s := m.Record.State
		wanted := upgrade.Work{Task: behind[s.Phase], From: s.Installed, To: s.Target, Attempt: s.Attempt, Image: s.TargetImage}
		for _, job := range r.jobs {
			if job.Owner == m.UID && job.Work == wanted && job.done > 0 {
				return ""
			}
		}
		return fmt.Sprintf("%s, and %s of %s → %s, attempt %d, is not complete", s.Phase, wanted.Task, wanted.From, wanted.To, wanted.Attempt)
	}},
	{"a Job runs what it is for, one release ahead at most", func(r *replay, was earlier, m Moment) string {
		if m.Job == nil || was.known {
			return ""
		}
		work := m.Job.Work
		held := r.holds(work.Image)
		switch {
		case work.Task == "":
			return "Job " + m.Name + " does not say what it is for"
		case m.Job.Image != work.Image:
			return fmt.Sprintf("%s is for %s and runs %s", work.Task, work.Image, m.Job.Image)
		case held != "" && held != work.To:
			return fmt.Sprintf("%s for %s runs an image of %s", work.Task, work.To, held)
		case work.Task == upgrade.Sync:
			return ""
		}
		return oneStep(work.From, work.To)
	}},
	{"no two migration pods run at a time", func(r *replay, _ earlier, m Moment) string {
		if m.Pod == nil || m.Pod.Task == "" {
			return ""
		}
		first := upgrade.Task("")
		for _, pod := range r.pods {
			if pod.Task == "" || pod.Phase != running {
				continue
			}
			if first != "" {
				return fmt.Sprintf("%s beside %s", min(first, pod.Task), max(first, pod.Task))
			}
			first = pod.Task
		}
		return ""
	}},
	{"no contract beside a pod of another release", func(r *replay, _ earlier, _ Moment) string { return r.beside(upgrade.Contract) }},
	{"no sync beside a pod of another release", func(r *replay, _ earlier, _ Moment) string { return r.beside(upgrade.Sync) }},
	{"no sync on a schema that a later release has expanded, by tools that read their own alone", func(r *replay, was earlier, m Moment) string {
		if m.Job == nil || was.known || m.Job.Work.Task != upgrade.Sync || !m.Job.readsOwnSchemaOnly() || m.Job.Work.To >= r.schema.expanded {
			return ""
		}
		return fmt.Sprintf("sync of %s on what %s has expanded", m.Job.Work.To, r.schema.expanded)
	}},
	{"the Deployment is given no release that the schema is not ready for", func(r *replay, was earlier, m Moment) string {
		if m.Serving == nil || m.Leaving || m.Gone || *m.Serving == was.serving {
			return ""
		}
		if given := cmp.Or(r.holds(m.Serving.Image), m.Serving.Release); given > r.schema.migrated {
			return fmt.Sprintf("%s on a schema migrated to %q", given, r.schema.migrated)
		}
		return ""
	}},
	{"no pod serves on a schema that is not ready for it, or that has lost what it reads", func(r *replay, _ earlier, _ Moment) string {
		for _, pod := range r.pods {
			serves := r.releaseOf(pod)
			if pod.Task != "" || pod.Phase != running || serves == "" {
				continue
			}
			if serves > r.schema.migrated || serves < r.schema.contracted {
				return fmt.Sprintf("a pod of %s on a schema migrated to %q and contracted to %q", serves, r.schema.migrated, r.schema.contracted)
			}
		}
		return ""
	}},
}

// rises is that one release follows another on record.
func rises(was earlier, m Moment) bool {
	return m.Record != nil && was.installed != "" && was.installed != upgrade.Unnamed &&
		m.Record.State.Installed != "" && m.Record.State.Installed != was.installed
}

func oneStep(from, to string) string {
	left, errLeft := release.Parse(from)
	right, errRight := release.Parse(to)
	if errLeft == nil && errRight == nil && release.Distance(left, right) == 1 {
		return ""
	}
	return fmt.Sprintf("%s → %s", from, to)
}

// stepped says which of the three Jobs of a step is missing.
func (r *replay) stepped(owner types.UID, from string, to upgrade.State) string {
	why := "no contract is complete"
	for _, contract := range r.jobs {
		w := contract.Work
		if contract.Owner != owner || contract.done == 0 || w.Task != upgrade.Contract || w.From != from || w.To != to.Installed || w.Image != to.InstalledImage || w.Attempt != to.Attempt {
			continue
		}
		if why = r.led(contract, upgrade.Migrate); why == "" {
			return ""
		}
	}
	return fmt.Sprintf("%s → %s with %s, attempt %d: %s", from, to.Installed, to.InstalledImage, to.Attempt, why)
}

// led says what is missing of the Jobs that must have been complete before a Job began.
func (r *replay) led(after *playedJob, task upgrade.Task) string {
	wanted := after.Work
	wanted.Task = task
	for _, job := range r.jobs {
		if job.Owner != after.Owner || job.Work != wanted || job.done == 0 || job.done >= after.seen {
			continue
		}
		if task == upgrade.Expand {
			return ""
		}
		return r.led(job, upgrade.Expand)
	}
	return fmt.Sprintf("no %s is complete before %s", task, after.Work.Task)
}

// beside says which pod of the API is there, of another release than that of schema work that does not bear it.
func (r *replay) beside(task upgrade.Task) string {
	var works []string
	for _, pod := range r.pods {
		if pod.Task == task && pod.Phase == running {
			works = append(works, r.releaseOf(pod))
		}
	}
	for _, job := range r.jobs {
		if task == upgrade.Contract && job.Work.Task == task && job.Outcome == "" && !job.leaving && !job.gone {
			works = append(works, job.Work.To)
		}
	}
	for _, work := range works {
		for _, pod := range r.pods {
			if serves := r.releaseOf(pod); pod.Task == "" && !pod.ended() && serves != "" && serves != work {
				return fmt.Sprintf("%s of %s while a pod of %s is there", task, work, serves)
			}
		}
	}
	return ""
}
