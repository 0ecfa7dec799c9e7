package sweep

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/test/faults/share"
	"github.com/c5c3/openstack-upgrade/test/faults/story"
	"github.com/c5c3/openstack-upgrade/test/faults/wire"
)

func planned(t *testing.T, faults ...string) plan {
	t.Helper()
	p := plan{Story: story.All()[0]}
	for _, text := range faults {
		fault, err := wire.ParseFault(text)
		require.NoError(t, err)
		p.faults = append(p.faults, fault)
	}
	return p
}

func TestAPlanIsAskedForByItsTextAndManyByTheirBeginning(t *testing.T) {
	first, tenth := planned(t, "kill before: update glances/status images 1"), planned(t, "kill before: update glances/status images 10")
	again := planned(t, "kill before: update glances/status images 1", "kill after: update glances/status images 9")
	name := story.All()[0].String()
	for asked, holds := range map[string][]bool{
		name + ": kill before: update glances/status images 1":  {true, false, false},
		name + ": kill before: update glances/status images 10": {false, true, false},
		name + ": kill before":                                  {true, true, true},
		name + ": kill after":                                   {false, false, false},
		name + ": kill before: update glances/status images 1; kill after: update glances/status images 9": {true, false, true},
	} {
		t.Setenv(share.Given, asked)
		assert.Equal(t, holds, []bool{first.asked(), tenth.asked(), again.asked()}, asked)
	}
}

func TestEveryWriteIsMetByEveryFaultThatItCanMeet(t *testing.T) {
	count := func(text string) int {
		at, err := wire.ParsePoint(text)
		require.NoError(t, err)
		return len(faultsAt(at))
	}
	assert.Equal(t, 7, count("update deployments images 1"), "killed before and after, two ways to lose a reply, three storms")
	assert.Equal(t, 4, count("create jobs images-db-expand 1"), "nobody is in the way of what is new")
	assert.Equal(t, 2, count("create events images:UpgradeComplete 1"))
}

func TestOnlyACrashLeadsToASecondOne(t *testing.T) {
	at, err := wire.ParsePoint("create jobs images-db-expand 2")
	require.NoError(t, err)
	crash := planned(t, "kill before: create jobs images-db-expand 1")
	assert.Len(t, crash.further(at), 2)
	assert.Empty(t, planned(t, "lose reply: create jobs images-db-expand 1").further(at))
	assert.Empty(t, crash.further(at)[0].further(at), "and no third")
}

func TestPlansThatVanishAreMissed(t *testing.T) {
	t.Setenv(share.Much, "")
	t.Setenv(share.Given, "")
	crash, lost := planned(t, "kill before: update deployments images 1"), planned(t, "lose reply: update deployments images 1")
	var r rows
	assert.Len(t, r.lacks(), 1, "nothing was run")
	r.ask([]plan{crash, lost})
	r.count("undisturbed", 0, false)
	assert.Len(t, r.lacks(), 2)
	r.count(crash.row(), 0, false)
	require.Len(t, r.lacks(), 1)
	assert.Contains(t, r.lacks()[0], "reply lost")
	r.count(lost.row(), 0, true)
	assert.Empty(t, r.lacks())

	t.Setenv(share.Given, crash.String()+"; kill after: create jobs images-db-expand 2")
	assert.Len(t, r.lacks(), 1, "the second crash never came")
	r.ask([]plan{planned(t, "kill before: update deployments images 1", "kill after: create jobs images-db-expand 2")})
	r.count(again, 0, false)
	assert.Empty(t, r.lacks())
}
