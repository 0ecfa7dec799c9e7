package mutants

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Mutant is one deliberate break.
type Mutant struct {
	// Name is what it is called by in PLAN.
	Name string
	// File lies below the root of the module; From is found in it once, and To stands there instead.
	File, From, To string
	// Why says what the break would do to people.
	Why string
	// In is the package whose tests must notice, empty for that of the file, and By what `go test -run` is given.
	In, By string
	// Equivalent says why no test can tell it from the product, and stays empty where one must.
	Equivalent string
}

// Where tests run the real controller against a real API server: what it does at all, and what it does when a schedule of
// the model is replayed.
const (
	Integration = "test/integration"
	Replay      = "test/faults/replay"
)

// All are the mutants, each table sorted by file.
func All() []Mutant {
	return slices.Concat(law, planner, controller, replayed, rendering, door)
}

// Package is where the tests are that must notice.
func (m Mutant) Package() string { return cmp.Or(m.In, filepath.Dir(m.File)) }

// Unit tells whether that takes nothing but Go.
func (m Mutant) Unit() bool { return !strings.HasPrefix(m.Package(), "test/") }

// Changed is the file of the mutant with the break in it.
func (m Mutant) Changed(root string) ([]byte, error) {
	source, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return nil, fmt.Errorf("read what mutant %q is about: %w", m.Name, err)
	}
	if count := strings.Count(string(source), m.From); count != 1 {
		return nil, fmt.Errorf("mutant %q: its text is found %d times in %s, and must be found once: the source has changed, so change the mutant with it", m.Name, count, m.File)
	}
	return []byte(strings.Replace(string(source), m.From, m.To, 1)), nil
}
