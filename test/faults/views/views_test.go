package views

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/c5c3/openstack-upgrade/test/faults/history"
	"github.com/c5c3/openstack-upgrade/test/faults/line"
	"github.com/c5c3/openstack-upgrade/test/faults/share"
	"github.com/c5c3/openstack-upgrade/test/faults/story"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

const (
	// lanes is how many stories are lived at a time: as many tests as a harness runs side by side.
	lanes = 16
	// shareOfStories is how many stories a share is about.
	shareOfStories = 6
	// blindness is how long a view is stale or cut: longer than a cache may be behind a write of its own.
	blindness = 6 * time.Second
)

// outage is how long the API server cannot be reached.
func outage() time.Duration {
	if share.Whole() {
		return time.Minute
	}
	return 20 * time.Second
}

// experiment is what is demanded of the plans of one kind.
type experiment struct {
	name string
	// lasting is how long the disturbance lasts.
	lasting func() time.Duration
	// same says what of an outcome is not as it was undisturbed.
	same func(is, was story.Outcome) string
	// few is how many plans a share holds.
	few int
}

var experiments = map[what]experiment{
	stale:       {"stale views, thawed later", func() time.Duration { return blindness }, whole, 6},
	missed:      {"missed edges, listed later", func() time.Duration { return blindness }, whole, 4},
	unreachable: {"API server out of reach", outage, whole, 1},
	// A walk whose record is lost may begin anew, with another attempt, and so repeat commands.
	wiped: {"status wiped", func() time.Duration { return 0 }, ending, 3},
}

// order is that of the rows.
var order = []what{stale, missed, unreachable, wiped}

// all are the plans of a kind.
func all(kind what) (found []plan) {
	for _, s := range story.All() {
		for _, at := range moments(s.Phases()) {
			if kind == unreachable || kind == wiped && at != first {
				found = append(found, plan{s, sight{kind, "", at}})
			}
			if kind != stale && kind != missed {
				continue
			}
			for _, resource := range resources(s) {
				found = append(found, plan{s, sight{kind, resource, at}})
			}
		}
	}
	return found
}

// run is what is needed to carry out plans.
type run struct {
	env   *harness.Env
	plans []plan
	lanes chan *story.Lane
	names atomic.Int32

	mu    sync.Mutex
	known map[string]story.Outcome
	rows  map[what]*row
	unmet []string
}

// row is what became of the plans of a kind, from when the first of them began to when the last of them ended.
type row struct {
	line.Result
	began time.Time
}

func whole(is, was story.Outcome) string {
	is.End, was.End = noted.ReplaceAllString(is.End, ""), noted.ReplaceAllString(was.End, "")
	return is.Differs(was)
}

// noted is what the Deployment tells of the record. Once a contract is proven by its Job there are two ways to say the
// same, and which is chosen depends on what was seen first.
var noted = regexp.MustCompile(`(?m)available, \{.*\}$`)

// anew is what a walk that has begun anew leaves differently.
var anew = regexp.MustCompile(`(Attempt:|attempt |Attempt":)\d+`)

// passed are the Jobs of phases that a story has passed by when it begins, and a walk that begins anew has not.
var passed = regexp.MustCompile(`(?m)^Job images-db-(expand|migrate|contract) .*\n`)

func ending(is, was story.Outcome) string {
	end := func(o story.Outcome) story.Outcome {
		return story.Outcome{End: passed.ReplaceAllString(anew.ReplaceAllString(o.End, "${1}N"), "")}
	}
	return whole(end(is), end(was))
}

func TestAStoryComesToTheSameWhateverTheControllerSees(t *testing.T) {
	t.Parallel()
	e := &run{env: harness.Shared(t), known: map[string]story.Outcome{}, rows: map[what]*row{}}
	e.choose(t)
	e.lanes = make(chan *story.Lane, lanes)
	told, as := history.Follow(t, e.env), e.env.ControllerConfig(t)
	many := min(lanes, len(e.plans))
	for range many {
		e.lanes <- story.Open(t, e.env, told, as)
	}
	t.Run("undisturbed", func(t *testing.T) {
		for name, each := range e.stories() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				outcome := e.live(t, each, nil)
				e.mu.Lock()
				defer e.mu.Unlock()
				e.known[name] = outcome
			})
		}
	})
	t.Run("disturbed", func(t *testing.T) {
		for _, each := range e.plans {
			t.Run(each.String(), func(t *testing.T) {
				t.Parallel()
				e.disturbed(t, each)
			})
		}
	})
	story.Stay(t, "views", many, e.lanes)
	for _, kind := range order {
		if row := e.rows[kind]; row != nil {
			row.Print()
		}
	}
	if len(e.unmet) > 0 {
		fmt.Fprintf(os.Stderr, "%d plans are in no row, since there was nothing to be kept from the controller:\n  %s\n", len(e.unmet), strings.Join(e.unmet, "\n  "))
	}
	for _, lack := range e.lacks() {
		t.Error(lack)
	}
}

// lacks are the kinds whose plans have vanished.
func (e *run) lacks() (lacks []string) {
	asked := map[what]int{}
	for _, p := range e.plans {
		asked[p.what]++
	}
	for _, kind := range order {
		result := line.Result{Name: experiments[kind].name}
		if found := e.rows[kind]; found != nil {
			result = found.Result
		}
		if lack := result.Lacks(asked[kind]); lack != "" {
			lacks = append(lacks, lack)
		}
	}
	return lacks
}

// close counts a plan in the row of its kind. One that kept nothing from the controller was no plan.
func (e *run) close(p plan, began time.Time, failed, met bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !failed && !met {
		e.unmet = append(e.unmet, p.String())
		return
	}
	found := e.rows[p.what]
	if found == nil {
		found = &row{line.Result{Name: experiments[p.what].name}, began}
		if lasting := experiments[p.what].lasting(); lasting > 0 {
			found.Name += ", for " + lasting.String()
		}
		e.rows[p.what] = found
	}
	if began.Before(found.began) {
		found.began = began
	}
	found.Took = time.Since(found.began)
	found.Plans++
	if !failed {
		found.Passed++
	}
}

// choose takes all plans, a share of them, or the one that is asked for.
func (e *run) choose(t *testing.T) {
	t.Helper()
	random := rand.New(rand.NewPCG(share.Seed(t), 0))
	stories := story.All()
	random.Shuffle(len(stories), func(i, j int) { stories[i], stories[j] = stories[j], stories[i] })
	for _, kind := range order {
		plans := all(kind)
		switch one := share.Plan(); {
		case one != "":
			plans = slices.DeleteFunc(plans, func(each plan) bool { return each.String() != one })
		case !share.Whole():
			// A few stories, lived undisturbed once, serve all kinds.
			plans = slices.DeleteFunc(plans, func(each plan) bool {
				return !slices.ContainsFunc(stories[:shareOfStories], func(s story.Story) bool { return s.String() == each.Story.String() })
			})
			random.Shuffle(len(plans), func(i, j int) { plans[i], plans[j] = plans[j], plans[i] })
			plans = plans[:min(len(plans), experiments[kind].few)]
		}
		e.plans = append(e.plans, plans...)
	}
	if len(e.plans) == 0 {
		t.Fatalf("PLAN='%s' is no plan that a failure has printed", share.Plan())
	}
}

func (e *run) stories() map[string]story.Story {
	found := map[string]story.Story{}
	for _, each := range e.plans {
		found[each.Story.String()] = each.Story
	}
	return found
}

// live lives a story in a lane that is free, and judges it by the rules that always hold.
func (e *run) live(t *testing.T, each story.Story, disturb func(*story.Play)) story.Outcome {
	t.Helper()
	lane := <-e.lanes
	defer func() {
		lane.Calm()
		lane.Part(t, 2*share.Stays())
		e.lanes <- lane
	}()
	outcome, _ := each.Live(t, lane, fmt.Sprintf("i%dx", e.names.Add(1)), disturb)
	for _, broken := range outcome.Broken {
		t.Errorf("%s", broken)
	}
	return outcome
}

func (e *run) disturbed(t *testing.T, p plan) {
	t.Helper()
	began, met := time.Now(), false
	defer func() {
		if t.Failed() {
			t.Logf("This plan again: %s", p.command())
		}
		e.close(p, began, t.Failed(), met)
	}()
	var w *waiter
	outcome := e.live(t, p.Story, func(play *story.Play) {
		play.Disturbed = p.command()
		w = p.disturb(play, experiments[p.what].lasting())
	})
	met = w.met && w.kept() // a phase that is over between two glimpses is not met
	e.mu.Lock()
	known := e.known[p.Story.String()]
	e.mu.Unlock()
	if differs := experiments[p.what].same(outcome, known); differs != "" {
		t.Errorf("it came to something else than undisturbed:\n%s", differs)
	}
	if t.Failed() {
		t.Logf("the whole history:\n%s", outcome.Told)
	}
}
