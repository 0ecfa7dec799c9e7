package image

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAFailedCommandIsOneLineWithItsLastWordsAndWhereTheRestIs(t *testing.T) {
	transcript := filepath.Join(t.TempDir(), "all.log")
	err := run(t.Context(), t.Logf, "do it", transcript, exec.CommandContext(t.Context(), "sh", "-c", "echo first; seq 3; echo; echo no space left >&2; echo the end; echo; exit 3"))
	assert.EqualError(t, err, "do it: exit status 3: 1; 2; 3; no space left; the end (all of it: "+transcript+")")
	all, err := os.ReadFile(transcript)
	require.NoError(t, err)
	assert.Contains(t, string(all), "first\n")

	err = run(t.Context(), t.Logf, "do it", "", exec.CommandContext(t.Context(), "/nonexistent/program"))
	assert.ErrorContains(t, err, "do it: ")
	assert.NotContains(t, err.Error(), "\n")
}

func TestACancelledCommandEndsWithAllThatItStarted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	pidFile := filepath.Join(t.TempDir(), "pid")
	cmd := exec.CommandContext(ctx, "sh", "-c", "sleep 300 & echo $! > "+pidFile+"; wait")
	done := make(chan error, 1)
	go func() { done <- run(ctx, t.Logf, "wait long", "", cmd) }()

	var child int
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(pidFile)
		var err error
		child, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)
	cancel(errors.New("the user pressed ^C"))
	assert.ErrorContains(t, <-done, "wait long: stopped after 0s: the user pressed ^C")
	assert.Eventually(t, func() bool { return !runs(child) }, 10*time.Second, 10*time.Millisecond)
}

// runs tells a process from one that has ended, also when nobody has collected it.
func runs(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestOnlyOneMakesAnImageAndTheOthersWaitForIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image.tar")
	var made atomic.Int32
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			assert.NoError(t, once(t.Context(), t.Logf, path, func() error {
				made.Add(1)
				time.Sleep(50 * time.Millisecond)
				return os.WriteFile(path, nil, 0o644)
			}))
		})
	}
	all.Wait()
	assert.EqualValues(t, 1, made.Load())
}

func TestWaitingForALockSaysSoAndCanBeStopped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "glance-0123.tar.lock")
	unlock, err := lock(t.Context(), t.Logf, path, "glance")
	require.NoError(t, err)
	defer unlock()

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var said []string
	_, err = lock(ctx, func(format string, _ ...any) { said = append(said, format) }, path, "glance")
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, []string{"waiting for another process that works on %s: %s"}, said)
}

func TestSupersededBuildsGoAfterAWhileAndOthersStay(t *testing.T) {
	dir := t.TempDir()
	long := time.Now().Add(-2 * keepFor)
	for _, name := range []string{"localhost_a_b-new.tar", "localhost_a_b-old.tar", "localhost_a_b-old.tar.lock", "localhost_a_b-fresh.tar", "localhost_c_d-old.tar"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, nil, 0o644))
		if !strings.Contains(name, "fresh") {
			require.NoError(t, os.Chtimes(path, long, long))
		}
	}
	dropOlder(dir, stem("localhost/a:b"), filepath.Join(dir, "localhost_a_b-new.tar"))
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	assert.Equal(t, []string{"localhost_a_b-fresh.tar", "localhost_a_b-new.tar", "localhost_c_d-old.tar"}, left)
}

func TestTheEntrypointRefusesToStartWithoutWhatItNeeds(t *testing.T) {
	script := filepath.Join(t.TempDir(), "serve-databases")
	// The same script on a directory that the test may write to; the server's own programs are stand-ins.
	data, bin := t.TempDir(), t.TempDir()
	text := strings.ReplaceAll(string(mariadbEntrypoint), "/var/lib/mysql", data)
	text = strings.ReplaceAll(text, "/tmp/databases.sql", filepath.Join(data, "databases.sql"))
	require.NoError(t, os.WriteFile(script, []byte(text), 0o755))
	for name, body := range map[string]string{
		"mariadb-install-db": `for a in "$@"; do case $a in --datadir=*) mkdir "${a#*=}/mysql" "${a#*=}/sys";; esac; done`,
		"mariadbd":           `echo "server: $*"`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755))
	}
	start := func(env ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), script, "--port=3307")
		cmd.Env = append([]string{"PATH=" + bin + ":" + os.Getenv("PATH")}, env...)
		said, err := cmd.CombinedOutput()
		return string(said), err
	}

	said, err := start()
	require.Error(t, err)
	assert.Equal(t, "serve-databases: DATABASE_PASSWORD is empty; set the password that the databases' users shall have\n", said)
	said, err = start("DATABASE_PASSWORD=x", "DATABASES=glance Bad;name")
	require.Error(t, err)
	assert.Contains(t, said, `DATABASES names "Bad;name"; use lower-case letters, digits and underscores`)

	said, err = start(`DATABASE_PASSWORD=it's a \ secret`, "DATABASES=glance keystone")
	require.NoError(t, err, said)
	assert.Contains(t, said, "server: --init-file="+filepath.Join(data, "databases.sql")+" --port=3307")
	assert.DirExists(t, filepath.Join(data, "mysql"))
	assert.NoDirExists(t, filepath.Join(data, ".new"))
	statements, err := os.ReadFile(filepath.Join(data, "databases.sql"))
	require.NoError(t, err)
	assert.Contains(t, string(statements), `ALTER USER 'keystone'@'%' IDENTIFIED BY 'it\'s a \\ secret';`)
	assert.Contains(t, string(statements), "GRANT ALL PRIVILEGES ON glance.* TO 'glance'@'%';")
}
