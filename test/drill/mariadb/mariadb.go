// Package mariadb starts a MariaDB of its own for tests: on a loopback port, in a directory that goes away, as a user
// that is not root. It is up in about two seconds, and it ends with the process that started it.
package mariadb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Server is a MariaDB that runs.
type Server struct {
	// Root may do everything.
	Root *sql.DB

	dir, socket string
	process     *os.Process
	exited      chan struct{}
}

// nobody is who the server runs as when it is started by root.
const nobody = 65534

const (
	// The path of a user that is not root does not lead there.
	server = "/usr/sbin/mariadbd"
	pkg    = "mariadb-server-core"
)

// Start starts a server, installing Debian's package first if it is missing.
func Start(ctx context.Context, log func(format string, args ...any)) (*Server, error) {
	if err := install(ctx, log); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mariadb-")
	if err != nil {
		return nil, fmt.Errorf("start a database server: %w", err)
	}
	s := &Server{dir: dir, socket: filepath.Join(dir, "server.sock"), exited: make(chan struct{})}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a database server: %w", err), s.Stop())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
	data := filepath.Join(s.dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		for _, dir := range []string{s.dir, data} {
			if err := os.Chown(dir, nobody, nobody); err != nil {
				return err
			}
		}
	}
	if err := s.fill(ctx); err != nil {
		return fmt.Errorf("make its data directory: %w", err)
	}
	if err := s.launch(); err != nil {
		return err
	}
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr, config.InterpolateParams = "root", "unix", s.socket, true
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	s.Root = sql.OpenDB(connector)
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if s.Root.PingContext(ctx) == nil {
			return nil
		}
		select {
		case <-s.exited:
			return errors.New("it ended at once: " + s.lastWords())
		default:
		}
		if ctx.Err() != nil || time.Since(began) > time.Minute {
			return fmt.Errorf("it does not answer since %s: %s", time.Since(began).Round(time.Second), s.lastWords())
		}
	}
}

func (s *Server) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, server, append([]string{
		"--no-defaults", "--datadir=" + filepath.Join(s.dir, "data"), "--tmpdir=" + s.dir, "--skip-name-resolve", "--log-warnings=0",
		// The data need not outlive the process.
		"--innodb-log-file-size=8M", "--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--sync-binlog=0",
		"--character-set-server=utf8mb4",
	}, args...)...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	return cmd
}

// fill makes the system tables; the script that usually does it needs tools of further packages.
func (s *Server) fill(ctx context.Context) error {
	script := strings.Builder{}
	script.WriteString("CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n")
	for _, name := range []string{"system_tables.sql", "system_tables_data.sql"} {
		// Since version 11 the server calls itself MariaDB in the names of its files too.
		found, err := filepath.Glob("/usr/share/m[ay]*/m[ay]*_" + name)
		if err != nil || len(found) == 0 {
			return fmt.Errorf("%s of %s is not there: %w", name, pkg, errors.Join(err, os.ErrNotExist))
		}
		raw, err := os.ReadFile(found[0])
		if err != nil {
			return err
		}
		script.Write(raw)
	}
	cmd := s.command(ctx, "--bootstrap")
	cmd.Stdin = strings.NewReader(script.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, last(string(out)))
	}
	return nil
}

// launch starts the server from a thread that lives as long as it: the kernel ends it with the thread that made it.
func (s *Server) launch() error {
	out, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	// With a binary log, and trusting its users with triggers, as a server for OpenStack is set up.
	cmd := s.command(context.Background(), "--socket="+s.socket, "--bind-address=127.0.0.1", "--skip-networking",
		"--log-bin="+filepath.Join(s.dir, "data", "binlog"), "--server-id=1", "--log-bin-trust-function-creators=1", "--max-connections=300")
	cmd.Stdout, cmd.Stderr = out, out
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer out.Close()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how a killed server ends is of no interest
			close(s.exited)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	s.process = cmd.Process
	return nil
}

// Stop kills the server and removes its data.
func (s *Server) Stop() error {
	if s.Root != nil {
		_ = s.Root.Close()
	}
	if s.process != nil {
		_ = s.process.Kill()
		<-s.exited
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("remove the data of the database server: %w", err)
	}
	return nil
}

func (s *Server) lastWords() string {
	raw, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return last(string(raw))
}

func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "; ")
}
