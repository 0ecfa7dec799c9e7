// Command bench runs every benchmark of the product and ends with one table: what was measured, and what the goal is.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/c5c3/openstack-upgrade/test/cluster/binaries"
)

// packages hold the benchmarks, the quickest first.
var packages = []string{"./shared/upgrade", "./test/bench/hook", "./test/integration"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	benchtime := flag.String("benchtime", "1s", "how long each benchmark runs, as in go test")
	only := flag.String("run", ".", "which benchmarks run, as in go test -bench")
	flag.Parse()
	if err := run(ctx, os.Stdout, *benchtime, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures one package after the other, so that none disturbs another.
func run(ctx context.Context, out io.Writer, benchtime, only string) error {
	root, err := binaries.Root()
	if err != nil {
		return err
	}
	began := time.Now()
	measured := results{}
	for _, name := range packages {
		fmt.Fprintf(out, "%4.0fs  go test -bench %s %s\n", time.Since(began).Seconds(), only, name)
		var said strings.Builder
		test := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", only, "-benchmem", "-benchtime", benchtime, "-timeout", "10m", name)
		test.Dir, test.Stderr = root, os.Stderr
		test.Stdout = io.MultiWriter(&said, benchmarkLines{out})
		if err := test.Run(); err != nil {
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			return fmt.Errorf("go test %s: %w\n%s", name, err, said.String())
		}
		measured.read(said.String())
	}
	fmt.Fprintf(out, "\n%s\n%4.0fs  %d benchmarks on %s\n", measured.table(), time.Since(began).Seconds(), len(measured), machine())
	return nil
}

// benchmarkLines lets through what a benchmark has measured, as soon as it has.
type benchmarkLines struct{ out io.Writer }

func (w benchmarkLines) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "Benchmark") || strings.HasPrefix(line, "---") || strings.Contains(line, "ns/op") {
			fmt.Fprint(w.out, "       ", line)
		}
	}
	return len(text), nil
}

// machine says what it ran on: no figure means anything without.
func machine() string {
	model := "an unknown processor"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == "model name" {
				model = strings.TrimSpace(value)
			}
		}
	}
	load := "unknown"
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		load, _, _ = strings.Cut(string(text), " ")
	}
	return fmt.Sprintf("%d cores of %s, load %s", cores(), model, load)
}
