// Package line prints what became of an experiment, as one row of a table.
package line

import (
	"fmt"
	"os"
	"time"

	"github.com/c5c3/openstack-upgrade/test/faults/share"
)

// Result is what became of an experiment.
type Result struct {
	Name          string
	Plans, Passed int
	Took          time.Duration
}

// String is the row.
func (r Result) String() string {
	return fmt.Sprintf("faults  %-60s plans %7d  passed %7d  failed %4d  %6.0fs", r.Name, r.Plans, r.Passed, r.Plans-r.Passed, r.Took.Seconds())
}

// Lacks says why a row has not shown what it is about, of so many plans that were to be in it: none of them was met by
// that, or, where everything is run, fewer than half of them were.
func (r Result) Lacks(asked int) string {
	if asked == 0 || r.Plans > 0 && (!share.Whole() || 2*r.Plans >= asked) {
		return ""
	}
	return fmt.Sprintf("%s: %d of %d plans were met by what they are about", r.Name, r.Plans, asked)
}

// Print writes the row, and appends it to the file that collects rows: `go test` shows of a package that passes nothing.
func (r Result) Print() {
	fmt.Fprintln(os.Stderr, r)
	if share.Lines() == "" {
		return
	}
	file, err := os.OpenFile(share.Lines(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		fmt.Fprintf(os.Stderr, "collect the rows of experiments: %v\n", err)
		return
	}
	defer file.Close()
	fmt.Fprintln(file, r)
}
