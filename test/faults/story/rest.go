package story

import (
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/test/faults/line"
	"github.com/c5c3/openstack-upgrade/test/faults/share"
)

// resting is an object whose story is over, and about which the controller has nothing to write any more.
type resting struct {
	*Play
	since  time.Time
	writes int // of the play, when its story was over
}

// rest keeps an object whose story is over.
func (l *Lane) rest(p *Play) {
	l.asleep = append(l.asleep, resting{p, time.Now(), len(p.Points())})
}

// Part deletes the objects that have rested for long enough, so that a lane does not fill up.
func (l *Lane) Part(t testing.TB, enough time.Duration) {
	t.Helper()
	for len(l.asleep) > 0 && time.Since(l.asleep[0].since) > enough {
		first := l.asleep[0]
		l.asleep, l.parted = l.asleep[1:], l.parted+1
		l.woken = append(l.woken, first.woken()...)
		l.Told.Forget(first.subject(first.NS, first.Name))
		object := first.made(first.NS, first.Name)
		if err := l.Client.Delete(t.Context(), object); client.IgnoreNotFound(err) != nil {
			t.Errorf("delete %s: %v", first.Name, err)
		}
	}
}

// Stay waits until the last story has been over for a while, takes so many lanes back, and demands that no controller has
// written about any story since it was over. It prints the row of that, of the stories that came to their end.
func Stay[L interface {
	Rested() int
	Woken() []string
}](t testing.TB, experiment string, many int, lanes <-chan L) {
	t.Helper()
	time.Sleep(share.Stays())
	var woken []string
	rested := 0
	for range many {
		lane := <-lanes
		rested += lane.Rested()
		woken = append(woken, lane.Woken()...)
	}
	for _, each := range woken {
		t.Error(each)
	}
	line.Result{Name: "nothing written once a story is over, " + experiment, Plans: rested, Passed: max(0, rested-len(woken)), Took: share.Stays()}.Print()
}

// Rested is how many objects have come to rest, deleted ones and all that are left.
func (l *Lane) Rested() int { return l.parted + len(l.asleep) }

// Woken are the writes about objects whose story was over, deleted ones and all that are left, and that there was nobody
// left to write. There should be none.
func (l *Lane) Woken() (woken []string) {
	woken = l.woken
	if len(l.asleep) > 0 && l.Controller().Ended() {
		woken = append(woken, fmt.Sprintf("%d stories were over beside a controller that has ended by itself, see %s", len(l.asleep), l.Controller().Log))
	}
	for _, each := range l.asleep {
		woken = append(woken, each.woken()...)
	}
	return woken
}

func (r resting) woken() (woken []string) {
	for _, point := range r.Points()[r.writes:] {
		what := fmt.Sprintf("%s was over, and the controller did: %s", r.Story, point)
		if r.Disturbed != "" {
			what += "\nagain: " + r.Disturbed
		}
		woken = append(woken, what)
	}
	return woken
}
