//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/drill"
	"github.com/c5c3/openstack-upgrade/test/drill/schema"
	"github.com/c5c3/openstack-upgrade/test/stage"
	"github.com/c5c3/openstack-upgrade/test/traffic/ledger"
)

const (
	// rounds is how many images clients create each second; each is read, listed, and followed by an older one.
	rounds = 5
	// warm is how many requests are answered before anything is changed.
	warm = 150
	// longDrain is how long a pod may go on with what it holds.
	longDrain = 300
	// told is how many lines of a summary are printed: the kinds of requests and the first failures.
	told = 8
	// uploaded is the word that lets an upload go on.
	uploaded = "upload"
)

// story is one subtest that needs nothing of the others.
type story struct {
	name string
	tell func(t *testing.T)
}

// sideBySide tells them all at once, whatever the number of cores: most of each is waiting.
func sideBySide(t *testing.T, stories ...story) {
	t.Helper()
	var told sync.WaitGroup
	for _, s := range stories {
		told.Go(func() { t.Run(s.name, s.tell) })
	}
	told.Wait()
}

// TestTheDrillSurvivesTheRightOrderAlone upgrades a service whose contract takes away what its old release reads: once
// through the controller, and in three other orders by hand, with the same pods and the same clients. Beside that, others
// of its kind are walked through disturbances.
func TestTheDrillSurvivesTheRightOrderAlone(t *testing.T) {
	require.NoError(t, on.LoadDrill(t.Context(), stage.ReleaseBefore, stage.ReleaseAfter))
	var table results
	stories := append([]story{{"the right order, and the wrong ones", func(t *testing.T) { orders(t, &table) }}}, disturbances...)
	sideBySide(t, stories...)
	table.print()
}

func orders(t *testing.T, table *results) {
	key := installed(t, stage.Drill("drill", build.Grace(longDrain)))
	stories := []story{{"through the controller nothing fails, whatever an old pod still holds", func(t *testing.T) { theRightOrder(t, key, table) }}}
	for _, o := range wrongOrders {
		stories = append(stories, story{o.name + " fails", func(t *testing.T) { theWrongOrder(t, key, o, table) }})
	}
	sideBySide(t, stories...)
}

// installed makes a drill that goes with the test.
func installed(t *testing.T, g *v1alpha1.Glance) client.ObjectKey {
	t.Helper()
	dropped(t, g.Namespace)
	key, err := on.InstallDrill(t.Context(), g, patience)
	require.NoError(t, err)
	return key
}

func dropped(t *testing.T, namespace string) {
	t.Cleanup(func() { assert.NoError(t, on.DropNamespace(context.WithoutCancel(t.Context()), namespace)) })
}

// result is what one order of an upgrade did to the clients and to the rows.
type result struct {
	order        string
	requests     ledger.Summary
	uploadFailed int
	rows         schema.Report
}

func (r result) sent() int   { return r.requests.Sent + 1 }
func (r result) failed() int { return r.requests.Failed + r.uploadFailed }

// wrong counts rows that cannot be read as they were written, and those that were answered for and are not there.
func (r result) wrong() int {
	answered := r.requests.Created + 1 - r.uploadFailed
	return r.rows.Wrong + max(0, answered-r.rows.Checked)
}

type results struct {
	mu  sync.Mutex
	all []result
}

func (r *results) add(one result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, one)
}

func (r *results) print() {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Println("\nTHE DRILL: one upgrade, 2026.1 → 2026.2, under the same clients")
	slices.SortStableFunc(r.all, func(a, b result) int { return cmp.Compare(a.failed(), b.failed()) })
	for _, one := range r.all {
		fmt.Printf("  %-48s requests: %d sent, %d failed; rows checked %d, wrong %d\n", one.order, one.sent(), one.failed(), one.rows.Checked, one.wrong())
	}
	fmt.Println()
}

// crowd is what a service has to bear: clients without a pause, and an upload that one of its pods holds for long.
type crowd struct {
	key     client.ObjectKey
	traffic *stage.Traffic
	upload  *stage.Upload
}

func gather(t *testing.T, key client.ObjectKey, pod string) crowd {
	t.Helper()
	c := crowd{key: key}
	var err error
	c.traffic, err = on.StartTraffic(t.Context(), key.Namespace, fmt.Sprintf("http://%s.%s.svc:9292", key.Name, key.Namespace), rounds)
	require.NoError(t, err)
	c.upload, err = on.Upload(t.Context(), key.Namespace, pod, uploaded)
	require.NoError(t, err)
	require.NoError(t, on.Await(t.Context(), "clients of "+key.Namespace+" to be at it", patience, func(ctx context.Context) (bool, string, error) {
		now, err := c.traffic.Now(ctx)
		if err != nil {
			return false, err.Error(), nil
		}
		return now.Sent >= warm, fmt.Sprintf("%d sent, %d failed", now.Sent, now.Failed), nil
	}))
	return c
}

// disperse ends the traffic after a last look at every row.
func (c crowd) disperse(t *testing.T, order string, uploadErr error) result {
	t.Helper()
	time.Sleep(3 * time.Second) // the new release alone is asked for a while, too
	r := result{order: order}
	if uploadErr != nil {
		r.uploadFailed = 1
	}
	var err error
	r.requests, err = c.traffic.Stop(t.Context())
	require.NoError(t, err)
	r.rows, err = on.Verify(t.Context(), c.key)
	require.NoError(t, err)
	lines := r.requests.Lines()
	on.Say("%s: %s\n        %s\n        %s", order, r.requests, strings.Join(lines[:min(len(lines), told)], "\n        "), r.rows)
	return r
}

func theRightOrder(t *testing.T, key client.ObjectKey, table *results) {
	pods, err := on.Pods(t.Context(), key, "api")
	require.NoError(t, err)
	require.Len(t, pods, 3)
	pod := pods[0].Name
	clients := gather(t, key, pod)
	film, err := on.Follow(t.Context(), key, func(m stage.Moment) { on.Say("  %-13s %s", m.Phase(), stage.Words(m.Object)) })
	require.NoError(t, err)
	patchTo(t, key, stage.ReleaseAfter, stage.ReleaseAfter)

	t.Run("an old pod that ends for long holds the contract back, and the condition names it and since when", func(t *testing.T) {
		left := fmt.Sprintf(`pods of the previous template are left: [^;]*%s \(terminating since \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ\)`, pod)
		named := saying(left)
		m, err := film.Until(t.Context(), "the condition to name the pod", patience, func(o stage.Object) bool {
			return named(o) || o.Record().InstalledRelease == stage.ReleaseAfter
		})
		require.NoError(t, err)
		require.Regexp(t, left, stage.Words(m.Object), "the contract was not held back")
		done, seen, err := on.RolledOut(key.Namespace, key.Name)(t.Context())
		require.NoError(t, err)
		assert.True(t, done, "all else should be done: %s", seen)
		require.NoError(t, on.Await(t.Context(), "every other old pod to be gone", patience, func(ctx context.Context) (bool, string, error) {
			pods, err := on.Pods(ctx, key, "api")
			return len(pods) == 4, fmt.Sprintf("%d pods are there", len(pods)), err
		}))
		time.Sleep(10 * time.Second) // in which nothing may happen
		assert.Equal(t, string(upgrade.RollingUpdate), get(t, key).Record().UpgradePhase)
		job, err := on.Job(t.Context(), key, upgrade.Contract)
		require.NoError(t, err)
		assert.Nil(t, job, "the contract was begun")
	})

	require.NoError(t, on.LetGo(t.Context(), key.Namespace, uploaded))
	id, answered, uploadErr := clients.upload.Answer(t.Context(), time.Minute)
	assert.NoError(t, uploadErr)
	_, err = film.Until(t.Context(), "the upgrade to be complete", patience, func(o stage.Object) bool {
		return o.Record().InstalledRelease == stage.ReleaseAfter && stage.Ready(o)
	})
	require.NoError(t, err)
	require.NoError(t, on.Await(t.Context(), "the sync that follows", patience, on.SyncedBy(key, drill.Ref(stage.ReleaseAfter))))
	r := clients.disperse(t, "through the controller", uploadErr)
	table.add(r)

	t.Run("no request failed", func(t *testing.T) {
		assert.Zero(t, r.failed(), "failed requests: %v", r.requests.Failures)
		assert.GreaterOrEqual(t, r.sent(), 500)
	})
	t.Run("no row is wrong, and none is lost or unexplained", func(t *testing.T) {
		assert.Zero(t, r.wrong(), "%v", r.rows.Faults)
		assert.Zero(t, r.requests.Lost, "the API does not list %v", r.requests.Failures)
		assert.Equal(t, r.requests.Created+1, r.rows.Checked, "every row that was answered for, and no other")
		assert.Zero(t, r.rows.Unmigrated)
		assert.Equal(t, []string{"value_2026_2"}, r.rows.Columns)
		out, err := on.Ask(t.Context(), key, "/v2/images/"+id)
		require.NoError(t, err)
		var found struct{ Name string }
		require.NoError(t, json.Unmarshal([]byte(out), &found))
		assert.Equal(t, clients.upload.Name, found.Name, "what the old release took last is read by the new one")
	})
	t.Run("no two pieces of schema work met, and contract came after the last answer of an old pod", func(t *testing.T) {
		var tasks []string
		for _, run := range r.rows.Runs {
			tasks = append(tasks, run.Tag+" "+run.Task)
			if run.Task == "contract" {
				assert.True(t, run.Began.After(answered.UTC()), "contract began at %s, the upload was answered at %s", run.Began, answered.UTC())
			}
		}
		assert.Equal(t, []string{"2026.1 sync", "2026.1 load_metadefs", "2026.2 expand", "2026.2 migrate", "2026.2 contract", "2026.2 sync", "2026.2 load_metadefs"}, tasks)
		assert.Zero(t, r.rows.Overlapping)
	})
	t.Run("each event came once, however long it waited", func(t *testing.T) {
		events, err := on.Events(t.Context(), key)
		require.NoError(t, err)
		assert.Equal(t, []string{"UpgradeInitiated", "ExpandComplete", "MigrateComplete", "DeploymentRolloutComplete", "UpgradeComplete"}, reasons(events))
	})
}
