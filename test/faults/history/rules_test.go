package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// attempt is that of all walks.
const attempt = 2

// tale is a history in the making; every deed takes the next revision.
type tale struct{ moments []Moment }

func (t *tale) add(uid string, m Moment) *tale {
	m.Revision, m.UID = uint64(len(t.moments)+1), types.UID(uid)
	t.moments = append(t.moments, m)
	return t
}

func (t *tale) records(uid, installed string) *tale {
	return t.add(uid, Moment{Record: &Record{State: upgrade.State{Installed: installed, InstalledImage: "r:" + installed, Attempt: attempt}}})
}

// walks is a record of a walk in a phase.
func (t *tale) walks(phase upgrade.Phase) *tale {
	return t.add("g", Moment{Record: &Record{State: upgrade.State{Installed: "2026.1", InstalledImage: "r:2026.1", Target: "2026.2", TargetImage: "r:2026.2", Phase: phase, Attempt: attempt}}})
}

func (t *tale) serves(release string) *tale {
	return t.add("d", Moment{Serving: &Serving{Release: release, Image: "r:" + release}})
}

func (t *tale) job(uid string, task upgrade.Task, from, to, outcome string) *tale {
	return t.add(uid, Moment{Job: &Job{Owner: "g", Work: upgrade.Work{Task: task, From: from, To: to, Attempt: attempt, Image: "r:" + to}, Image: "r:" + to, Outcome: outcome}})
}

func (t *tale) pod(uid string, task upgrade.Task, release, phase string) *tale {
	return t.add(uid, Moment{Pod: &Pod{Task: task, Release: release, Image: "r:" + release, Phase: phase}})
}

func (t *tale) gone(uid string) *tale {
	for _, m := range slices.Backward(t.moments) {
		if m.UID == types.UID(uid) {
			m.Gone = true
			return t.add(uid, m)
		}
	}
	return t
}

// does is a Job from its creation to its end, with its pod.
func (t *tale) does(task upgrade.Task, from, to string) *tale {
	uid := string(task) + to
	return t.job(uid, task, from, to, "").pod(uid+"-pod", task, to, running).pod(uid+"-pod", task, to, succeeded).job(uid, task, from, to, complete)
}

func (t *tale) installs() *tale {
	return t.records("g", "").does(upgrade.Sync, "2026.1", "2026.1").records("g", "2026.1").serves("2026.1").pod("old", "", "2026.1", running)
}

func (t *tale) rolls() *tale {
	return t.walks(upgrade.Expanding).does(upgrade.Expand, "2026.1", "2026.2").walks(upgrade.Migrating).does(upgrade.Migrate, "2026.1", "2026.2").
		walks(upgrade.RollingUpdate).serves("2026.2").pod("new", "", "2026.2", running).gone("old").walks(upgrade.Contracting)
}

// back is a sync of the first release by the tools of a service, after an expand for the next that came so far.
func back(tools, phase, outcome string) *tale {
	work := upgrade.Work{Task: upgrade.Sync, From: "2026.1", To: "2026.1", Attempt: attempt + 1, Image: "r:2026.1"}
	return begin().installs().walks(upgrade.Expanding).job("e", upgrade.Expand, "2026.1", "2026.2", "").pod("p", upgrade.Expand, "2026.2", phase).job("e", upgrade.Expand, "2026.1", "2026.2", outcome).
		gone("p").gone("e").add("s", Moment{Job: &Job{Owner: "g", Run: "run " + tools + " db_sync; database x", Work: work, Image: work.Image}})
}

func begin() *tale { return &tale{} }

func TestAWholeUpgradeBreaksNoRule(t *testing.T) {
	whole := begin().installs().rolls().does(upgrade.Contract, "2026.1", "2026.2").records("g", "2026.2").does(upgrade.Sync, "2026.2", "2026.2")
	require.Empty(t, Check(whole.moments, ByTag))
	lost := begin().installs().records("g", "").records("g", "2026.1")
	require.Empty(t, Check(lost.moments, ByTag), "a record that is lost and found again is no step")
	anew := begin().installs().rolls().does(upgrade.Contract, "2026.1", "2026.2").records("g", "2026.2").gone("g").gone("new")
	anew.add("second", Moment{Record: &Record{}})
	require.Empty(t, Check(anew.moments, ByTag))
	wished := begin().records("g", "").does(upgrade.Sync, "2026.2", "2026.2")
	wished.add("s", Moment{Job: &Job{Owner: "g", Run: "run keystone-manage db_sync; database x", Work: upgrade.Work{Task: upgrade.Sync, From: "2026.1", To: "2026.1", Image: "r:2026.1"}, Image: "r:2026.1"}})
	require.Empty(t, Check(wished.moments, ByTag), "before anything is installed a wish may go back")
	require.Empty(t, Check(back("glance-manage", running, complete).moments, ByTag), "its tools read what the next release has expanded")
	require.Empty(t, Check(back("keystone-manage", "Pending", "").moments, ByTag), "no pod of the expand ever ran")
}

func TestEveryRuleIsBrokenByWhatItIsAbout(t *testing.T) {
	cases := map[string]*tale{
		"installed releases rise one step at a time":                                                 begin().installs().records("g", "2027.1"),
		"each step has its three Jobs, complete on its own image, one after the other":               begin().installs().rolls().job("c", upgrade.Contract, "2026.1", "2026.2", "").records("g", "2026.2"),
		"a first release is installed by a sync that is complete":                                    begin().records("g", "").job("s", upgrade.Sync, "2026.1", "2026.1", "Failed").records("g", "2026.1"),
		"no phase begins before the one before it is complete":                                       begin().installs().job("e", upgrade.Expand, "2026.1", "2026.2", "").job("m", upgrade.Migrate, "2026.1", "2026.2", ""),
		"a Job runs what it is for, one release ahead at most":                                       begin().installs().job("e", upgrade.Expand, "2026.1", "2027.1", ""),
		"no phase is recorded before the Jobs that lead to it are complete":                          begin().installs().walks(upgrade.Expanding).does(upgrade.Expand, "2026.1", "2026.2").walks(upgrade.RollingUpdate),
		"no sync on a schema that a later release has expanded, by tools that read their own alone":  back("keystone-manage", succeeded, complete),
		"no sync on a schema that a later release has expanded, by tools that read their own alone ": back("keystone-manage", running, ""),
		"the Deployment is given no release that the schema is not ready for":                        begin().installs().does(upgrade.Expand, "2026.1", "2026.2").serves("2026.2"),
		"each step has its three Jobs, complete on its own image, one after the other  ": begin().installs().rolls().does(upgrade.Contract, "2026.1", "2026.2").
			add("g", Moment{Record: &Record{State: upgrade.State{Installed: "2026.2", InstalledImage: "r:2026.2", Attempt: attempt + 1}}}),
		"no two migration pods run at a time":                                                 begin().installs().pod("a", upgrade.Expand, "2026.2", running).pod("b", upgrade.Sync, "2026.1", running),
		"no contract beside a pod of another release":                                         begin().installs().does(upgrade.Expand, "2026.1", "2026.2").does(upgrade.Migrate, "2026.1", "2026.2").job("c", upgrade.Contract, "2026.1", "2026.2", ""),
		"no sync beside a pod of another release":                                             begin().installs().pod("s", upgrade.Sync, "2026.2", running),
		"no pod serves on a schema that is not ready for it, or that has lost what it reads":  begin().installs().pod("new", "", "2026.2", running),
		"no pod serves on a schema that is not ready for it, or that has lost what it reads ": begin().installs().rolls().does(upgrade.Contract, "2026.1", "2026.2").pod("back", "", "2026.1", running),
		"each step has its three Jobs, complete on its own image, one after the other ":       begin().installs().job("m", upgrade.Migrate, "2026.1", "2026.2", complete).does(upgrade.Expand, "2026.1", "2026.2").does(upgrade.Contract, "2026.1", "2026.2").records("g", "2026.2"),
		"a Job runs what it is for, one release ahead at most ":                               begin().add("j", Moment{Job: &Job{Work: upgrade.Work{Task: upgrade.Sync, From: "2026.1", To: "2026.1", Image: "r:2026.2"}, Image: "r:2026.2"}}),
	}
	for says, tale := range cases {
		t.Run(says, func(t *testing.T) {
			found := fmt.Sprint(Check(tale.moments, ByTag))
			require.Contains(t, found, strings.TrimSpace(says))
		})
	}
	for _, rule := range rules {
		require.Contains(t, cases, rule.says, "no history breaks it")
	}
}

func TestAWatchTellsOfItsOwnKindAlone(t *testing.T) {
	told := begin().installs().moments
	for resource, many := range map[string]int{"glances": 2, "keystones": 2, "jobs": 2, "pods": 3, "deployments": 1, "*": 8, "secrets": 0} {
		require.Equal(t, many, About(told, resource), resource)
	}
}

func TestTheWorkOfAJobIsReadFromItsAnnotation(t *testing.T) {
	work, run := WorkIn("db-expand 2026.1 → 2026.2; attempt 3; image r:2026.2; run glance-manage db expand; database Secret glance-database, key connection")
	require.Equal(t, upgrade.Work{Task: upgrade.Expand, From: "2026.1", To: "2026.2", Attempt: 3, Image: "r:2026.2"}, work)
	require.Equal(t, "run glance-manage db expand; database Secret glance-database, key connection", run)
	none, _ := WorkIn("something else")
	require.Empty(t, none)
}
