package walks

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
)

// tally counts how often each deed was done in all walks, and how often it met anything: a storm of conflicts without a
// write, or a view that stands still while there is nothing to see, is none.
type tally struct {
	mu        sync.Mutex
	done, met map[Deed]int
}

func newTally() *tally { return &tally{done: map[Deed]int{}, met: map[Deed]int{}} }

// add counts the deeds of a walk that is over.
func (y *tally) add(r *runner) {
	r.metLock.Lock()
	defer r.metLock.Unlock()
	y.mu.Lock()
	defer y.mu.Unlock()
	for i, step := range r.Steps {
		y.done[step.Deed]++
		if r.met[i] {
			y.met[step.Deed]++
		}
	}
}

// vain are the deeds that never met anything, however often they were done.
func (y *tally) vain() (deeds []string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, each := range weighted {
		if done := y.done[each.deed]; done > 0 && y.met[each.deed] == 0 {
			deeds = append(deeds, fmt.Sprintf("%s: %d times", each.deed, done))
		}
	}
	return deeds
}

// print is a table of all of them.
func (y *tally) print() {
	y.mu.Lock()
	defer y.mu.Unlock()
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "walks  deed\tdone\tmet something")
	for _, each := range weighted {
		fmt.Fprintf(table, "walks  %s\t%d\t%d\n", each.deed, y.done[each.deed], y.met[each.deed])
	}
	table.Flush()
	fmt.Fprint(os.Stderr, text.String())
}

// meets notes that a step has met something.
func (r *runner) meets(step int) {
	r.metLock.Lock()
	defer r.metLock.Unlock()
	if r.met == nil {
		r.met = map[int]bool{}
	}
	r.met[step] = true
}

// weather is a disturbance of the line that lasts: whether it has met anything shows later.
type weather struct {
	step int
	met  func() bool
}

// clear judges the storm of conflicts, or the disturbed view, that another or none is about to follow.
func (r *runner) clear(w **weather) {
	if *w != nil && (*w).met() {
		r.meets((*w).step)
	}
	*w = nil
}
