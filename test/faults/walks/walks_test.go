package walks

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/test/faults/history"
	"github.com/c5c3/openstack-upgrade/test/faults/line"
	"github.com/c5c3/openstack-upgrade/test/faults/share"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

func TestMain(m *testing.M) {
	// Lanes wait for controllers more than for a CPU.
	if err := flag.Set("test.parallel", strconv.Itoa(lanes)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	harness.Main(m)
}

const (
	// all is how many walks the whole has, few how many a share of it has.
	all, few = 1000, 24
	// lanes walk side by side.
	lanes = 24
)

// seeds are those of the walks to take.
func seeds(t testing.TB) (found []uint64, chance string) {
	if plan := share.Plan(); plan != "" {
		seed, err := strconv.ParseUint(plan, 10, 64)
		require.NoError(t, err, "PLAN is the seed of a walk")
		return []uint64{seed}, "PLAN=" + plan
	}
	base := share.Seed(t)
	many := few
	if share.Whole() {
		many = all
	}
	for i := range many {
		found = append(found, base+uint64(i))
	}
	return found, fmt.Sprintf("%s=%d", share.Chance, base)
}

func TestRandomWalksKeepTheRulesAndComeToRest(t *testing.T) {
	outer, env, started := t, harness.Shared(t), time.Now()
	told := history.Follow(t, env)
	serveHook(t, env)
	as := env.ControllerConfig(t)
	var walks queue
	chosen, chance := seeds(t)
	for _, seed := range chosen {
		walks.left = append(walks.left, New(seed))
	}
	plans := len(walks.left)
	var passed, taken atomic.Int64
	rests, deeds := &rested{}, newTally()
	t.Run("lane", func(t *testing.T) {
		for range min(lanes, plans) {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				var l *lane // lasts as long as the whole test, for what rests in it
				for walk, more := walks.next(); more; walk, more = walks.next() {
					if l == nil {
						l = open(harness.Lasting{TB: t, Longer: outer}, env, told, as)
					}
					name := fmt.Sprintf("w%d", walk.Seed)
					if t.Run(name, func(t *testing.T) { take(t, l, walk, name, rests, deeds) }) {
						passed.Add(1)
					}
					if n := taken.Add(1); share.Whole() && n%50 == 0 {
						fmt.Fprintf(os.Stderr, "walks: %d of %d taken, %d passed, since %s\n", n, plans, passed.Load(), time.Since(started).Round(time.Second))
					}
				}
			})
		}
	})
	loud := rests.broken(t, env)
	for _, what := range loud {
		t.Error(what)
	}
	deeds.print()
	if share.Whole() && share.Plan() == "" {
		assert.Empty(t, deeds.vain(), "deeds that never met anything")
	}
	line.Result{Name: "random walks, Glance and Keystone, " + chance, Plans: plans, Passed: int(passed.Load()) - len(loud), Took: time.Since(started)}.Print()
}

// take takes one walk and judges it.
func take(t *testing.T, l *lane, walk Walk, name string, rests *rested, deeds *tally) {
	r := &runner{lane: l, Walk: walk, t: t, name: name, begun: time.Now(), hookSince: time.Now()}
	defer func() {
		l.calm()
		l.hook(t, true)
		if t.Failed() {
			t.Logf("%s%s\nreplay: make faults RUN=TestRandomWalks PLAN=%d", walk, strings.Join(r.said, "\n"), walk.Seed)
		}
	}()
	r.walk()
	r.repair()
	since := r.fallSilent()
	r.clear(&r.haze)
	deeds.add(r)
	whole := l.told.Whole(t, r.subject())
	for _, wrong := range history.Check(whole, holds) {
		t.Errorf("%s", wrong)
	}
	if t.Failed() {
		t.Logf("what became of it:\n%s", history.Tell(whole))
	}
	o, err := r.now(t.Context())
	require.NoError(t, err)
	rests.add(t, settled{namespace: l.ns, name: name, since: since, alone: func() bool { return l.controller.Ended() }, leave: func() error {
		l.told.Forget(r.subject())
		return client.IgnoreNotFound(l.Client.Delete(context.Background(), o, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	}})
}
