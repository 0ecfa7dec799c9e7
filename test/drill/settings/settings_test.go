package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func written(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

var patch = Program{Release: "2026.2", Tag: "2026.2-p1"}

func TestTheClosestWordWins(t *testing.T) {
	dir := written(t, map[string]string{
		"00-first.conf": "[drill]\nexpand_delay = 1s\nmigrate_delay = 1s\ncontract_delay = 1s\nsync_delay = 1s\n[drill:2026.2]\ncontract_delay = 3s\nsync_delay=3s\n[drill:2026.1]\nsync_delay = 9s\n",
		"50-later.conf": "# a comment\n[drill]\nmigrate_delay = 2s\n\n[drill:2026.2-p1]\nsync_delay = 4s\n",
		"notes.txt":     "this is no configuration",
	})
	s, err := Read(patch, []string{"OS_DRILL__LOAD_METADEFS_DELAY=5s"}, []string{dir}, nil)
	require.NoError(t, err)
	for task, want := range map[string]time.Duration{"expand": 1, "migrate": 2, "contract": 3, "sync": 4, "load_metadefs": 5} {
		assert.Equal(t, want*time.Second, s.Tasks[task].Delay, task)
	}
}

func TestTheConnectionComesFromTheEnvironmentFirst(t *testing.T) {
	dir := written(t, map[string]string{"a.conf": "[database]\nconnection = from a file\n"})
	s, err := Read(patch, nil, []string{dir}, nil)
	require.NoError(t, err)
	assert.Equal(t, "from a file", s.Connection)
	s, err = Read(patch, []string{"OS_DATABASE__CONNECTION=mysql://u:p=@h/d"}, nil, []string{filepath.Join(dir, "a.conf")})
	require.NoError(t, err)
	assert.Equal(t, "mysql://u:p=@h/d", s.Connection)
}

func TestEveryOptionIsUnderstood(t *testing.T) {
	dir := written(t, map[string]string{"a.conf": `[glance_store]
default_backend = fs
[drill]
expand_hold = before
expand_die_after = 1
migrate_hang = yes
migrate_row_delay = 100ms
contract_hold = after
contract_die_after = 2
contract_linger = 1h
sync_fail = first line
    second line
sync_exit = 7
load_metadefs_fail_first = 2
refuse_triggers = true
ignore_sigterm = db-expand, api
api_start_delay = 1s
api_request_delay = 2s
api_fail = no
api_crash_after = 3s
api_unready = on
api_drain = 4s
api_linger = 5s
`})
	s, err := Read(patch, nil, []string{dir}, nil)
	require.NoError(t, err)
	assert.Equal(t, Settings{
		RowDelay: 100 * time.Millisecond, RefuseTriggers: true,
		Tasks: map[string]Task{
			"expand":        {Hold: Before, DieAfter: 1, IgnoreSigterm: true},
			"migrate":       {Hang: true},
			"contract":      {Hold: After, DieAfter: 2, Linger: time.Hour},
			"sync":          {Fail: "first line\nsecond line", Exit: 7},
			"load_metadefs": {FailFirst: 2},
		},
		API: API{StartDelay: time.Second, RequestDelay: 2 * time.Second, Fail: "no", CrashAfter: 3 * time.Second, Unready: true,
			Drain: 4 * time.Second, Linger: 5 * time.Second, IgnoreSigterm: true},
	}, s)
	s, err = Read(patch, []string{"OS_DRILL__IGNORE_SIGTERM=all"}, nil, nil)
	require.NoError(t, err)
	assert.True(t, s.API.IgnoreSigterm && s.Tasks["expand"].IgnoreSigterm && s.Tasks["load_metadefs"].IgnoreSigterm)
}

func TestNonsenseIsRefusedInOneLine(t *testing.T) {
	for text, says := range map[string]string{
		"[drill]\nexpnad_delay = 1s":    "[drill] has no option expnad_delay; it has api_crash_after, ",
		"[drill]\nexpand_delay = 1":     `option expand_delay of [drill]: "1" is no duration like 30s`,
		"[drill]\nexpand_delay = -1s":   "no duration",
		"[drill]\nexpand_exit = x":      "no number",
		"[drill]\nexpand_hang = maybe":  "neither true nor false",
		"[drill]\nexpand_hold = during": "neither before nor after",
		"[drill]\nignore_sigterm = db":  "none of api, all, expand",
		"[drill]\nwhat":                 "line 2 is neither",
	} {
		_, err := Read(patch, nil, []string{written(t, map[string]string{"a.conf": text})}, nil)
		require.ErrorContains(t, err, says)
		assert.Equal(t, 1, len(strings.Split(err.Error(), "\n")))
	}
	_, err := Read(patch, nil, []string{"/nowhere"}, nil)
	require.ErrorContains(t, err, "give a directory with --config-dir")
}

func TestTheReadmeListsEveryOption(t *testing.T) {
	raw, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	for _, option := range Options() {
		name := option
		for _, task := range TaskNames {
			if word, ok := strings.CutPrefix(option, task+"_"); ok && option != "migrate_row_delay" && !strings.HasSuffix(option, "_die_after") {
				name = "TASK_" + word
			}
		}
		assert.Contains(t, string(raw), "`"+name+"`", option)
	}
}
