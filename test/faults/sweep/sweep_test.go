package sweep

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/c5c3/openstack-upgrade/test/faults/history"
	"github.com/c5c3/openstack-upgrade/test/faults/share"
	"github.com/c5c3/openstack-upgrade/test/faults/story"
	"github.com/c5c3/openstack-upgrade/test/faults/wire"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

const (
	// lanes is how many stories are lived at a time: they wait for controllers far more than for a CPU.
	lanes = 16
	// The bounded share: so many stories, and so many plans for them.
	shareOfStories, shareOfPlans = 5, 22
	// mostPairs is how many plans with a second crash the whole holds; there are more than it has time for.
	mostPairs = 200
)

func TestAStoryComesToTheSameWhateverIsDoneToAnyOfItsWrites(t *testing.T) {
	s := begin(t)
	stories := s.choose(story.All())
	t.Run("undisturbed", func(t *testing.T) {
		for _, each := range stories {
			t.Run(each.String(), func(t *testing.T) { t.Parallel(); s.undisturbed(t, each) })
		}
	})
	for _, round := range []func([]story.Story) []plan{s.once, s.again} {
		plans := s.share(round(stories))
		s.rows.ask(plans)
		s.left.Store(int32(len(plans)))
		t.Run("disturbed", func(t *testing.T) {
			for _, each := range plans {
				t.Run(each.String(), func(t *testing.T) { t.Parallel(); s.disturbed(t, each) })
			}
		})
	}
	story.Stay(t, "sweep", lanes, s.lanes)
	s.conclude(t)
}

// sweep is one sweep over many stories.
type sweep struct {
	env   *harness.Env
	rand  *rand.Rand
	lanes chan *story.Lane
	names atomic.Int32
	left  atomic.Int32

	mu      sync.Mutex
	known   map[string]knowledge // by story
	further []plan
	unmet   []string
	rows    rows
}

// knowledge is what is known of a story that was lived undisturbed: what it comes to, and by which writes.
type knowledge struct {
	outcome story.Outcome
	points  []wire.Point
}

func begin(t *testing.T) *sweep {
	t.Helper()
	s := &sweep{env: harness.Shared(t), lanes: make(chan *story.Lane, lanes), known: map[string]knowledge{}}
	s.rand = rand.New(rand.NewPCG(share.Seed(t), 0))
	told := history.Follow(t, s.env)
	as := s.env.ControllerConfig(t)
	for range lanes {
		s.lanes <- story.Open(t, s.env, told, as)
	}
	return s
}

// choose leaves out stories that the share does not hold.
func (s *sweep) choose(all []story.Story) []story.Story {
	if asked := share.Plan(); asked != "" {
		return slices.DeleteFunc(all, func(each story.Story) bool {
			return !strings.HasPrefix(asked, each.String()+": ") && !strings.HasPrefix(each.String()+": ", asked)
		})
	}
	if share.Whole() {
		return all
	}
	s.rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:shareOfStories]
}

// live lives a story in a lane that is free, and judges it by the rules that always hold. It gives the writes that came,
// and whether what was planned was met.
func (s *sweep) live(t *testing.T, p plan) (_ story.Outcome, points []wire.Point, met bool) {
	t.Helper()
	lane := <-s.lanes
	defer func() {
		lane.Wire.Plan()
		lane.Wire.Refuse(nil)
		lane.Part(t, 2*share.Stays())
		s.lanes <- lane
	}()
	outcome, play := p.Live(t, lane, fmt.Sprintf("i%dx", s.names.Add(1)), func(play *story.Play) {
		if play.Plan(p.faults...); len(p.faults) > 0 {
			play.Disturbed = p.command()
		}
	})
	for _, broken := range outcome.Broken {
		t.Errorf("%s", broken)
	}
	return outcome, play.Points(), len(lane.Wire.Unmet()) == 0
}

func (s *sweep) undisturbed(t *testing.T, each story.Story) {
	started := time.Now()
	defer func() { s.mu.Lock(); defer s.mu.Unlock(); s.rows.count("undisturbed", time.Since(started), t.Failed()) }()
	outcome, points, _ := s.live(t, plan{Story: each})
	if t.Failed() {
		t.Logf("the whole history:\n%s", outcome.Told)
	}
	t.Logf("its writes: %v", points)
	s.mu.Lock()
	s.known[each.String()] = knowledge{outcome, points}
	s.mu.Unlock()
}

func (s *sweep) disturbed(t *testing.T, p plan) {
	started, reached := time.Now(), true
	defer func() { s.close(t, p, started, reached) }()
	outcome, points, met := s.live(t, p)
	reached = met
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.known[p.Story.String()]
	if differs := outcome.Differs(known.outcome); differs != "" {
		t.Errorf("it came to something else than undisturbed:\n%s", differs)
	}
	if t.Failed() {
		t.Logf("the whole history:\n%s", outcome.Told)
	}
	for _, point := range points {
		if !slices.Contains(known.points, point) {
			s.further = append(s.further, p.further(point)...)
		}
	}
}

// close puts a plan into its row. One whose write did not come, because another run had a write more, was no plan.
func (s *sweep) close(t *testing.T, p plan, started time.Time, reached bool) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.Failed() {
		t.Logf("This plan again: %s", p.command())
	}
	if reached || t.Failed() {
		s.rows.count(p.row(), time.Since(started), t.Failed())
	} else {
		s.unmet = append(s.unmet, p.String())
	}
	if left := s.left.Add(-1); left%25 == 0 && share.Whole() {
		fmt.Fprintf(os.Stderr, "%s  %d plans are left, %d have failed\n", time.Now().Format(time.TimeOnly), left, s.rows.failed)
	}
}
