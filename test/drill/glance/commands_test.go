package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// heads is what db version prints.
func (w *world) heads() string {
	w.Helper()
	code, out := w.manage(b, "version")
	require.Zero(w, code, out)
	return strings.Join(strings.Fields(out), " ")
}

func TestExitCodesAreThoseOfGlanceManage(t *testing.T) {
	w := newWorld(t)
	exits := func(tag, command string, want int, says string) {
		t.Helper()
		code, out := w.manage(tag, command)
		assert.Equal(t, want, code, "%s: db %s: %s", tag, command, out)
		assert.Contains(t, out, says, "%s: db %s", tag, command)
	}
	exits(a, "check", 3, "db expand")
	exits(a, "sync", 0, "revision 2026_1_contract01 is reached")
	assert.Equal(t, "2026_1_contract01", w.heads())
	exits(a, "check", 0, "up to date")
	for _, command := range []string{"expand", "migrate", "contract", "sync"} {
		exits(a, command, 0, "up to date")
	}
	address, _ := w.serve(a)
	create(t, address, "first")

	exits(b, "check", 3, "db expand")
	exits(b, "migrate", 1, "must be expanded first")
	exits(b, "contract", 1, "must be expanded first")
	exits(b, "expand", 0, "revision 2026_2_expand01 is reached")
	assert.Equal(t, "2026_1_contract01 2026_2_expand01", w.heads(), "two heads in the middle of an upgrade")
	exits(b, "check", 4, "db migrate")
	exits(b, "contract", 1, "1 rows must be migrated first")
	exits(b, "expand", 0, "up to date")
	for _, command := range []string{"check", "sync", "expand", "migrate", "contract"} {
		exits(a, command, 0, "up to date")
	}

	exits(b, "migrate", 0, "migrated 1 rows")
	exits(b, "migrate", 0, "up to date")
	exits(b, "check", 5, "db contract")
	exits(b, "contract", 0, "revision 2026_2_contract01 is reached")
	assert.Equal(t, "2026_2_contract01", w.heads())
	for _, command := range []string{"check", "expand", "migrate", "contract", "sync"} {
		exits(b, command, 0, "up to date")
	}

	exits(a, "check", 3, "db expand")
	for _, command := range []string{"expand", "sync"} {
		exits(a, command, 1, "can't locate revision identified by '2026_2_contract01'")
	}
	exits(a, "migrate", 1, "must be expanded first")
	exits(a, "contract", 1, "must be expanded first")
}

func TestTheNewReleaseIsInstalledAfreshToo(t *testing.T) {
	for name, commands := range map[string][]string{
		"in one pass":    {"sync"},
		"phase by phase": {"expand", "migrate", "contract"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.must(b, append(commands, "load_metadefs", "load_metadefs")...)
			assert.Equal(t, "2026_2_contract01", w.heads())
			address, _ := w.serve(b)
			create(t, address, "first")
			assert.True(t, w.verify().Good())
		})
	}
}

func TestDefinitionsThatAreThereAreSkippedAndAMissingPathIsNoFailure(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync", "load_metadefs")
	code, out := w.end(w.program(b, "glance-manage", "db", "load_metadefs", "--path", "/nowhere"))
	assert.Zero(t, code)
	assert.Contains(t, out, "Drill::2026_1 is there already; skipped")
	assert.Contains(t, out, "Drill::2026_2 loaded")
}

func TestAnExpandThatIsKilledHalfWayFailsEverAfter(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync")
	address, _ := w.serve(a)
	first := create(t, address, "first")

	code, out := w.told("expand_die_after = 1").manage(b, "expand")
	assert.Equal(t, -1, code, "it was killed: %s", out)
	assert.Equal(t, "2026_1_contract01", w.heads(), "the version is not written")
	for range 2 {
		code, out = w.manage(b, "expand")
		assert.Equal(t, 1, code)
		assert.Contains(t, out, "Duplicate column name 'value_2026_2'")
	}
	answers(t, 200, "GET", address+"/v2/images/"+first, "")

	w.sql("ALTER TABLE images DROP COLUMN value_2026_2")
	w.must(b, "expand", "migrate", "contract")
	assert.True(t, w.verify().Good())
}

func TestAContractThatIsKilledHalfWayFailsEverAfter(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync")
	w.must(b, "expand", "migrate")
	code, _ := w.told("contract_die_after = 3").manage(b, "contract")
	assert.Equal(t, -1, code)
	code, out := w.manage(b, "contract")
	assert.Equal(t, 1, code)
	assert.Contains(t, out, "Can't DROP COLUMN `value_2026_1`")
}

func TestAServerThatRefusesTriggersStopsExpandBeforeItBegins(t *testing.T) {
	refused := func(w *world, says string) {
		t.Helper()
		code, out := w.manage(b, "expand")
		assert.Equal(t, 1, code, out)
		assert.Contains(t, out, says)
		assert.Equal(t, "2026_1_contract01", w.heads())
	}
	t.Run("as it is told to", func(t *testing.T) {
		w := newWorldAlone(t)
		w.must(a, "sync")
		refused(w.told("refuse_triggers = true"), "Error 1419 (HY000): You do not have the SUPER privilege and binary logging is enabled")
		w.must(b, "expand", "migrate", "contract")
	})
	t.Run("the server does not trust its users", func(t *testing.T) {
		w := newWorldAlone(t)
		w.must(a, "sync")
		trust := func(on int) {
			_, err := server.Root.ExecContext(t.Context(), "SET GLOBAL log_bin_trust_function_creators = ?", on)
			require.NoError(t, err)
		}
		trust(0)
		refused(w, "Error 1419 (HY000): You do not have the SUPER privilege and binary logging is enabled")
		trust(1)
		w.must(b, "expand", "migrate", "contract")
	})
	t.Run("the user lacks the right", func(t *testing.T) {
		w := newWorldAlone(t, "TRIGGER")
		w.must(a, "sync")
		refused(w, "TRIGGER command denied to user")
		_, err := server.Root.ExecContext(t.Context(), "GRANT TRIGGER ON "+w.name+".* TO '"+w.name+"'@'%'")
		require.NoError(t, err)
		w.must(b, "expand", "migrate", "contract")
	})
}

func TestNonsenseIsRefusedInOneLine(t *testing.T) {
	w := newWorld(t)
	without := func(cmd *exec.Cmd, env string) *exec.Cmd {
		cmd.Env = append(cmd.Env, env)
		return cmd
	}
	for says, cmd := range map[string]*exec.Cmd{
		"usage: glance-manage":              w.program(a, "glance-manage", "db"),
		`db "destroy" is not known`:         w.program(a, "glance-manage", "db", "destroy"),
		"call it glance-manage":             w.program(a, "keystone-manage", "db_sync"),
		"--config-dir needs a value":        w.program(a, "glance-manage", "db", "sync", "--config-dir"),
		"give a directory":                  w.program(a, "glance-manage", "--config-dir", "/nowhere", "db", "sync"),
		"usage: drill":                      w.program(a, "drill", "look"),
		"set OS_DATABASE__CONNECTION":       without(w.program(a, "glance-manage", "db", "sync"), "OS_DATABASE__CONNECTION="),
		"only MySQL and MariaDB are":        without(w.program(a, "glance-manage", "db", "sync"), "OS_DATABASE__CONNECTION=postgresql://u:p@h/d"),
		"is no URL":                         without(w.program(a, "glance-manage", "db", "sync"), "OS_DATABASE__CONNECTION=mysql://u:p w@h:x/d"),
		"lacks a user or a database":        without(w.program(a, "glance-manage", "db", "sync"), "OS_DATABASE__CONNECTION=mysql://h"),
		"Access denied":                     without(w.program(a, "glance-manage", "db", "check"), "OS_DATABASE__CONNECTION="+strings.Replace(w.connection, ":secret@", ":wrong@", 1)),
		"connect to the database: dial tcp": without(w.program(a, "glance-manage", "db", "check"), "OS_DATABASE__CONNECTION=mysql+pymysql://u:secret@127.0.0.1:1/d"),
		"DRILL_RELEASE":                     w.program("2025.1", "glance-manage", "db", "sync"),
		"run glance-manage db sync first":   w.program(a, "drill", "verify"),
		"listen on 256.0.0.1:1":             w.program(a, "uwsgi", "--http-socket", "256.0.0.1:1"),
	} {
		code, out := w.end(cmd)
		assert.Contains(t, []int{1, 2}, code, says)
		assert.Contains(t, out, says)
		assert.Equal(t, 1, strings.Count(out, "\n"), out)
		assert.NotContains(t, out, "secret")
	}
}
