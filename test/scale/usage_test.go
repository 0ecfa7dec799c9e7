package scale

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// usage is the processor time that programs have taken.
type usage map[string]time.Duration

// tick is the unit of processor time in /proc.
const tick = time.Second / 100

// used is what every program of the world has taken so far, and the test itself.
func used(t testing.TB) usage {
	t.Helper()
	u := usage{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, stat := range stats {
		content, err := os.ReadFile(stat)
		if err != nil {
			continue // it ended meanwhile
		}
		fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
		if len(fields) < 13 || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		exe, err := os.Readlink(filepath.Join(filepath.Dir(stat), "exe"))
		if err != nil {
			continue
		}
		u[filepath.Base(exe)] += ticks(fields)
	}
	var self syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &self))
	u["the test itself"] = time.Duration(self.Utime.Nano() + self.Stime.Nano())
	return u
}

// processorTime is what one process has taken.
func processorTime(t testing.TB, pid int) time.Duration {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	return ticks(strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:])))
}

// ticks are user and system time among the fields behind the name.
func ticks(fields []string) (sum time.Duration) {
	for _, field := range fields[11:13] {
		n, _ := strconv.Atoi(field) // always a number
		sum += time.Duration(n) * tick
	}
	return sum
}

// since is what has been taken since an earlier look.
func (u usage) since(before usage) usage {
	taken := usage{}
	for program, took := range u {
		taken[program] = took - before[program]
	}
	return taken
}

func (u usage) total() (sum time.Duration) {
	for _, took := range u {
		sum += took
	}
	return sum
}

// String lists the programs, the greediest first.
func (u usage) String() string {
	programs := slices.SortedFunc(maps.Keys(u), func(a, b string) int { return int(u[b] - u[a]) })
	var said []string
	for _, program := range programs {
		if u[program] >= 50*time.Millisecond {
			said = append(said, fmt.Sprintf("%s %.1f s", program, u[program].Seconds()))
		}
	}
	return strings.Join(said, ", ")
}

// resident is the memory of a process, now and at most so far, in MiB.
func resident(t testing.TB, pid int) (now, most float64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		kib, _ := strconv.ParseFloat(words[1], 64)
		switch words[0] {
		case "VmRSS:":
			now = kib / 1024
		case "VmHWM:":
			most = kib / 1024
		}
	}
	return now, most
}
