package history

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/c5c3/openstack-upgrade/shared/image"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// Holds is the release that an image really holds; empty when that is not known.
type Holds func(image string) string

// ByTag holds what the tag names.
func ByTag(name string) string {
	ref, err := image.Parse(name)
	if tagged, ok := ref.Release(); err == nil && ok {
		return tagged.String()
	}
	return ""
}

// Wrong is a rule that was broken, and when.
type Wrong struct {
	Rule, What string
	At         Moment
}

func (w Wrong) String() string {
	return fmt.Sprintf("%s: %s (revision %d)", w.Rule, w.What, w.At.Revision)
}

// Check replays a history and gives everything in it that must never have been. holds tells the truth about images whose
// tag does not.
func Check(moments []Moment, holds Holds) []Wrong {
	r := &replay{holds: holds, jobs: map[types.UID]*playedJob{}, pods: map[types.UID]Pod{}, installed: map[types.UID]string{}, serving: map[types.UID]Serving{}}
	var found []Wrong
	told := map[string]bool{}
	for _, m := range moments {
		before := r.take(m)
		for _, rule := range rules {
			what := rule.broken(r, before, m)
			if what == "" || told[rule.says+what] {
				continue
			}
			told[rule.says+what] = true
			found = append(found, Wrong{Rule: rule.says, What: what, At: m})
		}
	}
	return found
}

// replay is the world as it was after the moments taken so far.
type replay struct {
	holds Holds
	jobs  map[types.UID]*playedJob
	pods  map[types.UID]Pod
	// installed is what each object last recorded; a record that was lost is not forgotten here.
	installed map[types.UID]string
	serving   map[types.UID]Serving
	schema    schema
	object    types.UID
}

type playedJob struct {
	Job
	seen, done uint64 // revisions of its first sight and of its Complete
	leaving    bool
	gone       bool
	counted    bool // for what it did to the schema
}

// schema is what the database holds: the newest release that an expand has begun for, and those that each half of a change
// was done for.
type schema struct{ expanded, migrated, contracted string }

// earlier is what take has just replaced.
type earlier struct {
	installed string
	serving   Serving
	known     bool
}

func (r *replay) take(m Moment) (before earlier) {
	switch {
	case m.Record != nil:
		before.installed, before.known = r.installed[m.UID]
		if r.object != "" && m.UID != r.object {
			// A new object may begin with an older release: the law lets it, and warns.
			r.schema.expanded, r.schema.contracted = "", ""
		}
		r.object = m.UID
		if m.Record.State.Installed != "" {
			r.installed[m.UID] = m.Record.State.Installed
		}
	case m.Job != nil:
		job, known := r.jobs[m.UID]
		if !known {
			job = &playedJob{seen: m.Revision}
			r.jobs[m.UID] = job
		}
		before.known = known
		job.Job, job.leaving, job.gone = *m.Job, m.Leaving, m.Gone
		if job.Outcome == complete && job.done == 0 {
			job.done = m.Revision
		}
		if job.Outcome == complete && !job.counted && !m.Leaving {
			// A contract that an abort has called off may still have done its work: admission warns of that.
			job.counted = true
			r.schema.after(job.Work.Task, cmp.Or(r.holds(job.Work.Image), job.Work.To), r.installed[r.object] == "")
		}
	case m.Pod != nil:
		r.pods[m.UID] = *m.Pod
		if m.Gone {
			delete(r.pods, m.UID)
		}
		r.expands(*m.Pod)
	case m.Serving != nil:
		before.serving = r.serving[m.UID]
		r.serving[m.UID] = *m.Serving
	}
	return before
}

// expands notes what a pod of an expand of the object does from the moment on in which it runs: nobody knows how far one
// comes that does not end well.
func (r *replay) expands(pod Pod) {
	for _, job := range r.jobs {
		if pod.Task == upgrade.Expand && pod.Phase == running && job.Work.Task == upgrade.Expand && job.Owner == r.object && !job.gone {
			r.schema.expanded = max(r.schema.expanded, cmp.Or(r.holds(pod.Image), job.Work.To))
		}
	}
}

// after is what a task leaves behind. Before anything is installed a wish may go back, which the law lets and warns of:
// then it is a database for that release which is asked for.
func (s *schema) after(task upgrade.Task, release string, fresh bool) {
	switch task {
	case upgrade.Migrate:
		s.migrated = max(s.migrated, release)
	case upgrade.Contract:
		s.contracted = max(s.contracted, release)
	case upgrade.Sync:
		if release > s.migrated || fresh {
			*s = schema{migrated: release, contracted: release}
		}
	case upgrade.Expand:
		s.expanded = max(s.expanded, release)
	}
}

// releaseOf is what a pod really runs.
func (r *replay) releaseOf(pod Pod) string {
	if held := r.holds(pod.Image); held != "" {
		return held
	}
	return pod.Release
}
