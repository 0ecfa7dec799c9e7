//go:build e2e

package e2e

import (
	"context"
	"slices"
	"strings"
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
	"github.com/c5c3/openstack-upgrade/test/stage"
)

// keystoneTurns is how many tokens clients get each second; each is validated, an older one too, and a project is made with it.
const keystoneTurns = 2

// expandedHeads are the revisions of a Keystone's database that the newer release has expanded.
var expandedHeads = []string{"47147121", "e25ffa003242"}

// TestAKeystoneWalks upgrades two real ones under clients that never stop: one straight on, one that is called back first.
func TestAKeystoneWalks(t *testing.T) {
	require.NoError(t, on.TagKeystone(t.Context()))
	sideBySide(t,
		story{"to the next release, and no request fails", keystoneWalked},
		story{"aborted after expand it serves on with a database that is ahead, and goes forward again", keystoneAborted},
	)
}

// identity is a Keystone with clients.
type identity struct {
	stage    *stage.Stage
	key      client.ObjectKey
	database string
	replicas int
	traffic  *stage.Traffic
	film     *stage.Film
}

func identityAt(t *testing.T, namespace string, replicas int) identity {
	t.Helper()
	k := stage.Keystone{Namespace: namespace, Name: "identity", Tag: stage.KeystoneBefore, Replicas: replicas}
	i := identity{stage: on.Of(stage.Keystones), key: k.Key(), database: stage.DatabaseOf(namespace), replicas: replicas}
	dropped(t, namespace)
	password, err := i.stage.InstallKeystone(t.Context(), k)
	require.NoError(t, err)
	require.NoError(t, i.stage.AwaitReady(t.Context(), i.key, patience))
	record := i.record(t)
	assert.Equal(t, stage.KeystoneBefore, record.InstalledRelease)
	assert.Equal(t, stage.Keystones.Image(stage.KeystoneBefore), record.InstalledImage)
	assert.Equal(t, stage.Keystones.HeadsBefore, i.heads(t))
	i.traffic, err = i.stage.StartIdentityTraffic(t.Context(), namespace, record.Endpoint, password, keystoneTurns)
	require.NoError(t, err)
	require.NoError(t, on.Await(t.Context(), "clients of "+namespace+" to be at it", patience, func(ctx context.Context) (bool, string, error) {
		now, err := i.traffic.Now(ctx)
		return err == nil && now.Sent >= 50, "not yet", nil
	}))
	i.film, err = i.stage.Follow(t.Context(), i.key, func(m stage.Moment) { on.Say("  %s: %-13s %s", namespace, m.Phase(), stage.Words(m.Object)) })
	require.NoError(t, err)
	return i
}

func (i identity) record(t *testing.T) *v1alpha1.ServiceStatus {
	t.Helper()
	object, err := i.stage.Get(t.Context(), i.key)
	require.NoError(t, err)
	return object.Record()
}

func (i identity) heads(t *testing.T) []string {
	t.Helper()
	heads, err := on.Heads(t.Context(), i.database)
	require.NoError(t, err)
	return heads
}

// ask sets the tag, as a user types it.
func (i identity) ask(t *testing.T, tag string) error {
	t.Helper()
	_, err := on.Kubectl(t.Context(), "", "-n", i.key.Namespace, "patch", "keystone", i.key.Name, "--type=merge", "-p", stage.PatchTag(tag))
	return err
}

func (i identity) until(t *testing.T, what string, wanted func(stage.Object) bool) {
	t.Helper()
	_, err := i.film.Until(t.Context(), what+" in "+i.key.Namespace, patience, wanted)
	require.NoError(t, err)
}

// serves asserts that every pod runs an image, and is all that there should be.
func (i identity) serves(t *testing.T, tag string) {
	t.Helper()
	require.NoError(t, on.Await(t.Context(), "the pods to be all of one template", patience, on.RolledOut(i.key.Namespace, i.key.Name)))
	pods, err := i.stage.Pods(t.Context(), i.key, "api")
	require.NoError(t, err)
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	assert.Len(t, pods, i.replicas)
	for _, p := range pods {
		assert.Equal(t, stage.Keystones.Image(tag), p.Spec.Containers[0].Image)
	}
}

func (i identity) reasons(t *testing.T) []string {
	t.Helper()
	events, err := i.stage.Events(t.Context(), i.key)
	require.NoError(t, err)
	return reasons(events)
}

// nothingFailed ends the traffic, after a last look at every project and the first tokens.
func (i identity) nothingFailed(t *testing.T) {
	t.Helper()
	time.Sleep(3 * time.Second) // the new release alone is asked for a while, too
	summary, err := i.traffic.Stop(t.Context())
	require.NoError(t, err)
	on.Say("%s: %s\n        %s", i.key.Namespace, summary, strings.Join(summary.Lines(), "\n        "))
	assert.Zero(t, summary.Failed, "failed requests: %v", summary.Failures)
	assert.Zero(t, summary.Lost, "lost tokens or projects: %v", summary.Failures)
	assert.GreaterOrEqual(t, summary.Sent, 150)
	for _, kind := range []string{"issue", "validate older", "validate first", "create"} {
		assert.Positive(t, summary.Kinds[kind].Sent, kind)
	}
}

func promotedTo(release string) func(stage.Object) bool {
	return func(o stage.Object) bool {
		return o.Record().InstalledRelease == release && o.Record().UpgradePhase == "" && stage.Ready(o)
	}
}

func keystoneWalked(t *testing.T) {
	i := identityAt(t, "keystone-walk", 2)
	var mu sync.Mutex
	var asking sync.WaitGroup
	seen := map[string][]string{}
	phase := ""
	ctx, stop := context.WithCancel(t.Context())
	_, err := i.stage.Follow(ctx, i.key, func(m stage.Moment) {
		if m.Phase() == phase {
			return
		}
		phase = m.Phase()
		asking.Go(func() {
			got, err := on.Heads(t.Context(), i.database)
			mu.Lock()
			defer mu.Unlock()
			if seen[m.Phase()] = got; err != nil {
				seen[m.Phase()] = []string{err.Error()}
			}
		})
	})
	defer stop()
	require.NoError(t, err)
	require.NoError(t, i.ask(t, stage.KeystoneAfter))
	i.until(t, "the upgrade to be complete", promotedTo(stage.KeystoneAfter))
	require.NoError(t, on.Await(t.Context(), "the sync that follows", patience, i.stage.SyncedBy(i.key, stage.Keystones.Image(stage.KeystoneAfter))))
	time.Sleep(2 * time.Second) // what is told after the last write may still be on its way
	stop()
	asking.Wait()

	var phases []string
	for _, span := range i.film.Spans() {
		phases = append(phases, span.Phase)
		on.Say("  %s: %-13s took %s", i.key.Namespace, span.Phase, span.Took.Round(100*time.Millisecond))
	}
	assert.Equal(t, []string{"Expanding", "Migrating", "RollingUpdate", "Contracting"}, phases)
	assert.Equal(t, map[string][]string{
		"Expanding": stage.Keystones.HeadsBefore, "Migrating": expandedHeads, "RollingUpdate": expandedHeads, "Contracting": expandedHeads,
		"": stage.Keystones.HeadsAfter,
	}, seen, "the revisions of the database when each phase had just begun, and at the end")
	assert.Equal(t, []string{"UpgradeInitiated", "ExpandComplete", "MigrateComplete", "DeploymentRolloutComplete", "UpgradeComplete"}, i.reasons(t))
	i.serves(t, stage.KeystoneAfter)
	i.nothingFailed(t)
}

func keystoneAborted(t *testing.T) {
	i := identityAt(t, "keystone-abort", 1)
	installed, err := i.stage.Job(t.Context(), i.key, upgrade.Sync)
	require.NoError(t, err)
	require.NotNil(t, installed)
	require.NoError(t, i.ask(t, stage.KeystoneAfter))
	i.until(t, "expand to be complete", func(o stage.Object) bool {
		phase := o.Record().UpgradePhase
		return phase == string(upgrade.Migrating) || phase == string(upgrade.RollingUpdate)
	})
	assert.Equal(t, expandedHeads, i.heads(t))

	require.NoError(t, i.ask(t, stage.KeystoneBefore))
	i.until(t, "the abort to be over and the database to be said to be ahead", func(o stage.Object) bool {
		database := stage.Condition(o, v1alpha1.ConditionDatabaseReady)
		return o.Record().UpgradePhase == "" && o.Record().TargetRelease == "" && strings.Contains(database.Message, "The database is ahead") &&
			stage.Condition(o, v1alpha1.ConditionDeploymentReady).Status == metav1.ConditionTrue
	})
	i.serves(t, stage.KeystoneBefore)
	time.Sleep(15 * time.Second) // in which nothing may happen
	object, err := i.stage.Get(t.Context(), i.key)
	require.NoError(t, err)
	database := stage.Condition(object, v1alpha1.ConditionDatabaseReady)
	on.Say("%s: %s: %s", i.key.Namespace, database.Reason, database.Message)
	assert.Equal(t, metav1.ConditionFalse, database.Status)
	for _, part := range []string{stage.ReleaseBefore, stage.ReleaseAfter, "Go forward", "restore a backup", stage.PatchTag(stage.KeystoneAfter)} {
		assert.Contains(t, database.Message, part)
	}
	assert.Equal(t, stage.KeystoneBefore, object.Record().InstalledRelease)
	assert.Equal(t, expandedHeads, i.heads(t), "nothing was done to the database")
	still, err := i.stage.Job(t.Context(), i.key, upgrade.Sync)
	require.NoError(t, err)
	if still != nil {
		assert.Equal(t, installed.UID, still.UID, "the old release's sync was run against a schema that it cannot read")
	}
	for _, task := range upgrade.PhaseTasks {
		job, err := i.stage.Job(t.Context(), i.key, task)
		require.NoError(t, err)
		assert.Nil(t, job, "the abort left a phase Job behind")
	}
	assert.Contains(t, i.reasons(t), "UpgradeAborted")
	refused := i.ask(t, stage.ReleaseBefore+"-patched")
	if assert.Error(t, refused, "a build of the old release was admitted, which could not be synced") {
		assert.Contains(t, refused.Error(), "expanded for "+stage.ReleaseAfter)
	}

	require.NoError(t, i.ask(t, stage.KeystoneAfter))
	i.until(t, "the upgrade to be complete", promotedTo(stage.KeystoneAfter))
	assert.Equal(t, stage.Keystones.HeadsAfter, i.heads(t))
	i.serves(t, stage.KeystoneAfter)
	i.nothingFailed(t)
}
