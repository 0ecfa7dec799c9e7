package scale

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// restart ends the controller and starts it again. Somebody changes an object in the middle of that.
func (c *crowd) restart() {
	c.Helper()
	c.controller.Stop(c)
	began := time.Now()
	c.controller = c.start("crowd")
	c.change(*idle-1, "restarted")
	acted := c.awaitActed(*idle-1, "restarted")
	c.add("restart: a change made meanwhile is acted upon after", "%.1f s", acted.Sub(began).Seconds())
	c.goal("restart: all looked at after", "%.1f s", c.awaitIdle(*idle).Sub(began).Seconds(), 15)
	own := c.own()
	c.add("  looks", "%.0f", own.sum("controller_runtime_reconcile_total", "controller", "glance"))
	c.add("  processor time of the controller so far", "%.1f s", processorTime(c, c.controller.PID()).Seconds())
	c.add("  a look took, on average", "%.0f µs", microsecondsEach(families{}, own))
	c.awaitRolled(*idle - 1)
}

// looks has the controller look at all objects unasked, which it does once in ten hours unless it is told otherwise.
func (c *crowd) looks() {
	c.Helper()
	c.controller.Stop(c)
	c.controller = c.start("crowd", "--resync-period=1m")
	c.awaitIdle(*idle)
	mark, before := env.Mark(c), c.own()
	say("wait for an unasked look at everything")
	looked := 0.0
	env.Eventually(c, patience, "an unasked look at everything", func(context.Context) string {
		time.Sleep(time.Second)
		looked = c.own().sum("controller_runtime_reconcile_total", "controller", "glance") - before.sum("controller_runtime_reconcile_total", "controller", "glance")
		if looked < float64(*idle) {
			return fmt.Sprintf("%.0f looks", looked) // the first may come after two periods: whoever listens begins after the clock
		}
		return ""
	})
	c.awaitIdle(0)
	after := c.own()
	c.add("a look that finds nothing to do takes, on average, live, with all others at once", "%.0f µs", microsecondsEach(before, after))
	c.add("  looks", "%.0f", looked)
	asked := env.CallsSince(c, mark, c.controller.Actor).Where(harness.Core, func(call harness.Call) bool { return call.Verb != "watch" })
	c.goal("  requests that it made", "%.0f", float64(len(asked)), nothing)
	assert.Empty(c, asked)
}

// microsecondsEach is how long a look at a Glance took between two looks at the metrics.
func microsecondsEach(before, after families) float64 {
	const name = "controller_runtime_reconcile_time_seconds"
	took := after.seconds(name, "controller", "glance") - before.seconds(name, "controller", "glance")
	return took / (after.sum(name, "controller", "glance") - before.sum(name, "controller", "glance")) * 1e6
}

// leaveAlone demands that nobody writes anything for a while, and measures what the controller needs for that.
func (c *crowd) leaveAlone(during time.Duration) {
	c.Helper()
	c.controller.Stop(c)
	c.controller = c.start("crowd")
	c.awaitIdle(*idle)
	c.awaitManagers()
	mark, before := env.Mark(c), processorTime(c, c.controller.PID())
	say("nothing is to happen for %s", during)
	time.Sleep(during)
	calls := env.CallsSince(c, mark, harness.Actor{}).Where(inCrowd, harness.Writes, notAboutAddresses)
	own := env.CallsSince(c, mark, c.controller.Actor).Where(harness.Core, func(call harness.Call) bool { return call.Verb != "watch" })
	c.goal(fmt.Sprintf("%d objects at rest for %s: requests of the controller", *idle, during), "%.0f", float64(len(own)), nothing)
	assert.Empty(c, own)
	events := calls.Where(func(call harness.Call) bool { return call.Resource == "events" })
	c.goal("  events about them, by anybody", "%.0f", float64(len(events)), nothing)
	assert.Empty(c, events)
	c.goal("  writes to them, by anybody", "%.0f", float64(len(calls)), nothing)
	assert.Empty(c, calls)
	now, most := resident(c, c.controller.PID())
	c.goal("  resident memory of the controller", "%.0f MiB", now, 150)
	c.add("  at most, since its start", "%.0f MiB", most)
	c.add("  processor time of the controller meanwhile", "%.2f s", (processorTime(c, c.controller.PID()) - before).Seconds())
}

// notAboutAddresses leaves out what the API server itself tells of Services whose addresses it puts right: copies that it
// hears of in pieces upset its books, and nobody else's.
func notAboutAddresses(call harness.Call) bool {
	return call.User != "system:apiserver" || call.Resource != "events"
}

// failOver lets a second replica take over from one that dies, and a third from one that leaves in good order.
func (c *crowd) failOver() {
	c.Helper()
	heir := c.startReplica("heir")
	began := time.Now()
	c.controller.Kill(c)
	c.change(0, "killed")
	c.goal("after a crash the other replica acts after", "%.1f s", c.awaitActed(0, "killed").Sub(began).Seconds(), 20)
	successor := c.startReplica("successor")
	began = time.Now()
	left := make(chan struct{})
	go func() {
		defer close(left)
		heir.Stop(c)
	}()
	c.change(1, "left")
	c.goal("after an orderly end the other replica acts after", "%.1f s", c.awaitActed(1, "left").Sub(began).Seconds(), 3)
	<-left
	c.controller = successor
	c.awaitRolled(0)
	c.awaitRolled(1)
}

// awaitRolled waits until the pods of the n-th Glance have the change and its status says so: what comes of a change is
// not to be taken for unrest.
func (c *crowd) awaitRolled(n int) {
	c.Helper()
	d := &appsv1.Deployment{}
	env.Eventually(c, patience, "the change to be rolled out", func(ctx context.Context) string {
		if err := c.admin.Get(ctx, key(n), d); err != nil {
			return err.Error()
		}
		if s := d.Status; s.ObservedGeneration != d.Generation || s.UpdatedReplicas != *d.Spec.Replicas || s.AvailableReplicas != *d.Spec.Replicas || s.Replicas != *d.Spec.Replicas {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
	harness.AwaitWithin(c, env, patience, build.Glance(key(n).Name, build.In(key(n).Namespace)), "the Glance to rest", func(g *v1alpha1.Glance) string {
		if g.Status.ObservedGeneration == g.Generation && g.Status.UpgradePhase == "" && meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionReady) {
			return ""
		}
		return fmt.Sprintf("%+v", g.Status)
	})
	c.awaitIdle(0)
}

// startReplica runs one more controller and waits until it has nothing left to do but to wait: until it has worked little
// for a while. A replica is seldom needed in the moment in which it becomes ready.
func (c *crowd) startReplica(as string) *harness.ControllerProcess {
	c.Helper()
	replica := c.start(as)
	env.Eventually(c, patience, "the replica to be ready", replica.Unready)
	env.Eventually(c, patience, "the replica to wait", func(context.Context) string {
		before := processorTime(c, replica.PID())
		time.Sleep(time.Second)
		if busy := processorTime(c, replica.PID()) - before; busy > 200*time.Millisecond {
			return fmt.Sprintf("it has worked for %s in a second", busy)
		}
		return ""
	})
	return replica
}

// change edits the configuration of the n-th Glance.
func (c *crowd) change(n int, word string) {
	c.Helper()
	g := build.Glance(key(n).Name, build.In(key(n).Namespace))
	wish := fmt.Appendf(nil, `{"spec":{"extraConfig":{"DEFAULT":{"log_date_format":%q}}}}`, word)
	require.NoError(c, c.admin.Patch(c.Context(), g, client.RawPatch(types.MergePatchType, wish)))
}

// awaitActed waits until the change has come to the configuration that pods are given.
func (c *crowd) awaitActed(n int, word string) (at time.Time) {
	c.Helper()
	config := &corev1.ConfigMap{}
	config.Namespace, config.Name = key(n).Namespace, key(n).Name+"-config"
	env.Eventually(c, patience, "the change to be acted upon", func(ctx context.Context) string {
		if err := c.admin.Get(ctx, client.ObjectKeyFromObject(config), config); err != nil {
			return err.Error()
		}
		for _, text := range config.Data {
			if strings.Contains(text, word) {
				return ""
			}
		}
		return "not yet"
	})
	return time.Now()
}
