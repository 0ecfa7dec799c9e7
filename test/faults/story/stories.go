package story

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// The two releases of all stories.
const (
	old  = "2026.1"
	next = "2026.2"
)

// Story is what an object lives through.
type Story struct {
	Kind
	// Title is what it is about.
	Title string

	from    upgrade.State // on record when it begins; images are those of the releases
	wish    string        // the release asked for then
	prepare func(*Play)   // scripts that are in place before anything is
	tell    func(*Play)   // what users do and wait for, to the end
	last    upgrade.Phase // the phase in which a walk is taken back; empty where it is not
}

// Phases are those that the story comes through, in order; none for an install.
func (s Story) Phases() (through []upgrade.Phase) {
	if s.wish == old && !s.from.Walking() {
		return nil
	}
	for _, phase := range upgrade.Phases {
		if s.from.Walking() && slices.Index(upgrade.Phases, phase) < slices.Index(upgrade.Phases, s.from.Phase) {
			continue
		}
		through = append(through, phase)
		if phase == s.last {
			break
		}
	}
	return through
}

// String is what a story is called in plans and rows.
func (s Story) String() string { return s.Kind.Kind + " " + s.Title }

// All are the stories of all kinds.
func All() (all []Story) {
	for _, kind := range Kinds {
		for _, s := range []Story{
			installed(), installRepaired(), upgraded(),
			aborted(upgrade.Expanding), aborted(upgrade.Migrating), abortedHalfRolled(), aborted(upgrade.Contracting),
			repaired(upgrade.Expanding), repaired(upgrade.Migrating), rolloutRepaired(), repaired(upgrade.Contracting),
		} {
			s.Kind = kind
			all = append(all, s)
		}
	}
	return all
}

// anyImage is where a script or a wait is for the pods of all images.
const anyImage = ""

func installed() Story {
	return Story{Title: "install", wish: old, tell: func(p *Play) { p.Await("the install to end", p.synced(old)) }}
}

func installRepaired() Story {
	s := Story{Title: "install, sync failed and repaired", wish: old}
	s.prepare, s.tell = failing(upgrade.Sync, old)
	return s
}

// upgraded walks the four phases and syncs afterwards.
func upgraded() Story {
	return Story{Title: "upgrade", from: upgrade.State{Installed: old}, wish: next,
		tell: func(p *Play) { p.Await("the upgrade to end", p.synced(next)) }}
}

// before is the record that lets a walk enter a phase by its own steps.
var before = map[upgrade.Phase]upgrade.Phase{
	upgrade.Expanding: upgrade.Steady, upgrade.Migrating: upgrade.Expanding, upgrade.RollingUpdate: upgrade.Migrating, upgrade.Contracting: upgrade.RollingUpdate,
}

// walking is the record of a walk in a phase.
func walking(phase upgrade.Phase) upgrade.State {
	if phase == upgrade.Steady {
		return upgrade.State{Installed: old}
	}
	return upgrade.State{Installed: old, Target: next, Phase: phase}
}

// aborted takes a walk back while the Job of a phase runs.
func aborted(phase upgrade.Phase) Story {
	task, _ := upgrade.PhaseTask(phase)
	return Story{Title: "abort in " + string(phase), from: walking(before[phase]), wish: next, last: phase,
		prepare: func(p *Play) { p.Script(string(task), anyImage, harness.Hang()) },
		tell: func(p *Play) {
			p.AwaitPod(string(task), anyImage)
			p.Ask(old)
			p.awaitAbort()
		}}
}

// abortedHalfRolled takes a walk back when one of the new pods does not come up.
func abortedHalfRolled() Story {
	return Story{Title: "abort in RollingUpdate", from: walking(upgrade.Migrating), wish: next, last: upgrade.RollingUpdate,
		prepare: func(p *Play) {
			p.holdMigrate()
			p.Script(render.ComponentAPI, ":"+next, harness.CrashLoop(1, "no"))
		},
		tell: func(p *Play) {
			p.migrateBesideOldPods()
			p.Await("the rollout to begin", in(upgrade.RollingUpdate))
			p.awaitDeployment("a new pod beside the old ones", func(d *appsv1.Deployment) string {
				return lacks(d.Status.UpdatedReplicas == 1 && d.Status.Replicas == 2, "%d updated of %d", d.Status.UpdatedReplicas, d.Status.Replicas)
			})
			p.Ask(old)
			p.awaitAbort()
		}}
}

// holdMigrate keeps migrate from ending before migrateBesideOldPods. The record is written before anything serves; a
// rollout that found no Deployment would make it with the next release at once, and no old pod would ever have been.
func (p *Play) holdMigrate() {
	p.t.Helper()
	p.release = p.Script(string(upgrade.Migrate), anyImage, harness.Hang())
}

func (p *Play) migrateBesideOldPods() {
	p.t.Helper()
	p.awaitDeployment("the old pods to serve", p.serves(old))
	p.release()
}

// serves demands that the pods of a release, and no others, are there and available.
func (p *Play) serves(release string) func(*appsv1.Deployment) string {
	return func(d *appsv1.Deployment) string {
		n := ptr.Deref(d.Spec.Replicas, 1)
		return lacks(d.Spec.Template.Spec.Containers[0].Image == p.Image(release) && d.Status.ObservedGeneration >= d.Generation &&
			d.Status.UpdatedReplicas == n && d.Status.Replicas == n && d.Status.AvailableReplicas == n, "%+v", d.Status)
	}
}

// awaitAbort waits for what an abort leaves: a release in sync, or, where its tools cannot read what was expanded, pods
// that serve and a record that says so.
func (p *Play) awaitAbort() {
	p.t.Helper()
	if !p.Facts.Upgrade.ReadsOwnSchemaOnly {
		p.Await("the abort to end", p.synced(old))
		return
	}
	p.Await("the abort to be told", says(upgrade.DowngradeNotSupported))
	p.Await("the record", in(upgrade.Steady))
	p.awaitDeployment("the old pods to serve again", p.serves(old))
	p.Await("that to be told", func(o Object) string {
		return lacks(meta.IsStatusConditionTrue(o.Record().Conditions, v1alpha1.ConditionDeploymentReady), "the Deployment is not told to be ready")
	})
}

func (p *Play) awaitDeployment(what string, lack func(*appsv1.Deployment) string) {
	p.t.Helper()
	p.Await(what, func(Object) string {
		d, there := read[*appsv1.Deployment](p, p.Name)
		if !there {
			return "there is none"
		}
		return lack(d)
	})
}

// failures are the reasons by which tasks fail.
var failures = map[upgrade.Task]upgrade.Reason{
	upgrade.Sync: upgrade.DBSyncFailed, upgrade.Expand: upgrade.ExpandFailed, upgrade.Migrate: upgrade.MigrateFailed, upgrade.Contract: upgrade.ContractFailed,
}

// repaired has the Job of a phase fail for good, until the user deletes it.
func repaired(phase upgrade.Phase) Story {
	task, _ := upgrade.PhaseTask(phase)
	s := Story{Title: string(phase) + " failed and repaired", from: walking(before[phase]), wish: next}
	s.prepare, s.tell = failing(task, next)
	return s
}

func failing(task upgrade.Task, ends string) (prepare, tell func(*Play)) {
	prepare = func(p *Play) {
		p.repair = p.Script(string(task), ":"+ends, harness.Fail(1, "no right to create triggers"))
	}
	tell = func(p *Play) {
		p.Await("the failure to be told", says(failures[task]))
		p.repair()
		p.Retry(task)
		p.Await("the repaired walk to end", p.synced(ends))
	}
	return prepare, tell
}

// rolloutRepaired has the new pods crash until what they lack is there.
func rolloutRepaired() Story {
	return Story{Title: "RollingUpdate failed and repaired", from: walking(upgrade.Migrating), wish: next,
		prepare: func(p *Play) {
			p.holdMigrate()
			p.repair = p.Script(render.ComponentAPI, ":"+next, harness.CrashLoop(1, "no such option"))
		},
		tell: func(p *Play) {
			p.migrateBesideOldPods()
			p.Await("the rollout to begin", in(upgrade.RollingUpdate))
			p.AwaitPod(render.ComponentAPI, ":"+next)
			p.repair()
			p.Await("the repaired walk to end", p.synced(next))
		}}
}

// Told is a story that somebody else tells, of an object that begins with the install of the first release.
func Told(kind Kind, title string, prepare, tell func(*Play)) Story {
	return Story{Kind: kind, Title: title, wish: old, prepare: prepare, tell: tell}
}

// Installed waits until the first release is installed and synced.
func (p *Play) Installed() { p.t.Helper(); p.Await("the install to end", p.synced(old)) }

// Ends demands of whatever has become of the object that it comes to a good end: what has failed is told, and once that is
// repaired the next release, which the law takes from anywhere, is installed and synced.
func (p *Play) Ends() {
	p.t.Helper()
	for _, task := range upgrade.Tasks {
		if job := p.Job(task); job != nil && OutcomeOf(job) == batchv1.JobFailed {
			p.Await("the failure to be told", says(failures[task]))
			p.Retry(task)
		}
	}
	p.Ask(next)
	p.Await("a good end", p.synced(next))
}
