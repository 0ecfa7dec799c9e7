package sweep

import (
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

// rows are the results, in the order in which experiments began.
type rows struct {
	order []string
	all   map[string]*row
}

type row struct {
	line.Result
	began, ended time.Time
}

func (r *rows) add(p plan, began, ended time.Time, failed bool) {
	name := experiments[p.fault.Deed]
	if share.Whole() {
		name += ", " + p.Story.String()
	}
	if r.all == nil {
		r.all = map[string]*row{}
	}
	found := r.all[name]
	if found == nil {
		found = &row{Result: line.Result{Name: name}, began: began}
		r.all[name], r.order = found, append(r.order, name)
	}
	found.Plans++
	if !failed {
		found.Passed++
	}
	if began.Before(found.began) {
		found.began = began
	}
	if ended.After(found.ended) {
		found.ended = ended
	}
	found.Took = found.ended.Sub(found.began)
}

// conclude prints the rows. A sweep without plans has shown nothing.
func (s *sweep) conclude(t *testing.T) {
	t.Helper()
	for _, name := range s.rows.order {
		s.rows.all[name].Print()
	}
	if len(s.rows.order) == 0 {
		t.Errorf("no plan was run: is PLAN='%s' one that a failure has printed?", share.Plan())
	}
}
