//go:build e2e

package e2e

import (
	"context"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/drill"
	"github.com/c5c3/openstack-upgrade/test/stage"
)

// disturbances are what only a real node can do to a walk.
var disturbances = []story{
	{"a drained node never makes two migration pods", evicted},
	{"an abort waits for a migration that ignores SIGTERM, and a new start follows at once", abortedInVain},
	{"an abort in the contract, before it has taken anything, leaves no request unanswered", abortedContract},
	{"an expand that is killed half-way is ExpandFailed, and repaired as documented", halfExpanded},
	{"a server that refuses triggers is quoted with error 1419, and trusted users go on", distrusted},
	{"new pods that crash leave the old ones serving, and are healed by a fix", crashing},
}

// saying recognizes an object by what it says of itself.
func saying(pattern string) func(stage.Object) bool {
	wanted := regexp.MustCompile(pattern)
	return func(o stage.Object) bool { return wanted.MatchString(stage.Words(o)) }
}

func installedAs(release string) func(stage.Object) bool {
	return func(o stage.Object) bool { return o.Record().InstalledRelease == release && stage.Ready(o) }
}

// counted is the most migration pods of an object that were there at once and had not ended.
type counted struct {
	mu   sync.Mutex
	most []string
}

func countMigrations(ctx context.Context, t *testing.T, key client.ObjectKey) *counted {
	t.Helper()
	c := &counted{}
	ctx, stop := context.WithCancel(ctx)
	var counting sync.WaitGroup
	counting.Go(func() {
		for ctx.Err() == nil {
			c.look(ctx, key)
			time.Sleep(100 * time.Millisecond)
		}
	})
	t.Cleanup(func() { stop(); counting.Wait() })
	return c
}

func (c *counted) look(ctx context.Context, key client.ObjectKey) {
	var pods corev1.PodList
	err := on.Client.List(ctx, &pods, client.InNamespace(key.Namespace), client.HasLabels{"batch.kubernetes.io/job-name"})
	if err != nil {
		return // the next look is soon
	}
	var there []string
	for _, p := range pods.Items {
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			there = append(there, p.Name)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(there) > len(c.most) {
		c.most = there
	}
}

func (c *counted) mustBeOne(t *testing.T, namespace string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	assert.Len(t, c.most, 1, "migration pods side by side")
	runs, err := on.Runs(t.Context(), namespace)
	require.NoError(t, err)
	for _, run := range runs {
		assert.False(t, run.Overlapped, "%s in %s met another one in the database", run.Task, run.Pod)
	}
}

func times(t *testing.T, namespace, task string) int {
	t.Helper()
	runs, err := on.Runs(t.Context(), namespace)
	require.NoError(t, err)
	return len(slices.DeleteFunc(runs, func(r stage.Run) bool { return r.Task != task }))
}

func evicted(t *testing.T) {
	key := installed(t, stage.Drill("drill-evicted", build.Replicas(0), build.Config("drill:2026.2", "ignore_sigterm", "expand"),
		build.Config("drill:2026.2", "expand_hold", "before"), build.Config("drill:2026.2", "migrate_hold", "before")))
	count := countMigrations(t.Context(), t, key)
	patchTo(t, key, stage.ReleaseAfter, stage.ReleaseAfter)

	pod, err := on.AtWork(t.Context(), key.Namespace, "expand", 1, patience)
	require.NoError(t, err)
	require.NoError(t, on.Evict(t.Context(), key.Namespace, pod))
	require.NoError(t, on.Await(t.Context(), "pod "+pod+" to be ending", words, on.Ending(key.Namespace, pod)))
	time.Sleep(10 * time.Second) // a replacement would have come by now
	assert.Equal(t, 1, times(t, key.Namespace, "expand"))
	require.NoError(t, on.LetGo(t.Context(), key.Namespace, "expand"))

	// This one ends when it is told to; another one takes its place, and no retry is used up.
	pod, err = on.AtWork(t.Context(), key.Namespace, "migrate", 1, patience)
	require.NoError(t, err)
	assert.Equal(t, 1, times(t, key.Namespace, "expand"), "what came to its end while it was told to end is not repeated")
	require.NoError(t, on.Evict(t.Context(), key.Namespace, pod))
	again, err := on.AtWork(t.Context(), key.Namespace, "migrate", 2, patience)
	require.NoError(t, err)
	assert.NotEqual(t, pod, again)
	require.NoError(t, on.LetGo(t.Context(), key.Namespace, "migrate"))
	require.NoError(t, on.AwaitObject(t.Context(), key, "the upgrade to be complete in "+key.Namespace, patience, installedAs(stage.ReleaseAfter)))
	job, err := on.Job(t.Context(), key, upgrade.Migrate)
	require.NoError(t, err)
	assert.Zero(t, job.Status.Failed, "an eviction used up a retry")
	count.mustBeOne(t, key.Namespace)
}

func abortedInVain(t *testing.T) {
	key := installed(t, stage.Drill("drill-aborted", build.Replicas(1), build.Config("drill:2026.2", "ignore_sigterm", "migrate"),
		build.Config("drill:2026.2", "migrate_hold", "before")))
	count := countMigrations(t.Context(), t, key)
	patchTo(t, key, stage.ReleaseAfter, stage.ReleaseAfter)
	pod, err := on.AtWork(t.Context(), key.Namespace, "migrate", 1, patience)
	require.NoError(t, err)

	patchTo(t, key, stage.ReleaseBefore, stage.ReleaseBefore)
	require.NoError(t, on.Await(t.Context(), "pod "+pod+" to be ending", words, on.Ending(key.Namespace, pod)))
	left := `aborting, waiting until no pod is left of images-db-migrate \(` + pod + ` \(terminating since [^)]+\)\)`
	require.NoError(t, on.AwaitObject(t.Context(), key, "the abort to name the pod it waits for", 2*words, saying(left)))
	time.Sleep(5 * time.Second) // the pod goes on, and so must the walk
	g := get(t, key)
	assert.Equal(t, [2]string{"Migrating", stage.ReleaseAfter}, [2]string{g.Record().UpgradePhase, g.Record().TargetRelease})
	assert.Equal(t, 1, times(t, key.Namespace, "migrate"))

	require.NoError(t, on.LetGo(t.Context(), key.Namespace, "migrate"))
	require.NoError(t, on.AwaitObject(t.Context(), key, "the abort to be over", patience, func(o stage.Object) bool {
		return o.Record().UpgradePhase == "" && o.Record().TargetRelease == ""
	}))
	patchTo(t, key, stage.ReleaseAfter, stage.ReleaseAfter)
	_, err = on.AtWork(t.Context(), key.Namespace, "migrate", 2, patience)
	require.NoError(t, err)
	require.NoError(t, on.LetGo(t.Context(), key.Namespace, "migrate"))
	require.NoError(t, on.AwaitObject(t.Context(), key, "the upgrade to be complete in "+key.Namespace, patience, installedAs(stage.ReleaseAfter)))

	events, err := on.Events(t.Context(), key)
	require.NoError(t, err)
	assert.Equal(t, []string{"UpgradeInitiated", "ExpandComplete", "UpgradeAborted",
		"UpgradeInitiated", "ExpandComplete", "MigrateComplete", "DeploymentRolloutComplete", "UpgradeComplete"}, reasons(events))
	count.mustBeOne(t, key.Namespace)
}

func abortedContract(t *testing.T) {
	key := installed(t, stage.Drill("drill-recalled", build.Replicas(1), build.Config("drill:2026.2", "contract_hold", "before")))
	traffic, err := on.StartTraffic(t.Context(), key.Namespace, get(t, key).Record().Endpoint, 2)
	require.NoError(t, err)
	patchTo(t, key, stage.ReleaseAfter, stage.ReleaseAfter)
	_, err = on.AtWork(t.Context(), key.Namespace, "contract", 1, patience)
	require.NoError(t, err)
	patchTo(t, key, stage.ReleaseBefore, stage.ReleaseBefore)
	require.NoError(t, on.AwaitObject(t.Context(), key, "the abort to be over in "+key.Namespace, patience, func(o stage.Object) bool {
		return o.Record().UpgradePhase == "" && o.Record().AbortedImage == drill.Ref(stage.ReleaseAfter) && stage.Ready(o)
	}))
	assert.Equal(t, drill.Ref(stage.ReleaseBefore), get(t, key).Record().InstalledImage)
	require.NoError(t, on.Await(t.Context(), "the old release to serve", patience, on.RolledOut(key.Namespace, key.Name)))
	out, err := on.Ask(t.Context(), key, "/")
	require.NoError(t, err)
	assert.Contains(t, out, `"release":"2026.1"`)
	events, err := on.Events(t.Context(), key)
	require.NoError(t, err)
	assert.Equal(t, []string{"UpgradeInitiated", "ExpandComplete", "MigrateComplete", "DeploymentRolloutComplete", "UpgradeAborted"}, reasons(events))
	summary, err := traffic.Stop(t.Context())
	require.NoError(t, err)
	assert.True(t, summary.Good(), "%s: %v", summary, summary.Failures)
	on.Say("%s: %s", key.Namespace, summary)
}

// spoiled is a Secret with settings that are at fault: to mend it leaves the object as it is.
const spoiled = "spoiled"

func halfExpanded(t *testing.T) {
	g := stage.Drill("drill-half", build.Replicas(0), build.Adjust(func(g *v1alpha1.Glance) {
		g.Spec.ConfigSecretRefs = []v1alpha1.SecretReference{{Name: spoiled}}
	}))
	dropped(t, g.Namespace)
	require.NoError(t, on.Namespace(t.Context(), g.Namespace))
	connect(t, g.Namespace)
	settings := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: spoiled},
		StringData: map[string]string{"drill.conf": "[drill:2026.2]\nexpand_die_after = 1\n"}}
	require.NoError(t, on.Client.Create(t.Context(), settings))
	require.NoError(t, on.CreateDrill(t.Context(), g, patience))
	key := client.ObjectKeyFromObject(g)

	patchTo(t, key, stage.ReleaseAfter, stage.ReleaseAfter)
	require.NoError(t, on.AwaitObject(t.Context(), key, "the first failure to be told", 2*words, saying(`of 5 tries failed: exit code`)))
	require.NoError(t, on.AwaitObject(t.Context(), key, "expand to have failed", patience, saying(`^ExpandFailed: `)))
	said := stage.Words(get(t, key))
	on.Say("%s: %s", key.Namespace, said)
	assert.Regexp(t, `Expand phase failed: 2026\.1 → 2026\.2: exit code 1: .*Duplicate column name 'value_2026_2'.*delete Job images-db-expand to retry, or set the release back to 2026\.1 and the image to \S+ to abort`, said)
	heads, err := on.Heads(t.Context(), stage.DatabaseOf(key.Namespace))
	require.NoError(t, err)
	assert.Equal(t, []string{"2026_1_contract01"}, heads, "it died before the version was written")
	tries := times(t, key.Namespace, "expand")

	_, err = on.SQL(t.Context(), stage.DatabaseOf(key.Namespace), "ALTER TABLE images DROP COLUMN value_2026_2")
	require.NoError(t, err)
	settings.StringData = map[string]string{"drill.conf": "\n"}
	require.NoError(t, on.Client.Update(t.Context(), settings))
	time.Sleep(5 * time.Second) // nothing is tried again before it is asked for
	assert.Equal(t, tries, times(t, key.Namespace, "expand"))
	_, err = on.Kubectl(t.Context(), "", "-n", key.Namespace, "delete", "job", "images-db-expand")
	require.NoError(t, err)
	require.NoError(t, on.AwaitObject(t.Context(), key, "the upgrade to be complete in "+key.Namespace, patience, installedAs(stage.ReleaseAfter)))
	events, err := on.Events(t.Context(), key)
	require.NoError(t, err)
	assert.Equal(t, []string{"UpgradeInitiated", "ExpandFailed", "ExpandComplete", "MigrateComplete", "DeploymentRolloutComplete", "UpgradeComplete"}, reasons(events))
}

func distrusted(t *testing.T) {
	g := stage.Drill("drill-distrusted", build.Replicas(0))
	key := client.ObjectKeyFromObject(g)
	dropped(t, g.Namespace)
	require.NoError(t, on.Namespace(t.Context(), g.Namespace))
	url, err := on.DistrustfulDatabase(t.Context(), g.Namespace)
	require.NoError(t, err)
	require.NoError(t, on.PutConnection(t.Context(), g.Namespace, url))
	require.NoError(t, on.CreateDrill(t.Context(), g, patience))

	patchTo(t, key, stage.ReleaseAfter, stage.ReleaseAfter)
	require.NoError(t, on.AwaitObject(t.Context(), key, "error 1419 to be quoted", 2*words, saying(`^ExpandInProgress: .*of 5 tries failed: exit code 1: .*1419.*SUPER`)))
	on.Say("%s: %s", key.Namespace, stage.Words(get(t, key)))
	require.NoError(t, on.TrustUsers(t.Context(), g.Namespace))
	require.NoError(t, on.AwaitObject(t.Context(), key, "the upgrade to be complete in "+key.Namespace, patience, installedAs(stage.ReleaseAfter)))
}

func crashing(t *testing.T) {
	key := installed(t, stage.Drill("drill-crashing", build.Replicas(2), build.Config("drill:2026.2", "api_fail", "the paste pipeline is missing")))
	traffic, err := on.StartTraffic(t.Context(), key.Namespace, get(t, key).Record().Endpoint, 2)
	require.NoError(t, err)
	patchTo(t, key, stage.ReleaseAfter, stage.ReleaseAfter)
	require.NoError(t, on.AwaitObject(t.Context(), key, "the crash to be quoted", 2*words,
		saying(`^UpgradeRollingUpdate: .*pod images-\S+: CrashLoopBackOff: .*the paste pipeline is missing`)))
	on.Say("%s: %s", key.Namespace, stage.Words(get(t, key)))
	job, err := on.Job(t.Context(), key, upgrade.Contract)
	require.NoError(t, err)
	assert.Nil(t, job, "the contract was begun")
	pods, err := on.Pods(t.Context(), key, "api")
	require.NoError(t, err)
	old := slices.DeleteFunc(pods, func(p corev1.Pod) bool {
		return p.Spec.Containers[0].Image != drill.Ref(stage.ReleaseBefore) || p.DeletionTimestamp != nil || !p.Status.ContainerStatuses[0].Ready
	})
	assert.Len(t, old, 2, "the old pods serve")

	_, err = on.Kubectl(t.Context(), "", "-n", key.Namespace, "patch", "glance", key.Name, "--type=merge", "-p", `{"spec":{"extraConfig":{"drill:2026.2":null}}}`)
	require.NoError(t, err)
	require.NoError(t, on.AwaitObject(t.Context(), key, "the upgrade to be complete in "+key.Namespace, patience, installedAs(stage.ReleaseAfter)))
	summary, err := traffic.Stop(t.Context())
	require.NoError(t, err)
	assert.True(t, summary.Good(), "%s: %v", summary, summary.Failures)
	on.Say("%s: %s", key.Namespace, summary)
}
