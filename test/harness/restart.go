package harness

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const apiServer = "kube-apiserver"

// KillAPIServer ends the API server at once, as a node that is lost does, and gives what starts another in its place, with
// the same flags and the same store, and waits until it is ready. Nobody may use this world who does not expect it.
func (e *Env) KillAPIServer() (startAgain func(context.Context) error, err error) {
	pid, flags, err := e.runningAPIServer()
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		return nil, fmt.Errorf("kill the API server: %w", err)
	}
	return func(ctx context.Context) error {
		if err := e.restartAPIServer(ctx, flags); err != nil {
			return fmt.Errorf("start the API server again: %w", err)
		}
		return nil
	}, nil
}

// runningAPIServer finds the one that this process has started, and how.
func (e *Env) runningAPIServer() (pid int, flags []string, err error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, nil, fmt.Errorf("list processes: %w", err)
	}
	for _, stat := range stats {
		pid, parent := readStat(stat)
		exe, err := os.Readlink(filepath.Join(filepath.Dir(stat), "exe"))
		if parent != os.Getpid() || err != nil || filepath.Base(exe) != apiServer {
			continue
		}
		line, err := os.ReadFile(filepath.Join(filepath.Dir(stat), "cmdline"))
		if err != nil {
			return 0, nil, fmt.Errorf("read its flags: %w", err)
		}
		arguments := strings.Split(string(bytes.TrimRight(line, "\x00")), "\x00")
		return pid, arguments[1:], nil
	}
	return 0, nil, fmt.Errorf("no %s is a child of this process", apiServer)
}

func (e *Env) restartAPIServer(ctx context.Context, flags []string) error {
	c, err := e.launch(apiServer, fmt.Sprintf("%s-%d", apiServer, len(e.again)+2), flags)
	if err != nil {
		return err
	}
	e.again = append(e.again, c)
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := c.exited(); err != nil {
			return false, err
		}
		return e.plain.Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for it to be ready: %w", err)
	}
	return nil
}
