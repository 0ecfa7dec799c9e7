package story

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/faults/history"
	"github.com/c5c3/openstack-upgrade/test/faults/share"
	"github.com/c5c3/openstack-upgrade/test/faults/wire"
)

func TestEveryStoryHasANameOfItsOwnForEachKind(t *testing.T) {
	var names []string
	for _, s := range All() {
		require.NotContains(t, names, s.String())
		names = append(names, s.String())
		require.NotNil(t, s.tell)
	}
	require.Contains(t, names, "Glance abort in Contracting")
	require.Contains(t, names, "Keystone Migrating failed and repaired")
	require.Zero(t, len(names)%len(Kinds))
}

// tale is a history in which a pod of expand and one of migrate ran, while the Deployment was given two images.
func tale() []history.Moment {
	job := func(task upgrade.Task, run string) history.Moment {
		return history.Moment{UID: types.UID(task), Job: &history.Job{Work: upgrade.Work{Task: task}, Run: run}}
	}
	pod := func(task upgrade.Task, phase string) history.Moment {
		return history.Moment{UID: "pod of " + types.UID(task), Pod: &history.Pod{Task: task, Image: "r:2026.2", Phase: phase}}
	}
	serving := func(image string) history.Moment {
		return history.Moment{UID: "d", Serving: &history.Serving{Image: image}}
	}
	return []history.Moment{
		serving("r:2026.1"), job(upgrade.Expand, "run expand"), pod(upgrade.Expand, "Pending"), serving("r:2026.1"), pod(upgrade.Expand, "Running"), pod(upgrade.Expand, "Succeeded"),
		job(upgrade.Migrate, "run migrate"), pod(upgrade.Migrate, "Pending"), pod(upgrade.Migrate, "Running"), serving("r:2026.2"),
		job(upgrade.Contract, "run contract"), pod(upgrade.Contract, "Pending"),
	}
}

func TestWhatRanIsWhatPodsCameToRunAndWhatServedIsEachImageInTurn(t *testing.T) {
	assert.Equal(t, []string{"db-expand on r:2026.2: run expand", "db-migrate on r:2026.2: run migrate"}, ran(tale()))
	assert.Equal(t, []string{"r:2026.1", "r:2026.2"}, served(tale()))
	anew := append(tale(), history.Moment{UID: "another", Serving: &history.Serving{Image: "r:2026.2"}})
	assert.Equal(t, []string{"r:2026.1", "r:2026.2", "r:2026.2"}, served(anew), "made anew, it did not serve for a while")
}

func TestAnOutcomeDiffersByWhatRanWhatServedAndTheEnd(t *testing.T) {
	whole := Outcome{Ran: ran(tale()), Served: served(tale()), End: "recorded"}
	require.Empty(t, whole.Differs(whole))
	twice, other, end := whole, whole, whole
	twice.Ran = append(slices.Clone(whole.Ran), whole.Ran[1])
	other.Served = whole.Served[:1]
	end.End = "not recorded"
	require.Contains(t, twice.Differs(whole), "executed:")
	require.Contains(t, other.Differs(whole), "served:")
	require.Contains(t, end.Differs(whole), "in the end:")
}

func TestARecordSpeaksOfAPastThatBreaksNoRule(t *testing.T) {
	for _, s := range All() {
		p := &Play{Story: s}
		told := []history.Moment{
			{Revision: 100, UID: "g", Record: &history.Record{}},
			{Revision: 101, UID: "g", Record: &history.Record{State: p.state()}},
			{Revision: 102, UID: "old", Pod: &history.Pod{Release: old, Image: p.Image(old), Phase: "Running"}},
		}
		if s.from.Installed == "" {
			require.Empty(t, p.past(told), "nothing was before a fresh install")
			continue
		}
		require.Empty(t, history.Check(slices.Concat(p.past(told), told), history.ByTag), s.String())
		require.NotEmpty(t, history.Check(told, history.ByTag), "and without a past it would: %s", s)
	}
}

// resters are lanes in name only.
type resters struct {
	rested int
	woken  []string
}

func (r resters) Rested() int     { return r.rested }
func (r resters) Woken() []string { return r.woken }

func TestOnlyStoriesThatCameToTheirEndAreInTheRowOfThoseThatWereLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	t.Setenv(share.Collected, path)
	lanes := make(chan resters, 2)
	lanes <- resters{rested: (&Lane{asleep: make([]resting, 2), parted: 1}).Rested()}
	lanes <- resters{}
	Stay(t, "two lanes", 2, lanes)
	row, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Regexp(t, `plans +3 +passed +3 +failed +0 `, string(row))
}

func TestNoSyncIsLetThroughBeforeTheControllerHasHeardOfTheRecord(t *testing.T) {
	p := &Play{Story: upgraded(), Name: "i7x"}
	refuses := p.premature()
	sync := wire.Point{Verb: "create", Resource: "jobs", Name: "i7x-db-sync"}
	assert.True(t, refuses(sync))
	assert.False(t, refuses(wire.Point{Verb: "create", Resource: "configmaps", Name: "i7x-config"}))
	assert.True(t, refuses(sync))
	assert.False(t, refuses(wire.Point{Verb: "create", Resource: "deployments", Name: "i7x"}))
	assert.False(t, refuses(sync), "who makes the Deployment has heard")
	p.Story = installed()
	assert.Nil(t, p.premature(), "a fresh install begins with it")
}
