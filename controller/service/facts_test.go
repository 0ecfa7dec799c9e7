package service_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/c5c3/openstack-upgrade/controller/service"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

func TestTheFactsOfEveryServiceMakeSenseAndAreWalkedWhole(t *testing.T) {
	for _, s := range service.All() {
		assert.Empty(t, s.Facts.Faults(), s.Kind)
		assert.Empty(t, s.Facts.Unwalked(), s.Kind)
		for _, phase := range upgrade.Phases {
			if task, runs := upgrade.PhaseTask(phase); runs {
				assert.Equal(t, s.Facts.Phases[phase].Commands, s.Facts.Tasks()[task], s.Kind)
			}
		}
	}
}

// The next three services, as docs/services.md tells them. They are data here: the shape holds what they need, and
// Unwalked says what the machine has to learn first.
var coming = map[string]service.Facts{
	"neutron": {
		Upgrade: upgrade.Facts{}, ReleaseField: "openStackRelease",
		Sync: run([]string{"neutron-db-manage", "upgrade", "heads"}),
		Phases: map[upgrade.Phase]service.Step{
			upgrade.Expanding: run([]string{"neutron-db-manage", "upgrade", "--expand"}),
			upgrade.Contracting: {
				Commands: [][]string{{"neutron-db-manage", "upgrade", "--contract"}},
				OnlyIf:   []string{"neutron-db-manage", "has_offline_migrations"},
			},
		},
		Rollout: []string{"api", "rpc"},
	},
	"cinder": {
		ReleaseField: "openStackRelease",
		Sync: service.Step{
			Commands: [][]string{{"cinder-manage", "db", "sync"}, {"cinder-manage", "db", "online_data_migrations"}},
			Exits:    map[int]service.Meaning{1: service.Again},
		},
		Phases: map[upgrade.Phase]service.Step{
			upgrade.Expanding: run([]string{"cinder-manage", "db", "sync"}),
			upgrade.Contracting: {
				Commands: [][]string{{"cinder-manage", "db", "online_data_migrations"}},
				Exits:    map[int]service.Meaning{1: service.Again, 2: service.Stuck},
			},
		},
		Rollout: []string{"scheduler", "volume", "backup", "api"},
	},
	"nova": {
		ReleaseField: "openStackRelease",
		Sync:         run([]string{"nova-manage", "api_db", "sync"}, []string{"nova-manage", "db", "sync"}),
		Phases: map[upgrade.Phase]service.Step{
			upgrade.Expanding: run([]string{"nova-manage", "api_db", "sync"}, []string{"nova-manage", "db", "sync"}),
			upgrade.Contracting: {
				Commands: [][]string{{"nova-manage", "db", "online_data_migrations"}},
				Exits:    map[int]service.Meaning{1: service.Again, 2: service.Stuck},
			},
		},
		Rollout: []string{"conductor", "scheduler", "api"},
	},
}

func run(commands ...[]string) service.Step { return service.Step{Commands: commands} }

func TestTheNextThreeServicesFitIntoTheShapeOfFacts(t *testing.T) {
	wants := map[string][]string{
		"neutron": {"phase Migrating without a Job", "phase Contracting only if a command agrees", "2 Deployments rolled in order"},
		"cinder":  {"the sync: exit code 1 means again", "phase Migrating without a Job", "phase Contracting: exit code 1 means again", "phase Contracting: exit code 2 means stuck", "4 Deployments rolled in order"},
		"nova":    {"phase Migrating without a Job", "phase Contracting: exit code 1 means again", "phase Contracting: exit code 2 means stuck", "3 Deployments rolled in order"},
	}
	for name, facts := range coming {
		assert.Empty(t, facts.Faults(), name)
		assert.Equal(t, wants[name], facts.Unwalked(), name)
		assert.Equal(t, service.Before, service.SideOf(upgrade.Expanding), name)
		assert.Equal(t, service.After, service.SideOf(upgrade.Contracting), name)
	}
	online := coming["cinder"].Phases[upgrade.Contracting]
	assert.Equal(t, service.Done, online.Means(0))
	assert.Equal(t, service.Again, online.Means(1))
	assert.Equal(t, service.Stuck, online.Means(2))
	assert.Equal(t, service.Failure, online.Means(3))
}

func TestFactsThatMakeNoSenseAreFound(t *testing.T) {
	ok := func() service.Facts {
		return service.Facts{Sync: run([]string{"a"}), Phases: map[upgrade.Phase]service.Step{upgrade.Expanding: run([]string{"b"})}, Rollout: []string{"api"}}
	}
	assert.Empty(t, ok().Faults())
	for says, spoil := range map[string]func(*service.Facts){
		"the sync has no command":                     func(f *service.Facts) { f.Sync = service.Step{} },
		"phase Expanding has no command":              func(f *service.Facts) { f.Phases[upgrade.Expanding] = service.Step{} },
		"phase Expanding has a command with an empty": func(f *service.Facts) { f.Phases[upgrade.Expanding] = run([]string{"b", ""}) },
		`phase "RollingUpdate" runs no Job`:           func(f *service.Facts) { f.Phases[upgrade.RollingUpdate] = run([]string{"b"}) },
		`exit code 0 cannot mean "again"`:             func(f *service.Facts) { f.Sync.Exits = map[int]service.Meaning{0: service.Again} },
		`exit code 1 cannot mean "done"`:              func(f *service.Facts) { f.Sync.Exits = map[int]service.Meaning{1: service.Done} },
		"nothing is rolled":                           func(f *service.Facts) { f.Rollout = nil },
		`component "api" is rolled twice`:             func(f *service.Facts) { f.Rollout = []string{"api", "api"} },
		"the sync has a command with an empty word":   func(f *service.Facts) { f.Sync.OnlyIf = []string{} },
	} {
		facts := ok()
		spoil(&facts)
		assert.Contains(t, strings.Join(facts.Faults(), "\n"), says)
	}
}
