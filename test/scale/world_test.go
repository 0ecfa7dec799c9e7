package scale

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/free"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// How much is run. The defaults are the share that `make test` runs.
var (
	upgrades = flag.Int("upgrades", 30, "how many Glances are upgraded at once")
	idle     = flag.Int("idle", 200, "how many Glances rest, those that were upgraded among them")
	quiet    = flag.Duration("quiet", 5*time.Second, "how long nothing may happen when all rest")
	loud     = flag.Bool("loud", false, "say what goes on and print the table of figures")
)

const (
	// perNamespace is how many Glances share a namespace.
	perNamespace = 1000
	// patience is for steps of a whole crowd.
	patience = 5 * time.Minute
)

// managerFlags lift limits of the controller manager that are meant for fewer objects.
var managerFlags = []string{
	"--kube-api-qps=5000", "--kube-api-burst=10000",
	"--concurrent-job-syncs=20", "--concurrent-deployment-syncs=20", "--concurrent-replicaset-syncs=20",
	"--concurrent-endpoint-syncs=10", "--concurrent-service-endpoint-syncs=10", "--concurrent-gc-syncs=20",
	// Pods of finished Jobs are kept, all of them, so that there is more to hold in memory, not less.
	"--terminated-pod-gc-threshold=0",
}

var env *harness.Env

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	// The components hold gigabytes here; the harness would let their heaps grow to five times what they hold.
	if err := os.Setenv("GOGC", "200"); err != nil {
		fmt.Fprintf(os.Stderr, "set GOGC: %v\n", err)
		return 1
	}
	var err error
	env, err = harness.Start(context.Background(), harness.FakeNodes(4),
		harness.Flags("kube-apiserver", "--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000"),
		harness.Flags("kube-controller-manager", managerFlags...))
	if err != nil {
		fmt.Fprintf(os.Stderr, "start the test environment: %v\n", err)
		return 1
	}
	return env.Conclude(m.Run())
}

// key is the place of the n-th Glance. All have names of one length; see specimenOf.
func key(n int) client.ObjectKey {
	return client.ObjectKey{Namespace: fmt.Sprintf("crowd-%02d", n/perNamespace), Name: fmt.Sprintf("images-%05d", n)}
}

func keys(from, to int) (found []client.ObjectKey) {
	for n := from; n < to; n++ {
		found = append(found, key(n))
	}
	return found
}

// crowd is the world and the controller in it.
type crowd struct {
	testing.TB
	admin client.WithWatch
	// metrics is where the controller exports its own.
	metrics    string
	controller *harness.ControllerProcess
	ips        func() string
	table
}

func assemble(t testing.TB) *crowd {
	t.Helper()
	config := rest.CopyConfig(env.Config)
	config.QPS = -1
	c := &crowd{TB: t, admin: env.ClientFor(t, config)}
	for n := 0; n < max(*idle, *upgrades); n += perNamespace {
		ns := key(n).Namespace
		env.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}})
		env.Eventually(t, harness.Patience, "the service account of "+ns, func(ctx context.Context) string {
			if err := env.Client.Get(ctx, client.ObjectKey{Namespace: ns, Name: "default"}, &corev1.ServiceAccount{}); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	return c
}

// start runs the controller as it is shipped, for all namespaces.
func (c *crowd) start(as string, flags ...string) *harness.ControllerProcess {
	c.Helper()
	metrics := free.Address(c)
	c.metrics = "http://" + metrics + "/metrics"
	// Its heap is to grow as it does where it is shipped to, not as the components' around it.
	flags = append([]string{"GOGC=", "--watch-namespaces=", "--leader-elect=true", "--log-format=json", "--log-level=info",
		"--metrics-address=" + metrics}, flags...)
	return env.RunController(c, as, env.ControllerConfig(c), flags...)
}

// install has one Glance installed by the controller.
func (c *crowd) install() {
	c.Helper()
	env.Create(c, build.DatabaseSecret(key(0).Namespace), build.Glance(key(0).Name, build.In(key(0).Namespace), build.Replicas(1)))
	c.awaitRest(key(0), "2026.1")
	c.awaitIdle(0)
}

func (c *crowd) awaitRest(key client.ObjectKey, release string) {
	c.Helper()
	g := build.Glance(key.Name, build.In(key.Namespace))
	harness.AwaitWithin(c, env, patience, g, "the Glance to rest", func(g *v1alpha1.Glance) string {
		for _, condition := range g.Status.Conditions {
			if condition.Type == v1alpha1.ConditionReady && condition.Status == metav1.ConditionTrue && g.Status.InstalledRelease == release && g.Status.UpgradePhase == "" {
				return ""
			}
		}
		return fmt.Sprintf("%+v", g.Status)
	})
}

// multiply copies the first Glance, and has the controller find out, by a start, that there is nothing to do about any
// copy. Meanwhile neither it nor the controller manager runs: their watches would show them a copy in pieces.
func (c *crowd) multiply(from, to int) {
	c.Helper()
	c.controller.Stop(c)
	s := specimenOf(c, env, key(0))
	if c.ips == nil {
		c.ips = addresses(s.address.Spec.ClusterIP)
	}
	began := time.Now()
	env.WithoutControllerManager(c, func() {
		s.copyTo(c, env, keys(from, to), c.ips)
		c.awaitAPIServer()
	})
	say("%d copies of %d entries of etcd each, after %.0f s", to-from, len(s.entries)+2, time.Since(began).Seconds())
	c.awaitManagers()
	mark := env.Mark(c)
	c.controller = c.start("crowd")
	c.awaitIdle(to)
	require.Empty(c, writesIn(env.CallsSince(c, mark, c.controller.Actor)), "a copy is what the controller would have made")
	say("%d Glances rest", to)
}

// awaitAPIServer waits until the API server has heard from etcd of all that was put there behind its back. Whoever lists
// before that is refused.
func (c *crowd) awaitAPIServer() {
	c.Helper()
	for _, list := range []client.ObjectList{
		&v1alpha1.GlanceList{}, &batchv1.JobList{}, &corev1.PodList{}, &appsv1.DeploymentList{}, &appsv1.ReplicaSetList{},
		&corev1.ServiceList{}, &corev1.ConfigMapList{}, &networkingv1.IPAddressList{},
	} {
		require.NoError(c, c.admin.List(c.Context(), list, client.Limit(1))) // by etcd
		newest := list.GetResourceVersion()
		env.Eventually(c, patience, fmt.Sprintf("the API server to know the newest of %T", list), func(ctx context.Context) string {
			err := c.admin.List(ctx, list, client.MatchingLabels{"of": "nothing"},
				&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: newest, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}})
			if err != nil {
				return err.Error()
			}
			return ""
		})
	}
}

// awaitManagers waits until the controller manager has seen the crowd: until it has worked little for a while.
func (c *crowd) awaitManagers() {
	c.Helper()
	before := used(c)
	env.Eventually(c, patience, "the controller manager to come to rest", func(context.Context) string {
		time.Sleep(2 * time.Second)
		took := used(c).since(before)
		before = used(c)
		if busy := took["kube-controller-manager"] + took["kube-scheduler"] + took["kwok"]; busy > time.Second {
			return fmt.Sprintf("it has worked for %s in 2 s", busy)
		}
		return ""
	})
}

// own are the metrics of the controller; none while it does not answer.
func (c *crowd) own() families {
	found, err := scrape(c.Context(), http.DefaultClient, c.metrics)
	if err != nil {
		return nil
	}
	return found
}

// awaitIdle waits until the controller has looked at so many objects and at nothing for a while. It gives the moment
// from which on nothing was waiting.
func (c *crowd) awaitIdle(atLeast int) (drained time.Time) {
	c.Helper()
	last, since := -1.0, time.Now()
	env.Eventually(c, patience, "the controller to have nothing left to look at", func(context.Context) string {
		found := c.own()
		looks, waiting := found.sum("controller_runtime_reconcile_total", "controller", "glance"), found.sum("workqueue_depth")+found.sum("controller_runtime_active_workers")
		if looks != last || waiting > 0 || found == nil {
			last, since = looks, time.Now()
		}
		if looks >= float64(atLeast) && waiting == 0 && found != nil && drained.IsZero() {
			drained = time.Now()
		}
		if looks < float64(atLeast) || time.Since(since) < 2*time.Second {
			time.Sleep(200 * time.Millisecond)
			return fmt.Sprintf("%.0f looks, %.0f waiting", looks, waiting)
		}
		return ""
	})
	return drained
}

// writesIn are those of the controller about the crowd since a mark, by what was asked of what.
func writesIn(calls harness.Calls) requests {
	r := requests{}
	for _, call := range calls.Where(harness.Writes, inCrowd) {
		what := call.Resource
		if call.Subresource != "" {
			what += "/" + call.Subresource
		}
		r[call.Verb+" "+what]++
	}
	return r
}

// inCrowd leaves out what the election of a leader writes.
func inCrowd(call harness.Call) bool { return strings.HasPrefix(call.Namespace, "crowd-") }

// syncs is how many one-pass syncs the controller has seen end well.
func (c *crowd) syncs() float64 {
	return c.own().sum("openstack_upgrade_jobs_total", "suffix", string(upgrade.Sync), "outcome", "complete")
}
