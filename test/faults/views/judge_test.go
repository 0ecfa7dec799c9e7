package views

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/test/faults/line"
	"github.com/c5c3/openstack-upgrade/test/faults/share"
	"github.com/c5c3/openstack-upgrade/test/faults/story"
	"github.com/c5c3/openstack-upgrade/test/faults/wire"
)

func TestOnlyTheJobThatAnAbortDeletesMayRunOnceMore(t *testing.T) {
	may := map[string][]string{}
	for _, s := range story.All() {
		for _, write := range []string{"create jobs images-db-sync", "create jobs images-db-expand", "create jobs images-db-migrate", "create jobs images-db-contract", "delete jobs images-db-migrate"} {
			at, err := wire.ParsePoint(write + " 1")
			require.NoError(t, err)
			if (handOver{s, at, false}).late() {
				may[s.String()] = append(may[s.String()], write)
			}
			require.False(t, handOver{s, at, true}.late(), "what is lost is not late")
		}
	}
	expand, migrate, contract := []string{"create jobs images-db-expand"}, []string{"create jobs images-db-migrate"}, []string{"create jobs images-db-contract"}
	require.Equal(t, map[string][]string{
		"Glance abort in Expanding": expand, "Glance abort in Migrating": migrate, "Glance abort in Contracting": contract,
		"Keystone abort in Expanding": expand, "Keystone abort in Migrating": migrate, "Keystone abort in Contracting": contract,
	}, may)
	require.Equal(t, []string{"a", "b", "b", "c"}, onceLess([]string{"a", "b", "b", "b", "c"}))
	require.Equal(t, []string{"a", "b"}, onceLess([]string{"a", "b"}))
}

func TestWhoListsAnewWhatStayedAsItWasHasMissedNothing(t *testing.T) {
	assert.False(t, sight{what: missed}.kept(0, 1, 0))
	assert.False(t, sight{what: missed}.kept(0, 0, 1))
	assert.True(t, sight{what: missed}.kept(0, 1, 1))
	assert.False(t, sight{what: stale}.kept(0, 1, 1))
	assert.True(t, sight{what: stale}.kept(1, 0, 0))
	assert.True(t, sight{what: wiped}.kept(0, 0, 0))
}

func TestAKindWhosePlansHaveVanishedIsMissed(t *testing.T) {
	t.Setenv(share.Much, "")
	e := &run{plans: []plan{{sight: sight{what: stale}}, {sight: sight{what: missed}}}, rows: map[what]*row{stale: {Result: line.Result{Plans: 1}}}}
	require.Len(t, e.lacks(), 1)
	assert.Contains(t, e.lacks()[0], experiments[missed].name)
	e.rows[missed] = e.rows[stale]
	assert.Empty(t, e.lacks())
}
