package sweep

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/c5c3/openstack-upgrade/test/faults/line"
	"github.com/c5c3/openstack-upgrade/test/faults/share"
	"github.com/c5c3/openstack-upgrade/test/faults/wire"
)

// experiments is which deeds are told in one row.
var experiments = map[wire.Deed]string{
	wire.KillBefore: "crash before and after each write", wire.KillAfter: "crash before and after each write",
	wire.LoseReply: "reply lost after each write", wire.TimeOut: "reply lost after each write",
	wire.Conflict: "1, 5, 50 conflicts at each update",
}

// rows are the results by the names of experiments.
type rows struct {
	order []string
	all   map[string]*line.Result
	// asked is how many plans were to be run.
	asked map[string]int
	// failed is how many plans of all did.
	failed int
}

// again is the row of plans with a second crash.
const again = "crash, and again at a write that only the first brought"

// row is the name of the one that a plan is counted in.
func (p plan) row() string {
	name := experiments[p.faults[0].Deed]
	switch {
	case len(p.faults) > 1:
		name = again
	case share.Whole():
		name += ", " + p.Story.String()
	}
	return name
}

// ask counts plans that are about to be run.
func (r *rows) ask(plans []plan) {
	if r.asked == nil {
		r.asked = map[string]int{}
	}
	for _, p := range plans {
		r.asked[p.row()]++
	}
}

// count counts a plan. What it took is its share of the time that all took: many are run side by side.
func (r *rows) count(name string, took time.Duration, failed bool) {
	if r.all == nil {
		r.all = map[string]*line.Result{}
	}
	found := r.all[name]
	if found == nil {
		found = &line.Result{Name: name}
		r.all[name], r.order = found, append(r.order, name)
	}
	found.Plans++
	found.Took += took / lanes
	if failed {
		r.failed++
		return
	}
	found.Passed++
}

// lacks are the rows whose plans have vanished, and a plan that was asked for and is none.
func (r *rows) lacks() (lacks []string) {
	for name, asked := range r.asked {
		result := line.Result{Name: name}
		if found := r.all[name]; found != nil {
			result = *found
		}
		if lack := result.Lacks(asked); lack != "" {
			lacks = append(lacks, lack)
		}
	}
	twice := strings.Contains(share.Plan(), "; ") // the first crash alone is another plan
	if len(r.asked) == 0 || twice && r.asked[again] == 0 {
		lacks = append(lacks, fmt.Sprintf("no plan was run: is PLAN='%s' one that a failure has printed?", share.Plan()))
	}
	return lacks
}

// conclude prints the rows. A sweep without plans has shown nothing.
func (s *sweep) conclude(t *testing.T) {
	t.Helper()
	slices.Sort(s.rows.order)
	for _, name := range s.rows.order {
		s.rows.all[name].Print()
	}
	if len(s.unmet) > 0 {
		fmt.Fprintf(os.Stderr, "%d plans are in no row, since their write did not come, or not as often as planned:\n  %s\n", len(s.unmet), strings.Join(s.unmet, "\n  "))
	}
	for _, lack := range s.rows.lacks() {
		t.Error(lack)
	}
}
