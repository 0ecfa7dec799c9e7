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
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/stage"
)

// What one upgrade may cost.
const (
	coreWrites = 14
	mostWrites = 20
	mostReads  = 5
)

var images = stage.Glance{Namespace: "openstack", Name: "images", Release: stage.ReleaseBefore, Tag: stage.TagBefore, Replicas: 3}

// TestAGlanceWalks is one story on one object: the parts build on each other, and clients ask all the time.
func TestAGlanceWalks(t *testing.T) {
	key, err := on.Install(t.Context(), images, "glance")
	require.NoError(t, err)
	require.NoError(t, on.AwaitReady(t.Context(), key, patience))
	g := get(t, key)
	assert.Equal(t, stage.ReleaseBefore, g.Record().InstalledRelease)
	assert.Equal(t, stage.Glances.Image(stage.TagBefore), g.Record().InstalledImage)
	heads(t, stage.Glances.HeadsBefore...)

	traffic, err := on.StartTraffic(t.Context(), "clients", g.Record().Endpoint, 3)
	require.NoError(t, err)

	parts := []struct {
		name string
		part func(*testing.T)
	}{
		{"an edit that could never be walked is refused, and the answer says what would pass", refusals},
		{"to the next release, in order, at the promised cost", toTheNextRelease},
		{"a steady object costs nothing, and a restarted webhook changes nothing", steady},
		{"a controller that is killed in mid-walk is taken over from, and an abort brings the pods back", killedAndAborted},
	}
	for _, p := range parts {
		if !t.Run(p.name, p.part) {
			break
		}
	}
	t.Run("no request failed and no image was lost in all of it", func(t *testing.T) {
		summary, err := traffic.Stop(t.Context())
		require.NoError(t, err)
		on.Say("%s\n        %s", summary, strings.Join(summary.Lines(), "\n        "))
		assert.Zero(t, summary.Failed, "failed requests: %v", summary.Failures)
		assert.Zero(t, summary.Lost, "lost images: %v", summary.Failures)
		assert.GreaterOrEqual(t, summary.Sent, 1000)
	})
}

func heads(t *testing.T, want ...string) {
	t.Helper()
	got, err := on.Heads(t.Context(), "glance")
	require.NoError(t, err)
	assert.Equal(t, want, got, "heads of the database")
}

func refusals(t *testing.T) {
	before := get(t, images.Key())
	for _, c := range []struct{ name, patch, field, word, remedy string }{
		{"no such release", stage.Patch("2026.3", stage.TagAfter), "spec.openStackRelease", "should match", ""},
		{"backwards", stage.Patch("2025.2", "older"), "spec.openStackRelease", "DowngradeNotSupported: 2026.1 → 2025.2", stage.Patch("2026.1", "bookworm")},
		{"two at once", stage.Patch("2027.1", stage.TagAfter), "spec.openStackRelease", "UpgradePathInvalid: 2026.1 → 2027.1 skips 2026.2", `"openStackRelease":"2026.2"`},
		{"the tag names another release", stage.Patch("2026.2", "2026.1-p1"), "spec.image.tag", "ImageReleaseMismatch", `"openStackRelease":"2026.2"`},
		{"the release alone", `{"spec":{"openStackRelease":"2026.2"}}`, "spec.image.tag", "ImageReleaseMismatch", `"openStackRelease":"2026.2"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := on.Kubectl(t.Context(), "", "-n", images.Namespace, "patch", "glance", images.Name, "--type=merge", "-p", c.patch)
			require.Error(t, err, "it was admitted: %s", out)
			for _, part := range []string{c.field, c.word, c.remedy} {
				assert.Contains(t, err.Error(), part)
			}
		})
	}
	after := get(t, images.Key())
	assert.Equal(t, before.GetGeneration(), after.GetGeneration(), "a refused edit changed the object")
}

// headsAt are the heads of the database when each phase had just begun, and at the end.
var headsAt = map[string][]string{
	"Expanding":     {"wallaby_contract01"},
	"Migrating":     {"2024_1_expand01", "wallaby_contract01"},
	"RollingUpdate": {"2024_1_expand01", "wallaby_contract01"},
	"Contracting":   {"2024_1_expand01", "wallaby_contract01"},
	"":              {"2024_1_contract01"},
}

func toTheNextRelease(t *testing.T) {
	key := images.Key()
	began := mark(t)
	var mu sync.Mutex
	seen := map[string][]string{}
	phase := ""
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var asking sync.WaitGroup
	defer asking.Wait()
	film, err := on.Follow(ctx, key, func(m stage.Moment) {
		on.Say("  %-13s %s", m.Phase(), stage.Words(m.Object))
		if m.Phase() == phase {
			return
		}
		phase = m.Phase()
		asking.Go(func() {
			got, err := on.Heads(t.Context(), "glance")
			mu.Lock()
			defer mu.Unlock()
			if seen[m.Phase()] = got; err != nil {
				seen[m.Phase()] = []string{err.Error()}
			}
		})
	})
	require.NoError(t, err)
	patchTo(t, key, stage.ReleaseAfter, stage.TagAfter)
	_, err = film.Until(t.Context(), "the upgrade to be complete", patience, func(o stage.Object) bool {
		return o.Record().InstalledRelease == stage.ReleaseAfter && stage.Ready(o)
	})
	require.NoError(t, err)
	require.NoError(t, on.Await(t.Context(), "the sync that follows", patience, on.SyncedBy(key, stage.Glances.Image(stage.TagAfter))))
	time.Sleep(2 * time.Second) // what is told after the last write may still be on its way
	stop()
	asking.Wait()

	t.Run("the four phases come once each, in order", func(t *testing.T) {
		var phases []string
		for _, span := range film.Spans() {
			phases = append(phases, span.Phase)
			on.Say("  %-13s took %s", span.Phase, span.Took.Round(100*time.Millisecond))
		}
		assert.Equal(t, []string{"Expanding", "Migrating", "RollingUpdate", "Contracting"}, phases)
	})
	t.Run("the database is at the right revisions in each phase", func(t *testing.T) {
		assert.Equal(t, headsAt, seen)
	})
	t.Run("the record tells where it stands, and both releases with it", func(t *testing.T) {
		for _, m := range film.Moments() {
			s := m.Object.Record()
			if m.Phase() == "" {
				assert.Empty(t, s.TargetRelease+s.TargetImage)
				continue
			}
			database := stage.Condition(m.Object, v1alpha1.ConditionDatabaseReady)
			assert.Equal(t, stage.ReleaseBefore, s.InstalledRelease)
			assert.Equal(t, stage.ReleaseAfter, s.TargetRelease)
			assert.Equal(t, stage.Glances.Image(stage.TagAfter), s.TargetImage)
			assert.Contains(t, database.Message, "2026.1 → 2026.2")
			assert.Equal(t, metav1.ConditionFalse, database.Status)
			assert.Equal(t, metav1.ConditionTrue, stage.Condition(m.Object, v1alpha1.ConditionDeploymentReady).Status, "in phase %s", m.Phase())
		}
	})
	t.Run("it stays Ready while the sync follows", func(t *testing.T) {
		promoted := false
		for _, m := range film.Moments() {
			promoted = promoted || m.Object.Record().InstalledRelease == stage.ReleaseAfter
			if promoted {
				assert.True(t, stage.Ready(m.Object), "%s", stage.Words(m.Object))
			}
		}
		assert.True(t, promoted)
	})
	t.Run("each event comes exactly once, in order", func(t *testing.T) {
		events, err := on.Events(t.Context(), key)
		require.NoError(t, err)
		assert.Equal(t, []string{"UpgradeInitiated", "ExpandComplete", "MigrateComplete", "DeploymentRolloutComplete", "UpgradeComplete"}, reasons(events))
		for _, e := range events {
			assert.Equal(t, corev1.EventTypeNormal, e.Type)
			assert.Nil(t, e.Series, "%s was told more than once", e.Reason)
			assert.Contains(t, e.Note, "2026.1 → 2026.2")
		}
	})
	t.Run("it took 14 writes, 20 at most with clean-up and sync, and hardly a read past the caches", func(t *testing.T) {
		calls, err := on.ControllerCalls(began, key.Namespace)
		require.NoError(t, err)
		tally := stage.Count(calls, film.Moves())
		on.Say("writes: %s", strings.Join(tally.Lines(), "\n        "))
		assert.Equal(t, [4]int{5, 3, 1, 5}, [4]int{tally.Status, tally.Jobs, tally.Deployment, tally.Events}, "status, Jobs, Deployment, events")
		assert.Equal(t, coreWrites, tally.Core())
		assert.LessOrEqual(t, tally.Total(), mostWrites)
		assert.Empty(t, tally.Other)
		assert.LessOrEqual(t, len(tally.Reads), mostReads)
	})
	t.Run("the pods run the new image alone", func(t *testing.T) { serve(t, key, stage.TagAfter) })
}

func reasons(events []eventsv1.Event) []string {
	var all []string
	for _, e := range events {
		all = append(all, e.Reason)
	}
	return all
}

// serve asserts that every pod of the API runs an image, and is all that there should be.
func serve(t *testing.T, key client.ObjectKey, tag string) {
	t.Helper()
	require.NoError(t, on.Await(t.Context(), "the pods to be all of one template", patience, on.RolledOut(key.Namespace, key.Name)))
	pods, err := on.Pods(t.Context(), key, "api")
	require.NoError(t, err)
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	assert.Len(t, pods, images.Replicas)
	for _, p := range pods {
		assert.Equal(t, stage.Glances.Image(tag), p.Spec.Containers[0].Image)
	}
}

func ready(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func steady(t *testing.T) {
	controllers := running(t, stage.Controller)
	began := mark(t)
	require.NoError(t, on.Restart(t.Context(), stage.Webhook))
	// The minute is what is measured: nothing may happen in it.
	time.Sleep(time.Minute)
	calls, err := on.ControllerCalls(began, images.Namespace)
	require.NoError(t, err)
	assert.Empty(t, calls, "the controller called for a steady object")
	assert.Equal(t, controllers, running(t, stage.Controller), "a restart of the webhook touched the controller")
}

// tagBeyond is trixie once more, to begin a second upgrade with.
const tagBeyond = "next"

func killedAndAborted(t *testing.T) {
	key := images.Key()
	require.NoError(t, on.Tag(t.Context(), stage.TagAfter, tagBeyond))
	before, err := on.Events(t.Context(), key)
	require.NoError(t, err)
	film, err := on.Follow(t.Context(), key, func(m stage.Moment) { on.Say("  %-13s %s", m.Phase(), stage.Words(m.Object)) })
	require.NoError(t, err)
	patchTo(t, key, stage.ReleaseBeyond, tagBeyond)
	_, err = film.Until(t.Context(), "the second upgrade to begin", words, func(o stage.Object) bool {
		return o.Record().TargetRelease == stage.ReleaseBeyond
	})
	require.NoError(t, err)

	// What a controller has to tell goes out after its write: it dies when that has been told.
	require.NoError(t, on.Await(t.Context(), "the first Job to run", words, func(ctx context.Context) (bool, string, error) {
		job, err := on.Job(ctx, key, upgrade.Expand)
		return job != nil && job.Spec.Template.Spec.Containers[0].Image == stage.Glances.Image(tagBeyond) && job.Status.Active > 0, "no Job yet", err
	}))
	webhooks := running(t, stage.Webhook)
	killed, err := on.KillLeader(t.Context())
	require.NoError(t, err)
	on.Say("killed %s", killed)
	_, err = film.Until(t.Context(), "another controller to go on to the rolling update", patience, func(o stage.Object) bool {
		return o.Record().UpgradePhase == string(upgrade.RollingUpdate)
	})
	require.NoError(t, err)
	assert.Equal(t, webhooks, running(t, stage.Webhook), "the end of a controller touched the webhook")

	require.NoError(t, on.Await(t.Context(), "a pod of the new image to serve", patience, func(ctx context.Context) (bool, string, error) {
		pods, err := on.Pods(ctx, key, "api")
		return slices.ContainsFunc(pods, func(p corev1.Pod) bool {
			return p.Spec.Containers[0].Image == stage.Glances.Image(tagBeyond) && ready(p)
		}), "none yet", err
	}))
	patchTo(t, key, stage.ReleaseAfter, stage.TagAfter)
	_, err = film.Until(t.Context(), "the abort to be over", patience, func(o stage.Object) bool {
		return o.Record().AbortedImage == stage.Glances.Image(tagBeyond) && o.Record().UpgradePhase == "" && stage.Ready(o)
	})
	require.NoError(t, err)
	g := get(t, key)
	assert.Equal(t, stage.ReleaseAfter, g.Record().InstalledRelease)
	assert.Empty(t, g.Record().TargetRelease+g.Record().TargetImage)
	heads(t, stage.Glances.HeadsAfter...)
	serve(t, key, stage.TagAfter)
	for _, task := range upgrade.PhaseTasks {
		job, err := on.Job(t.Context(), key, task)
		require.NoError(t, err)
		assert.Nil(t, job, "the abort left a phase Job behind")
	}
	time.Sleep(2 * time.Second) // what is told after the last write may still be on its way
	after, err := on.Events(t.Context(), key)
	require.NoError(t, err)
	assert.Equal(t, []string{"UpgradeInitiated", "ExpandComplete", "MigrateComplete", "UpgradeAborted"}, reasons(after)[len(before):])
}
