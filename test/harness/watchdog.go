package harness

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// watchdog ends the components when this process is gone: a test that panics, runs into its timeout or is killed runs no
// clean-up. It reads process ids from a pipe that closes with this process, whatever the reason.
type watchdog struct {
	cmd     *exec.Cmd
	pipe    io.WriteCloser
	guarded map[int]bool
}

// The path is compared because a process id may have been given to another program since.
const watchdogScript = `
while read -r pid exe; do set -- "$@" "$pid" "$exe"; done
while [ $# -gt 1 ]; do
	[ "$(readlink "/proc/$1/exe")" = "$2" ] && kill -KILL "$1"
	shift 2
done
rm -rf "$RUBBISH/etcd" "$RUBBISH/pki"`

func startWatchdog(dir string) (*watchdog, error) {
	cmd := exec.Command("/bin/sh", "-c", watchdogScript)
	cmd.Env = append(os.Environ(), "RUBBISH="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("make the pipe of the watchdog: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the watchdog: %w", err)
	}
	return &watchdog{cmd: cmd, pipe: pipe, guarded: map[int]bool{}}, nil
}

// guard tells the watchdog of every child of this process that runs a program from the directory.
func (w *watchdog) guard(dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("find the directory of the programs: %w", err)
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	for _, stat := range stats {
		pid, parent := readStat(stat)
		if parent != os.Getpid() || w.guarded[pid] {
			continue
		}
		exe, err := os.Readlink(filepath.Join(filepath.Dir(stat), "exe"))
		if err != nil || filepath.Dir(exe) != dir {
			continue
		}
		if _, err := fmt.Fprintln(w.pipe, pid, exe); err != nil {
			return fmt.Errorf("tell the watchdog: %w", err)
		}
		w.guarded[pid] = true
	}
	return nil
}

// readStat is the process and its parent. The name between them may hold anything, so it is skipped from the right.
func readStat(path string) (pid, parent int) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, 0 // it ended meanwhile
	}
	name := strings.LastIndexByte(string(content), ')')
	fields := strings.Fields(string(content[name+1:]))
	if name < 0 || len(fields) < 2 {
		return 0, 0
	}
	pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(path)))
	parent, _ = strconv.Atoi(fields[1])
	return pid, parent
}

// release lets the watchdog go, once everything it guards has ended.
func (w *watchdog) release() error {
	if err := w.pipe.Close(); err != nil {
		return fmt.Errorf("close the pipe of the watchdog: %w", err)
	}
	if err := w.cmd.Wait(); err != nil {
		return fmt.Errorf("wait for the watchdog: %w", err)
	}
	return nil
}
