package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// every is how often a long deed says that it is still at it.
const every = 15 * time.Second

// run does one deed by a command of the machine, says every now and then how long it takes and where it is, and keeps
// what the command said in a file that the error names.
func run(ctx context.Context, log Log, deed, transcript string, cmd *exec.Cmd) error {
	start := time.Now()
	log("%s", deed)
	said := &lastLines{}
	if transcript != "" {
		file, err := os.Create(transcript)
		if err != nil {
			return fmt.Errorf("%s: %w", deed, err)
		}
		defer file.Close()
		said.file = file
	}
	cmd.Stdout, cmd.Stderr = said, said
	inGroup(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", deed, err)
	}

	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if ctx.Err() != nil {
				return fmt.Errorf("%s: stopped after %s: %w", deed, since(start), context.Cause(ctx))
			}
			if err != nil {
				return fmt.Errorf("%s: %w: %s%s", deed, err, said.last(5), seeAlso(transcript))
			}
			return nil
		case <-tick.C:
			log("%s: %s, %s", deed, since(start), said.last(1))
		}
	}
}

// inGroup makes a cancelled context end the command with all that it started, gently first.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
	cmd.WaitDelay = 20 * time.Second
}

func since(start time.Time) time.Duration { return time.Since(start).Round(time.Second) }

func seeAlso(transcript string) string {
	if transcript == "" {
		return ""
	}
	return " (all of it: " + filepath.Clean(transcript) + ")"
}

// lastLines remembers the end of what is written to it, and hands everything on to the file.
type lastLines struct {
	mu    sync.Mutex
	file  *os.File
	lines []string
	rest  []byte
}

func (l *lastLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		if _, err := l.file.Write(p); err != nil {
			return 0, err
		}
	}
	l.rest = append(l.rest, p...)
	for {
		end := bytes.IndexAny(l.rest, "\r\n")
		if end < 0 {
			break
		}
		l.keep(string(l.rest[:end]))
		l.rest = l.rest[end+1:]
	}
	return len(p), nil
}

func (l *lastLines) keep(line string) {
	if line = strings.TrimSpace(line); line != "" {
		l.lines = append(l.lines[max(0, len(l.lines)-9):], line)
	}
}

// last is the last n lines as one: the program that fails last is often not the one that knows why.
func (l *lastLines) last(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep(string(l.rest))
	l.rest = nil
	if len(l.lines) == 0 {
		return "it said nothing"
	}
	return strings.Join(l.lines[max(0, len(l.lines)-n):], "; ")
}
