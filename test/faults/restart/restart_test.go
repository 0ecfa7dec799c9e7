package restart

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/faults/history"
	"github.com/c5c3/openstack-upgrade/test/faults/line"
	"github.com/c5c3/openstack-upgrade/test/faults/share"
	"github.com/c5c3/openstack-upgrade/test/faults/story"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// shareOfStories is how many stories a share is about.
const shareOfStories = 6

// away is how long there is no API server.
func away() time.Duration {
	if share.Whole() {
		return time.Minute
	}
	return 10 * time.Second
}

// round is all stories at once, and one loss of the API server: when the first of them is seen in a phase.
type round struct {
	phase upgrade.Phase
	meet  sync.Once
	met   chan struct{}

	mu      sync.Mutex
	killed  bool
	back    bool
	waiting int           // stories that are not over
	again   chan struct{} // closed when the API server is there again, or was not to be
}

// world is what all rounds share.
type world struct {
	env   *harness.Env
	lanes chan *story.Lane
	mu    sync.Mutex
	seed  uint64
	names int
	known map[string]story.Outcome
	line.Result
}

func TestAStoryComesToTheSameWhenTheAPIServerIsKilledAndStartedAgain(t *testing.T) {
	began, stories, phases := time.Now(), story.All(), slices.Clone(upgrade.Phases)
	w := &world{env: harness.Shared(t), known: map[string]story.Outcome{}}
	if !share.Whole() {
		w.seed = share.Seed(t)
		random := rand.New(rand.NewPCG(w.seed, 0))
		random.Shuffle(len(stories), func(i, j int) { stories[i], stories[j] = stories[j], stories[i] })
		// The phase of one story of the share that walks, so that it comes.
		walks := slices.IndexFunc(stories, func(s story.Story) bool { return len(s.Phases()) > 0 })
		stories[0], stories[walks] = stories[walks], stories[0]
		stories, phases = stories[:shareOfStories], stories[0].Phases()[:1]
	}
	if plan := share.Plan(); plan != "" {
		phases = slices.DeleteFunc(phases, func(phase upgrade.Phase) bool { return string(phase) != plan })
		if len(phases) == 0 {
			t.Fatalf("PLAN='%s' is no phase", plan)
		}
	}
	w.lanes = make(chan *story.Lane, len(stories))
	w.Name = "API server killed, started again after " + away().String()
	told, as := history.Follow(t, w.env), w.env.ControllerConfig(t)
	for range stories {
		w.lanes <- story.Open(t, w.env, told, as)
	}
	t.Run("undisturbed", func(t *testing.T) {
		for _, each := range stories {
			t.Run(each.String(), func(t *testing.T) {
				t.Parallel()
				outcome := w.live(t, each, nil)
				w.mu.Lock()
				defer w.mu.Unlock()
				w.known[each.String()] = outcome
			})
		}
	})
	for _, phase := range phases {
		t.Run("killed in "+string(phase), func(t *testing.T) { w.round(t, stories, phase) })
	}
	story.Stay(t, "restart", len(stories), w.lanes)
	if w.Plans == 0 {
		t.Error("no story was under way when the API server was killed")
	}
	w.Took = time.Since(began)
	w.Print()
}

// round lives all stories side by side, and kills the API server when the first comes to the phase.
func (w *world) round(t *testing.T, stories []story.Story, phase upgrade.Phase) {
	r := &round{phase: phase, met: make(chan struct{}), again: make(chan struct{}), waiting: len(stories)}
	back := make(chan error, 1)
	go func() { back <- w.lose(t.Context(), r) }()
	t.Run("stories", func(t *testing.T) {
		for _, each := range stories {
			t.Run(each.String(), func(t *testing.T) { t.Parallel(); w.disturbed(t, each, r) })
		}
	})
	if err := <-back; err != nil {
		t.Error(err)
	}
}

func (w *world) lose(ctx context.Context, r *round) error {
	defer close(r.again)
	<-r.met
	r.mu.Lock()
	killed := r.killed
	r.mu.Unlock()
	if !killed {
		return fmt.Errorf("no story came to %s", r.phase)
	}
	startAgain, err := w.env.KillAPIServer()
	if err != nil {
		return err
	}
	time.Sleep(away())
	err = startAgain(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.back = true
	return err
}

// see is what a play shows of its object.
func (r *round) see(o story.Object) {
	if o.State().Phase == r.phase {
		r.meet.Do(func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.killed = true
			close(r.met)
		})
	}
}

// over tells whether a story that is over now has seen the loss. When none is left that could, nobody waits for it.
func (r *round) over() (saw bool) {
	r.mu.Lock()
	r.waiting--
	saw, last := r.killed, r.waiting == 0
	r.mu.Unlock()
	if last {
		r.meet.Do(func() { close(r.met) })
	}
	return saw
}

func (w *world) disturbed(t *testing.T, each story.Story, r *round) {
	saw, told := false, false
	r.mu.Lock()
	late := r.back // more stories than run side by side
	r.mu.Unlock()
	defer func() {
		if !told {
			saw = r.over()
		}
		if t.Failed() {
			t.Logf("This round again: %s", w.command(r.phase))
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case t.Failed():
			w.Plans++
		case saw && !late:
			w.Plans, w.Passed = w.Plans+1, w.Passed+1
		}
	}()
	outcome := w.live(t, each, func(p *story.Play) {
		p.Look, p.Disturbed = r.see, w.command(r.phase)
		p.Calm = func() {
			if told, saw = true, r.over(); saw {
				<-r.again
				time.Sleep(story.Retold)
			}
		}
	})
	w.mu.Lock()
	known := w.known[each.String()]
	w.mu.Unlock()
	if differs := strings.TrimSpace(outcome.Differs(known)); differs != "" {
		t.Errorf("it came to something else than undisturbed:\n%s\nthe whole history:\n%s", differs, outcome.Told)
	}
}

// command runs a round again.
func (w *world) command(phase upgrade.Phase) string {
	if share.Whole() {
		return fmt.Sprintf("make faults RUN=KilledAndStartedAgain PLAN='%s'", phase)
	}
	return fmt.Sprintf("make test-faults RUN=KilledAndStartedAgain %s=%d", share.Chance, w.seed)
}

// live lives a story in a lane that is free, and judges it by the rules that always hold.
func (w *world) live(t *testing.T, each story.Story, disturb func(*story.Play)) story.Outcome {
	t.Helper()
	lane := <-w.lanes
	w.mu.Lock()
	w.names++
	name := fmt.Sprintf("i%dx", w.names)
	w.mu.Unlock()
	defer func() {
		lane.Calm()
		w.lanes <- lane
	}()
	outcome, _ := each.Live(t, lane, name, disturb)
	for _, broken := range outcome.Broken {
		t.Errorf("%s", broken)
	}
	return outcome
}
