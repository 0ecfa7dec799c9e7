package scale

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// upgradeAll asks n Glances for the next release at once and waits until all of them have it and the sync that follows
// an upgrade has run.
func (c *crowd) upgradeAll(n int) {
	c.Helper()
	mark, before, processors, synced := env.Mark(c), asked(c, env), used(c), c.syncs()
	began := time.Now()
	ends := c.follow(n, began)
	var all sync.WaitGroup
	turns := make(chan client.ObjectKey)
	for range 20 {
		all.Go(func() {
			for key := range turns {
				wish := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"openStackRelease":"2026.2","image":{"tag":"2026.2"}}}`))
				assert.NoError(c, c.admin.Patch(c.Context(), build.Glance(key.Name, build.In(key.Namespace)), wish))
			}
		})
	}
	for _, key := range keys(0, n) {
		turns <- key
	}
	close(turns)
	all.Wait()
	c.add("last of the Glances asked for the next release after", "%.0f s", time.Since(began).Seconds())
	var at []time.Duration
	select {
	case at = <-ends:
	case <-time.After(2 * patience):
		c.Fatalf("not all of %d Glances are upgraded after %s", n, 2*patience)
	}
	c.goal("upgraded, all of them, after", "%.0f s", at[n-1].Seconds(), 120)
	c.add("  the first after", "%.0f s", at[0].Seconds())
	c.add("  upgrades a second", "%.1f", float64(n)/at[n-1].Seconds())
	env.Eventually(c, patience, "the syncs that follow upgrades", func(context.Context) string {
		time.Sleep(500 * time.Millisecond)
		if more := c.syncs() - synced; more < float64(n) {
			say("%.0f of %d syncs have followed after %.0f s", more, n, time.Since(began).Seconds())
			return "not all have run"
		}
		return ""
	})
	c.add("upgraded, and synced once more, all of them, after", "%.0f s", time.Since(began).Seconds())
	c.awaitIdle(0)
	taken := used(c).since(processors)
	c.add("  processor time that the controller took", "%.1f s", taken["controller"].Seconds())
	c.add("  processor time that everything took", "%.1f s", taken.total().Seconds())
	say("processor time: %s", taken)
	requested := asked(c, env).since(before)
	c.add("  requests to the API server, by anybody, for each upgrade", "%.1f", requested.total()/float64(n))
	say("requests as the API server counts them:\n%s", requested.per(n))
	calls := env.CallsSince(c, mark, c.controller.Actor)
	say("writes of the controller:\n%s", writesIn(calls).per(n))
	c.judge(n, time.Since(began), calls)
	c.measure(n, env.CallsSince(c, mark, harness.Actor{}))
}

// follow watches the crowd and tells, once n of it have the next release, when each of them had it.
func (c *crowd) follow(n int, began time.Time) <-chan []time.Duration {
	c.Helper()
	glances, err := cache.New(env.Config, cache.Options{Scheme: env.Scheme})
	require.NoError(c, err)
	informer, err := glances.GetInformer(c.Context(), &v1alpha1.Glance{}, cache.BlockUntilSynced(false))
	require.NoError(c, err)
	ended := make(chan []time.Duration, 1)
	var at []time.Duration // handlers run one after the other
	done, said := map[types.UID]bool{}, time.Now()
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(_, object any) {
		g, ok := object.(*v1alpha1.Glance)
		if ok && !done[g.UID] && g.Status.InstalledRelease == "2026.2" && g.Status.UpgradePhase == "" {
			done[g.UID] = true
			if at = append(at, time.Since(began)); len(at) == n {
				ended <- at
			}
		}
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			say("%d of %d are upgraded after %.0f s", len(at), n, time.Since(began).Seconds())
		}
	}})
	require.NoError(c, err)
	go func() {
		// It ends with the test, and an error then means nothing.
		_ = glances.Start(c.Context())
	}()
	require.True(c, glances.WaitForCacheSync(c.Context()))
	return ended
}

// judge demands that every upgrade was made, and that nothing was done twice.
func (c *crowd) judge(n int, took time.Duration, calls harness.Calls) {
	c.Helper()
	var list v1alpha1.GlanceList
	require.NoError(c, c.admin.List(c.Context(), &list))
	for _, g := range list.Items {
		assert.Equal(c, "2026.2", g.Status.InstalledRelease, g.Name)
		assert.Empty(c, g.Status.TargetRelease, g.Name)
	}
	accepted := calls.Where(func(call harness.Call) bool { return !harness.Refused(call) })
	writes := writesIn(accepted)
	assert.EqualValues(c, 4*n, writes["create jobs"], "expand, migrate, contract and the sync after it, each once")
	assert.EqualValues(c, n, writes["delete jobs"], "the sync of the installation makes room for the new one")
	assert.EqualValues(c, n, writes["update deployments"], "the rollout")
	assert.Zero(c, writes["create deployments"]+writes["create services"]+writes["create configmaps"])
	each := writes.total() / float64(n)
	c.add("  writes of the controller for each upgrade", "%.1f", each)
	// A walk that lasts says now and then what it waits for.
	assert.LessOrEqual(c, each, 18+took.Seconds()/20, "%v", writes)
	reads := calls.Where(harness.Reads, func(call harness.Call) bool { return call.Verb != "watch" })
	c.add("  reads of the controller past its caches for each upgrade", "%.1f", float64(len(reads))/float64(n))
	refused := calls.Where(harness.Writes, inCrowd, harness.Refused)
	c.add("  writes of the controller that met a conflict", "%.0f", float64(len(refused)))
}

// gap is what a walk loses between a Job that is Complete and what follows it.
type gap struct {
	says      string
	job       upgrade.Task
	verb      string
	resource  string
	following string
}

var gaps = []gap{
	{"expand Complete → Job of migrate", upgrade.Expand, "create", "jobs", "-" + string(upgrade.Migrate)},
	{"migrate Complete → Deployment rolls", upgrade.Migrate, "update", "deployments", ""},
	{"contract Complete → sync of before makes room", upgrade.Contract, "delete", "jobs", "-" + string(upgrade.Sync)},
}

// measure takes the gaps of n walks, all of them, from the API server's own log. A Job's last status write is the one that says Complete; it counts
// from the moment in which it was accepted.
func (c *crowd) measure(n int, calls harness.Calls) {
	c.Helper()
	complete := map[client.ObjectKey]time.Time{}
	took := map[string][]time.Duration{}
	for _, call := range calls.Where(func(call harness.Call) bool { return !harness.Refused(call) }) {
		if call.Verb == "update" && call.Resource == "jobs" && call.Subresource == "status" {
			complete[client.ObjectKey{Namespace: call.Namespace, Name: call.Name}] = call.At
		}
		for _, g := range gaps {
			object, follows := strings.CutSuffix(call.Name, g.following)
			key := client.ObjectKey{Namespace: call.Namespace, Name: v1alpha1.JobName(object, g.job)}
			at, known := complete[key]
			if known && follows && call.Verb == g.verb && call.Resource == g.resource && call.Subresource == "" && strings.HasPrefix(call.Agent, c.controller.Actor.Agent) {
				took[g.says] = append(took[g.says], call.At.Sub(at))
				delete(complete, key)
			}
		}
	}
	for _, g := range gaps {
		all := took[g.says]
		require.Len(c, all, n, g.says)
		slices.Sort(all)
		c.add(g.says+", all at once: p50", "%.0f ms", milliseconds(all[(len(all)-1)/2]))
		c.add("  p99", "%.0f ms", milliseconds(all[(len(all)*99+99)/100-1]))
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
