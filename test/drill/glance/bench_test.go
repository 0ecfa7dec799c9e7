package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/test/drill"
	"github.com/c5c3/openstack-upgrade/test/drill/mariadb"
	"github.com/c5c3/openstack-upgrade/test/drill/schema"
)

// The two releases of most tests.
const a, b = "2026.1", "2026.2"

var (
	server *mariadb.Server
	binary string
)

func TestMain(m *testing.M) {
	code, err := prepare(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func prepare(m *testing.M) (code int, err error) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "drill-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "drill")
	if err := drill.Compile(ctx, binary); err != nil {
		return 1, err
	}
	say := func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	if server, err = mariadb.Start(ctx, say); err != nil {
		return 1, err
	}
	code = m.Run()
	return code, server.Stop()
}

// world is one database and the programs that use it.
type world struct {
	*testing.T
	connection, name string
	// options is the text of the configuration file.
	options string
}

var databases atomic.Int32

// newWorld shares nothing with others, so they may go on at the same time.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return newWorldAlone(t)
}

// newWorldAlone is for a test that changes the server itself.
func newWorldAlone(t *testing.T, withheld ...string) *world {
	t.Helper()
	w := &world{T: t, name: fmt.Sprintf("glance%d", databases.Add(1))}
	var err error
	w.connection, err = server.Database(t.Context(), w.name, withheld...)
	require.NoError(t, err)
	return w
}

// told gives the programs other options, one a line, in the section [drill] unless they name another.
func (w *world) told(options ...string) *world {
	other := *w
	other.options = "[drill]\n" + strings.Join(options, "\n") + "\n"
	return &other
}

// program is the command that a container of an image starts.
func (w *world) program(tag, name string, args ...string) *exec.Cmd {
	w.Helper()
	dir := w.TempDir()
	require.NoError(w, os.WriteFile(filepath.Join(dir, "10-drill.conf"), []byte(w.options), 0o600))
	cmd := exec.Command(binary, append([]string{"--config-dir", dir}, args...)...)
	cmd.Args[0] = "/usr/bin/" + name
	release, _, _ := strings.Cut(tag, "-")
	cmd.Env = []string{"DRILL_RELEASE=" + release, "DRILL_TAG=" + tag, "OS_DATABASE__CONNECTION=" + w.connection}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// manage runs glance-manage db to its end.
func (w *world) manage(tag, command string) (code int, out string) {
	w.Helper()
	return w.end(w.program(tag, "glance-manage", "db", command))
}

func (w *world) end(cmd *exec.Cmd) (code int, out string) {
	w.Helper()
	raw, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(w, err)
	}
	return cmd.ProcessState.ExitCode(), string(raw)
}

// must is manage for a command that has to succeed.
func (w *world) must(tag string, commands ...string) {
	w.Helper()
	for _, command := range commands {
		code, out := w.manage(tag, command)
		require.Zero(w, code, "%s: db %s: %s", tag, command, out)
	}
}

// verify looks at every row.
func (w *world) verify() schema.Report {
	w.Helper()
	pool, err := schema.Connect(w.connection)
	require.NoError(w, err)
	defer pool.Close()
	conn, err := pool.Conn(w.Context())
	require.NoError(w, err)
	defer conn.Close()
	report, err := schema.Verify(w.Context(), conn)
	require.NoError(w, err)
	return report
}

func (w *world) sql(statement string, args ...any) {
	w.Helper()
	pool, err := schema.Connect(w.connection)
	require.NoError(w, err)
	defer pool.Close()
	_, err = pool.ExecContext(w.Context(), statement, args...)
	require.NoError(w, err)
}

// started is a program that goes on.
type started struct {
	cmd   *exec.Cmd
	lines chan string
	ended chan struct{}
	last  *bytes.Buffer
}

func (w *world) start(cmd *exec.Cmd) *started {
	w.Helper()
	out, err := cmd.StdoutPipe()
	require.NoError(w, err)
	s := &started{cmd: cmd, lines: make(chan string, 10_000), ended: make(chan struct{}), last: &bytes.Buffer{}}
	cmd.Stderr = s.last
	require.NoError(w, cmd.Start())
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			s.lines <- lines.Text()
		}
		close(s.lines)
		_ = cmd.Wait() // its code is asked for by those who want it
		close(s.ended)
	}()
	w.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-s.ended
	})
	return s
}

// says waits for a line with those words.
func (w *world) says(s *started, words string) string {
	w.Helper()
	timeout := time.After(20 * time.Second)
	for {
		select {
		case line, more := <-s.lines:
			if !more {
				<-s.ended
				require.Failf(w, "it ended", "it did not say %q; it ended with %d: %s", words, s.cmd.ProcessState.ExitCode(), s.last)
			}
			if strings.Contains(line, words) {
				return line
			}
		case <-timeout:
			require.Failf(w, "it is silent", "it did not say %q", words)
		}
	}
}

// exits waits for the end and returns the exit code.
func (w *world) exits(s *started) int {
	w.Helper()
	select {
	case <-s.ended:
	case <-time.After(20 * time.Second):
		require.Fail(w, "it does not end")
	}
	return s.cmd.ProcessState.ExitCode()
}

// serve starts an API the way the controller starts Glance's, and returns its address.
func (w *world) serve(tag string) (address string, api *started) {
	w.Helper()
	api = w.start(w.program(tag, "uwsgi", "--http-socket", "127.0.0.1:0", "--master", "--lazy-apps", "--need-app", "--enable-threads",
		"--processes", "2", "--threads", "4", "--hook-master-start", "unix_signal:15 gracefully_kill_them_all", "--module", "glance.common.wsgi_app:init_app()"))
	line := w.says(api, "serves on ")
	return "http://" + line[strings.LastIndex(line, " ")+1:], api
}

func decode(t *testing.T, raw string) (fields map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(raw), &fields), raw)
	return fields
}
