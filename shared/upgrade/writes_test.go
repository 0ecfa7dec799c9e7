package upgrade

import (
	"cmp"
	"fmt"
	"slices"
)

// write is one request of the controller for a change. It is refused when the object is no longer the one that was seen:
// then the rest of what was decided is given up.
type write struct {
	says string
	// to is the cache that will show it, and of what is remembered until it does.
	to cache
	of memory
	do func(*world) (refused bool)
}

// writes are what a decision asks of the API server, in the order in which the controller does it.
func (s *sight) writes(decision Decision, o Observed) []write {
	var all []write
	seen := &s.cached
	for _, task := range decision.Delete {
		job := *seen.job(task)
		all = append(all, write{"delete jobs images-" + string(task), 0, 0, func(w *world) bool {
			if *w.job(task) != job {
				return true // the deletion carries uid and version
			}
			w.job(task).remove()
			return false
		}})
	}
	if decision.Step == RunJob {
		task, made := decision.Task, playedJob{exists: true, work: WorkOf(seen.state, seen.asked(), decision.Task), config: seen.config, progress: Pending}
		all = append(all, write{"create jobs images-" + string(task), jobCache, jobWritten(task), func(w *world) bool {
			if !w.job(task).exists { // what is there already and ours is left for the next look
				*w.job(task) = made
			}
			return false
		}})
	}
	if serves, changes := seen.served(decision, o); changes {
		verb, before := "update", seen.api
		if !before.exists {
			verb = "create"
		}
		all = append(all, write{verb + " deployments images", deploymentCache, deploymentWritten, func(w *world) bool {
			switch {
			case !before.exists && w.api.exists:
				return false
			case before.exists && w.api != before:
				return true
			}
			pods := w.api.pods
			w.api = serves
			w.api.pods = pods
			return false
		}})
	}
	after := *seen
	if decision.Step == Move {
		after.state = decision.Next
	}
	after.reported, after.ready, after.told = decision.Database.Reason, decision.Database.Ready, seen.wish.Generation
	if after != *seen {
		before := *seen
		all = append(all, write{"update glances/status images", ownCache, ownWritten, func(w *world) bool {
			if w.state != before.state || w.wish != before.wish || w.config != before.config || w.reported != before.reported || w.ready != before.ready || w.told != before.told {
				return true
			}
			w.state, w.reported, w.ready, w.told = after.state, after.reported, after.ready, after.told
			return false
		}})
	}
	return all
}

// served is the Deployment as it is to be, and whether that is another one.
func (w *world) served(decision Decision, o Observed) (playedDeployment, bool) {
	api, image := w.api, decision.Serve
	if decision.Step == Move || image == "" {
		return api, false
	}
	note := Note(w.state, o)
	release := cmp.Or(note.Target, note.Installed)
	if !api.exists || api.image != image || api.config != w.config || renderedFor(api.release, image) != release {
		api.exists, api.seen, api.image, api.config, api.note, api.release = true, false, image, w.config, note, ""
		if truth[image] != release {
			api.release = release
		}
		return api, true
	}
	noted := Noted(w.state, o)
	if !noted {
		api.note = note
	}
	return api, !noted
}

func indexOf(task Task) int { return slices.Index(Tasks, task) }

// nth names a write the way the wire does.
func nth(says string, before []string) string {
	count := 1
	for _, earlier := range before {
		if earlier == says {
			count++
		}
	}
	return fmt.Sprintf("%s %d", says, count)
}
