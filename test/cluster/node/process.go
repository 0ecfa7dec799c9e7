package node

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process names one process for good: numbers are reused, a number with its start time within one boot is not.
type Process struct {
	PID     int    `json:"pid"`
	Started string `json:"started"`
	Boot    string `json:"boot"`
}

// Identify reads what makes pid this process and no later one.
func Identify(pid int) (Process, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Process{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	started, state, err := parseStat(string(stat))
	if err != nil {
		return Process{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	if state == "Z" || state == "X" {
		return Process{}, fmt.Errorf("identify process %d: it has ended", pid)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Process{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	return Process{PID: pid, Started: started, Boot: strings.TrimSpace(string(boot))}, nil
}

// parseStat finds state and start time behind the command name, which may itself hold spaces and brackets.
func parseStat(stat string) (started, state string, err error) {
	end := strings.LastIndexByte(stat, ')')
	if end < 0 {
		return "", "", fmt.Errorf("unexpected stat line %q", stat)
	}
	fields := strings.Fields(stat[end+1:])
	const stateField, startField = 0, 19
	if len(fields) <= startField {
		return "", "", fmt.Errorf("unexpected stat line %q", stat)
	}
	if _, err := strconv.ParseUint(fields[startField], 10, 64); err != nil {
		return "", "", fmt.Errorf("unexpected start time in %q", stat)
	}
	return fields[startField], fields[stateField], nil
}

// Alive says whether this very process still runs.
func (p Process) Alive() bool {
	if p.PID <= 1 {
		return false
	}
	now, err := Identify(p.PID)
	return err == nil && now == p
}

// End kills the process if it is still this one, and waits until it is gone. The handle is taken before the look, so
// the number cannot pass to another process in between.
func (p Process) End(patience time.Duration) error {
	if p.PID <= 1 {
		return nil
	}
	handle, err := os.FindProcess(p.PID)
	if err != nil {
		return nil
	}
	defer func() { _ = handle.Release() }()
	if !p.Alive() {
		return nil
	}
	if err := handle.Signal(syscall.SIGKILL); err != nil && p.Alive() {
		return fmt.Errorf("end process %d: %w", p.PID, err)
	}
	for deadline := time.Now().Add(patience); p.Alive(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d does not end within %s of SIGKILL", p.PID, patience)
		}
	}
	return nil
}
