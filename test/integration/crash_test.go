package integration

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

func TestAControllerThatIsKilledAfterEachOfItsStepsTellsTheSameStory(t *testing.T) {
	s := open(t).start()
	story := s.Record(t, s.ns, name)
	phase := func(phase upgrade.Phase) func() string {
		return func() string { return in(phase)(s.now()) }
	}
	created := func(task upgrade.Task, image string) func() string {
		return func() string {
			job := s.job(task)
			return lacks(job != nil && job.DeletionTimestamp == nil && job.Spec.Template.Spec.Containers[0].Image == image, "Job is %v", job)
		}
	}
	complete := func(task upgrade.Task, image string) func() string {
		return func() string {
			job := s.job(task)
			return lacks(job != nil && completeOn(image)(job) == "", "Job is %v", job)
		}
	}
	for _, step := range []struct {
		name string
		seen func() string
	}{
		{"the Job of the install", created(upgrade.Sync, old)},
		{"the Job of the install complete", complete(upgrade.Sync, old)},
		{"the installed release", func() string { g := s.now(); return lacks(g.Status.InstalledRelease == "2026.1", "%v", g.Status) }},
		{"the whole install", func() string { return rests("2026.1")(s.now()) }},
		{"the wish", func() string { s.edit(build.Lockstep("2026.2")); return "" }},
		{"phase Expanding", phase(upgrade.Expanding)},
		{"the Job of expand", created(upgrade.Expand, next)},
		{"expand complete", complete(upgrade.Expand, next)},
		{"phase Migrating", phase(upgrade.Migrating)},
		{"the Job of migrate", created(upgrade.Migrate, next)},
		{"migrate complete", complete(upgrade.Migrate, next)},
		{"phase RollingUpdate", phase(upgrade.RollingUpdate)},
		{"the template of the target", func() string { return lacks(s.deployment().Spec.Template.Spec.Containers[0].Image == next, "not yet") }},
		{"the rollout", func() string { return rolledTo(next)(s.deployment()) }},
		{"phase Contracting", phase(upgrade.Contracting)},
		{"the Job of contract", created(upgrade.Contract, next)},
		{"contract complete", complete(upgrade.Contract, next)},
		{"the promotion", func() string { g := s.now(); return lacks(g.Status.InstalledRelease == "2026.2", "%v", g.Status) }},
		{"the Job of the sync afterwards", created(upgrade.Sync, next)},
	} {
		if step.name == "the Job of the install" {
			s.glance(build.Replicas(3))
		}
		s.Eventually(t, harness.Patience, step.name, func(context.Context) string { return step.seen() })
		s.controller.Kill(t)
		s.start()
	}
	s.await("the upgrade to end", rests("2026.2"))
	s.awaitJob(upgrade.Sync, "the sync afterwards", completeOn(next))

	undisturbed, err := os.ReadFile("testdata/upgrade.golden")
	require.NoError(t, err)
	told := ""
	for started := time.Now(); told != steps(string(undisturbed)) && time.Since(started) < 10*time.Second; { // a watch may tell late
		told = steps(story.Text(t))
	}
	require.Equal(t, steps(string(undisturbed)), told)
	for _, event := range s.told() {
		require.True(t, strings.HasPrefix(event, "Normal "), event)
	}
}

// steps is a story without its events. An event is told after the step it is about has been recorded, so a crash in
// between loses the event, never the step.
func steps(story string) string {
	before, _, _ := strings.Cut(story, "\n\n")
	return before
}

func TestWhatEndsWhileNobodyLooksIsTakenUpAtTheNextStart(t *testing.T) {
	s := open(t)
	finish := s.script(upgrade.Migrate, harness.Hang())
	s.glance(build.Lockstep("2026.2")).record(walking(upgrade.Migrating)).start()
	s.awaitPod(upgrade.Migrate, "to run", runs)
	s.controller.Kill(t)
	finish()
	done := s.awaitJob(upgrade.Migrate, "to complete", isComplete)
	s.start()
	s.await("the upgrade to end", rests("2026.2"))
	require.Equal(t, done.UID, s.job(upgrade.Migrate).UID, "it was not run again")
	s.toldTimes("Normal MigrateComplete", 1)
}

func TestAnAbortIsFinishedByTheNextControllerIfTheFirstIsKilledInTheMiddle(t *testing.T) {
	s := open(t)
	s.script(upgrade.Migrate, harness.Hang())
	die := s.script(upgrade.Migrate, harness.IgnoreTerm(harness.Forever))
	s.glance(build.Lockstep("2026.2")).record(walking(upgrade.Migrating)).start()
	s.awaitPod(upgrade.Migrate, "to run", runs)
	s.edit(build.Lockstep("2026.1"))
	s.awaitPod(upgrade.Migrate, "to be told to end", ends)
	s.controller.Kill(t)
	s.start()
	die()
	s.aborted()
}
