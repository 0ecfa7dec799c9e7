package views

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/faults/history"
	"github.com/c5c3/openstack-upgrade/test/faults/line"
	"github.com/c5c3/openstack-upgrade/test/faults/share"
	"github.com/c5c3/openstack-upgrade/test/faults/story"
	"github.com/c5c3/openstack-upgrade/test/faults/wire"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

const (
	// pairs of controllers work side by side.
	pairs = 12
	// The share: so many stories, and so many plans for them.
	shareOfLed, shareOfHandOvers = 2, 6
	// takeover is how long it may take until the other leads: the lease, and the time that a busy machine takes.
	takeover = time.Minute
)

// pair is a lane with a second controller beside its own. Both elect a leader, really.
type pair struct {
	*story.Lane
	owner  testing.TB
	as     *rest.Config
	second *harness.ControllerProcess
}

func openPair(t testing.TB, env *harness.Env, told *history.Recorder, as *rest.Config) *pair {
	t.Helper()
	p := &pair{owner: t, as: as}
	p.Lane = story.Prepare(t, env, told, as)
	p.Lane.Flags(p.flags()...)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: p.NS, Name: "leads"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}},
	}}
	binding := &rbacv1.RoleBinding{ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: harness.ControllerNamespace, Name: harness.ControllerServiceAccount}}}
	env.Create(t, role, binding)
	return p
}

func (p *pair) flags() []string {
	return []string{"--leader-elect=true", "--leader-election-namespace=" + p.NS, "--health-address=127.0.0.1:0"}
}

// leader is who holds the lease, empty for nobody.
func (p *pair) leader(ctx context.Context) string {
	lease := &coordinationv1.Lease{}
	if err := p.Client.Get(ctx, client.ObjectKey{Namespace: p.NS, Name: "openstack-upgrade-controller"}, lease); err != nil {
		return ""
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// arrange has the controller of the lane lead and the other wait, and gives the identity of the one that leads.
func (p *pair) arrange(t testing.TB) (leads string) {
	t.Helper()
	if p.second != nil && !p.second.Ended() {
		p.second.Stop(t)
	}
	p.Tend(t)
	p.Eventually(t, takeover, "the first controller to lead", func(ctx context.Context) string {
		if leads = p.leader(ctx); leads == "" {
			return "nobody does"
		}
		return ""
	})
	p.follow(t)
	return leads
}

// follow starts the controller that waits, which lasts as long as the lane.
func (p *pair) follow(t testing.TB) {
	t.Helper()
	p.second = p.RunController(harness.Lasting{TB: t, Longer: p.owner}, p.NS, p.Wire.Config(), p.flags()...)
}

// handOver is a story, the write that its leader is paused in, and when it goes on: when the other leads, and the write
// arrives late; or when the other has brought the story to its end, and the write is lost.
type handOver struct {
	story.Story
	at    wire.Point
	inEnd bool
}

// late is that a Job is asked for so late that the other may have deleted it meanwhile: then it runs once more, until it
// is deleted once more. Nothing can fence off what was on its way. Only an abort deletes a Job that has work left: that of
// its phase.
func (h handOver) late() bool {
	phase, aborts := strings.CutPrefix(h.Title, "abort in ")
	task, runs := upgrade.PhaseTask(upgrade.Phase(phase))
	return !h.inEnd && aborts && runs && h.at.Verb == "create" && h.at.Resource == "jobs" && strings.HasSuffix(h.at.Name, "-"+string(task))
}

// onceLess takes back one run of what was run twice in a row.
func onceLess(ran []string) []string {
	for i := 1; i < len(ran); i++ {
		if ran[i] == ran[i-1] {
			return slices.Delete(slices.Clone(ran), i, i+1)
		}
	}
	return ran
}

func (h handOver) String() string {
	when := "when the other leads"
	if h.inEnd {
		when = "in the end"
	}
	return fmt.Sprintf("%s: paused in %s, resumed %s", h.Story, h.at, when)
}

// command runs a plan again.
func (h handOver) command() string {
	return fmt.Sprintf("make faults RUN=PausedPastItsLease PLAN='%s'", h)
}

// leaders is what is needed to carry out such plans.
type leaders struct {
	env   *harness.Env
	pairs chan *pair
	names atomic.Int32

	mu     sync.Mutex
	known  map[string]story.Outcome
	points map[string][]wire.Point
}

func TestALeaderThatIsPausedPastItsLeaseAndResumedChangesNothing(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	l := &leaders{env: env, pairs: make(chan *pair, pairs), known: map[string]story.Outcome{}, points: map[string][]wire.Point{}}
	told, as := history.Follow(t, env), env.ControllerConfig(t)
	many := pairs
	if !share.Whole() {
		many = shareOfHandOvers
	}
	for range many {
		l.pairs <- openPair(t, env, told, as)
	}
	random := rand.New(rand.NewPCG(share.Seed(t), 1))
	stories := l.choose(story.All(), random)
	t.Run("undisturbed", func(t *testing.T) {
		for _, each := range stories {
			t.Run(each.String(), func(t *testing.T) { t.Parallel(); l.undisturbed(t, each) })
		}
	})
	plans := l.plans(stories, random)
	var passed, unmet atomic.Int32
	began := time.Now()
	t.Run("paused", func(t *testing.T) {
		for _, each := range plans {
			t.Run(each.String(), func(t *testing.T) {
				t.Parallel()
				switch met := l.handedOver(t, each); {
				case t.Failed():
				case met:
					passed.Add(1)
				default:
					t.Logf("in no row: another run had a write less")
					unmet.Add(1)
				}
			})
		}
	})
	if len(plans) == 0 {
		t.Errorf("PLAN='%s' is no plan that a failure has printed", share.Plan())
	}
	story.Stay(t, "leaders", many, l.pairs)
	result := line.Result{Name: "two leaders, one paused in a write past its lease", Plans: len(plans) - int(unmet.Load()), Passed: int(passed.Load()), Took: time.Since(began)}
	result.Print()
	if lack := result.Lacks(len(plans)); lack != "" {
		t.Error(lack)
	}
}

func (l *leaders) choose(all []story.Story, random *rand.Rand) []story.Story {
	if one := share.Plan(); one != "" {
		return slices.DeleteFunc(all, func(each story.Story) bool { return !strings.HasPrefix(one, each.String()+": ") })
	}
	// A phase that fails and is repaired takes the same writes as one that does not.
	all = slices.DeleteFunc(all, func(each story.Story) bool { return strings.Contains(each.Title, "repaired") })
	if share.Whole() {
		return all
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:shareOfLed]
}

// plans are those for every write that was seen.
func (l *leaders) plans(stories []story.Story, random *rand.Rand) (found []handOver) {
	for _, each := range stories {
		for _, at := range l.points[each.String()] {
			for _, inEnd := range []bool{false, true} {
				plan := handOver{each, at, inEnd}
				if !at.Event() && (share.Plan() == "" || share.Plan() == plan.String()) {
					found = append(found, plan)
				}
			}
		}
	}
	if share.Whole() || share.Plan() != "" {
		return found
	}
	random.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	return found[:min(len(found), shareOfHandOvers)]
}

// live lives a story in a pair that is free.
func (l *leaders) live(t *testing.T, each story.Story, disturb func(*pair, *story.Play, string)) (story.Outcome, *story.Play) {
	t.Helper()
	p := <-l.pairs
	defer func() {
		p.Calm()
		p.Part(t, share.Stays())
		l.pairs <- p
	}()
	leads := p.arrange(t)
	outcome, play := each.Live(t, p.Lane, fmt.Sprintf("i%dx", l.names.Add(1)), func(play *story.Play) {
		if disturb != nil {
			disturb(p, play, leads)
		}
	})
	for _, broken := range outcome.Broken {
		t.Errorf("%s", broken)
	}
	return outcome, play
}

func (l *leaders) undisturbed(t *testing.T, each story.Story) {
	outcome, play := l.live(t, each, nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known[each.String()], l.points[each.String()] = outcome, play.Points()
}

// handedOver carries out a plan, and tells whether its write came.
func (l *leaders) handedOver(t *testing.T, h handOver) (met bool) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("This plan again: %s", h.command())
		}
	}()
	outcome, _ := l.live(t, h.Story, func(p *pair, play *story.Play, leads string) { h.disturb(t, p, play, leads, &met) })
	l.mu.Lock()
	known := l.known[h.Story.String()]
	l.mu.Unlock()
	if h.late() {
		outcome.Ran = onceLess(outcome.Ran)
	}
	if differs := whole(outcome, known); differs != "" {
		t.Errorf("it came to something else than undisturbed:\n%s", differs)
	}
	if t.Failed() {
		t.Logf("the whole history:\n%s", outcome.Told)
	}
	return met
}

// disturb pauses the leader in its write until the other leads.
func (h handOver) disturb(t *testing.T, p *pair, play *story.Play, leads string, met *bool) {
	first := p.Controller()
	held, took := make(chan struct{}), make(chan string, 1)
	resume := func() {
		p.MayEnd()
		if h.inEnd {
			p.Wire.Drop() // nothing is on its way for as long as that
		} else {
			p.Wire.Release() // what was on its way arrives
		}
		time.Sleep(300 * time.Millisecond)
		first.Resume(t) // and what was decided is done, if nothing forbids it
	}
	p.Wire.OnHold(func() {
		close(held)
		first.Pause(t)
		for deadline := time.Now().Add(takeover); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			if now := p.leader(context.Background()); now != "" && now != leads {
				if !h.inEnd {
					time.Sleep(500 * time.Millisecond) // for a step of its own
					resume()
				}
				took <- ""
				return
			}
		}
		took <- "nobody has taken over"
	})
	play.Plan(wire.Fault{Deed: wire.Hold, At: h.at})
	play.Disturbed = h.command()
	play.Look = func(story.Object) {
		if p.second.Ended() { // on a busy machine it may miss its own lease; a kubelet starts it anew
			p.follow(t)
		}
	}
	play.Calm = func() {
		t.Helper()
		select {
		case <-held:
			*met = true
		default:
			return
		}
		if lack := <-took; lack != "" {
			t.Error(lack)
		}
		if h.inEnd {
			resume()
		}
		if err := first.AwaitEnd(t, takeover); err == nil {
			t.Error("a leader that has lost its lease ends as if it had been asked to")
		}
	}
}
