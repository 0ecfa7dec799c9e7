package mutants

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/c5c3/openstack-upgrade/test/faults/share"
)

// Verdict is what became of a mutant.
type Verdict string

// The verdicts. Broken is none about the tests: the mutant does not compile, names tests that do not exist, or something
// else than a test has failed.
const (
	Killed   Verdict = "killed"
	Survived Verdict = "survived"
	Broken   Verdict = "broken"
)

// Outcome is a verdict with what led to it.
type Outcome struct {
	Mutant  Mutant
	Verdict Verdict
	// Killers are the tests that failed.
	Killers []string
	// Said is the output of the go command.
	Said string
	Took time.Duration
}

// Good tells whether the outcome is what the table says.
func (o Outcome) Good() bool {
	want := Killed
	if o.Mutant.Equivalent != "" {
		want = Survived
	}
	return o.Verdict == want
}

// String is a line of the table.
func (o Outcome) String() string {
	about := o.Mutant.Why
	switch {
	case o.Verdict == Survived && o.Mutant.Equivalent != "":
		about = "equivalent: " + o.Mutant.Equivalent
	case o.Verdict == Killed:
		about = "by " + strings.Join(o.Killers, ", ")
	}
	return fmt.Sprintf("%-8s %5.1fs  %-36s %s", o.Verdict, o.Took.Seconds(), o.Mutant.Name, about)
}

// Run lets the tests of a mutant judge it. Files are put into a directory that the caller removes.
func Run(ctx context.Context, root, dir string, m Mutant) (Outcome, error) {
	overlay, err := m.overlay(root, dir)
	if err != nil {
		return Outcome{}, err
	}
	limit := "3m"
	if !m.Unit() {
		limit = "10m"
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-timeout", limit, "-run", m.By, "./"+m.Package())
	cmd.Dir = root
	// By GOFLAGS it reaches the go command that a test runs, too.
	cmd.Env = append(os.Environ(), share.Much+"="+m.much(), share.Given+"=", share.Collected+"=", strings.TrimSpace("GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay))
	began := time.Now()
	said, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return Outcome{}, fmt.Errorf("test mutant %q: %w", m.Name, ctx.Err())
	}
	outcome := Outcome{Mutant: m, Said: string(said), Took: time.Since(began), Killers: failed(string(said))}
	switch {
	case unjudged.Match(said), err != nil && len(outcome.Killers) == 0:
		outcome.Verdict = Broken
	case err == nil:
		outcome.Verdict = Survived
	default:
		outcome.Verdict = Killed
	}
	return outcome, nil
}

// much is how much there must be for its tests to choose from.
func (m Mutant) much() string {
	if m.Package() == Replay {
		return "whole"
	}
	return ""
}

// unjudged is what the go command says when no test has seen the mutant.
var unjudged = regexp.MustCompile(`\[(build|setup) failed\]|no tests to run|no test files|build the controller`)

var failure = regexp.MustCompile(`(?m)^--- FAIL: (\S+)|^panic: (test timed out)`)

func failed(said string) []string {
	var names []string
	for _, found := range failure.FindAllStringSubmatch(said, -1) {
		names = append(names, found[1]+found[2])
	}
	return slices.Compact(names)
}

// overlay writes the changed file and what the go command must know to take it.
func (m Mutant) overlay(root, dir string) (string, error) {
	changed, err := m.Changed(root)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, strings.ReplaceAll(m.Name, " ", "-")+".go")
	if err := os.WriteFile(file, changed, 0o600); err != nil {
		return "", fmt.Errorf("write mutant %q: %w", m.Name, err)
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, m.File): file}})
	if err != nil {
		return "", fmt.Errorf("write the overlay of mutant %q: %w", m.Name, err)
	}
	path := strings.TrimSuffix(file, ".go") + ".json"
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", fmt.Errorf("write the overlay of mutant %q: %w", m.Name, err)
	}
	return path, nil
}
