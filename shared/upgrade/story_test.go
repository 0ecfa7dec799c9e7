package upgrade

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the transcripts in testdata anew")

// chapter is what people do, or what befalls them, once a moment has come.
type chapter struct {
	when func(*world) bool
	says string
	do   func(*world)
}

// teller writes a walk down as it goes.
type teller struct {
	world
	lines []string
	last  string
}

func (s *teller) line(format string, args ...any) {
	s.lines = append(s.lines, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// tell plays a world to its rest: first people, then the controller, then
// Jobs and pods, one thing at a time.
func tell(t *testing.T, w world, chapters ...chapter) string {
	t.Helper()
	s := &teller{world: w}
	s.line("= %s", s.stand())
	const enough = 500
	for range enough {
		require.Empty(t, s.wrong(), strings.Join(s.lines, "\n"))
		if len(chapters) > 0 && chapters[0].when(&s.world) {
			s.line("\n> %s", chapters[0].says)
			chapters[0].do(&s.world)
			chapters = chapters[1:]
			continue
		}
		if s.look() {
			continue
		}
		if !s.happen() {
			require.Empty(t, chapters, "a chapter's moment never comes\n%s", strings.Join(s.lines, "\n"))
			s.line("\n= %s", s.stand())
			return strings.Join(s.lines, "\n") + "\n"
		}
	}
	require.Fail(t, "the story has no end", strings.Join(s.lines, "\n"))
	return ""
}

// look reconciles once; false when nothing is new.
func (s *teller) look() bool {
	before, phase := s.world, s.state.Phase
	got := s.reconcile()
	step := string(got.Step)
	if got.Task != "" {
		step += " " + string(got.Task)
	}
	for _, task := range got.Delete {
		step += " " + strings.TrimPrefix(string(task), "db-")
	}
	if phase == Steady {
		phase = "-"
	}
	said := fmt.Sprintf("%-13s  %-18s  %-21s %s", phase, step, got.Database.Reason, got.Database.Message)
	if said != s.last || got.Step != Wait {
		s.last = said
		s.line("%s", said)
	}
	if got.Event != nil {
		kind := "Normal"
		if got.Event.Warning {
			kind = "Warning"
		}
		s.line("%15s! %s %s: %s", "", kind, got.Event.Reason, got.Event.Message)
	}
	if before.api != s.api && (before.api.image != s.api.image || before.api.config != s.api.config) {
		s.line("%15s~ the Deployment is set to %s", "", s.api.image)
	}
	return before != s.world
}

// happen lets the first thing happen that does so by itself, a failure before
// everything else.
func (s *teller) happen() bool {
	var next *happening
	for _, h := range s.happenings() {
		if h.says != "reconcile" && (next == nil || strings.HasSuffix(h.says, "fails")) {
			next = &h
		}
	}
	if next == nil {
		return false
	}
	before := s.world
	s.world = next.then
	for i, task := range Tasks {
		if was, is := before.jobs[i], s.jobs[i]; was != is {
			word := map[Progress]string{"": "is gone with its pod", Running: "runs", Ending: "has done its work", Complete: "is Complete", Failed: "is Failed"}[is.progress]
			s.line("%15s~ Job glance-%s %s", "", task, word)
		}
	}
	if before.api.pods != s.api.pods {
		s.line("%15s~ pods: %s", "", s.pods())
	}
	return true
}

func (s *teller) pods() string {
	var all []string
	for _, pod := range s.api.pods {
		if word := map[stage]string{starting: "starts", ready: "serves", terminating: "ends"}[pod.stage]; word != "" {
			all = append(all, pod.image+" "+word)
		}
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

func (s *teller) stand() string {
	text := fmt.Sprintf("installed %s (%s)", s.state.Installed, s.state.InstalledImage)
	if s.state.Walking() {
		text += fmt.Sprintf(", target %s (%s), phase %s", s.state.Target, s.state.TargetImage, s.state.Phase)
	}
	return text + fmt.Sprintf("; %s, ready %v; pods: %s", s.reported, s.ready, s.pods())
}

func atOnce(*world) bool { return true }

// job is the moment when a Job is so far.
func job(task Task, progress Progress) func(*world) bool {
	return func(w *world) bool {
		return w.job(task).exists && !w.job(task).leaving && w.job(task).progress == progress
	}
}

func in(p Phase) func(*world) bool { return func(w *world) bool { return w.state.Phase == p } }

func reported(reason Reason) func(*world) bool {
	return func(w *world) bool { return w.reported == reason && w.told == w.wish.Generation }
}

// rollingHalf is the moment when both images serve.
func rollingHalf(w *world) bool {
	serves := map[string]bool{}
	for _, pod := range w.api.pods {
		if pod.stage == ready {
			serves[pod.image] = true
		}
	}
	return w.state.Phase == RollingUpdate && len(serves) == 2
}

// then makes a chapter of an interference.
func (i interference) then(when func(*world) bool) chapter {
	return chapter{when, i.says, i.do}
}

type story struct {
	from     world
	chapters []chapter
}

func TestWholeWalksReadLikeThis(t *testing.T) {
	fresh := func() world {
		return world{replicas: 2, wish: Desired{Release: "2026.1", Image: ref("r:2026.1"), Generation: 1}}
	}
	steady := func() world { return atRest2026("r:2026.1", 2) }
	opaque := func() world { return atRest2026("r:stable", 2) }
	bump := upward.then(atOnce)
	repair := func(w *world) bool { return w.failures == 0 && w.reported == MigrateFailed }
	stories := map[string]story{}
	add := func(name string, from world, chapters ...chapter) { stories[name] = story{from, chapters} }
	add("fresh-install", fresh())
	add("happy-path", steady(), bump)
	add("patch-bump", steady(), patched.then(atOnce))
	add("patch-bump-during-post-upgrade-sync", steady(), bump, rebuilt.then(func(w *world) bool { return w.state.Installed == "2026.2" && job(Sync, Running)(w) }))
	moments := []struct {
		name string
		when func(*world) bool
	}{
		{"expanding-before", in(Expanding)}, {"expanding-pending", job(Expand, Pending)}, {"expanding-running", job(Expand, Running)}, {"expanding-complete", job(Expand, Complete)},
		{"migrating-before", in(Migrating)}, {"migrating-running", job(Migrate, Running)}, {"migrating-complete", job(Migrate, Complete)},
		{"rolling-before", in(RollingUpdate)}, {"rolling-half", rollingHalf},
		{"contracting-before", in(Contracting)}, {"contracting-running", job(Contract, Running)}, {"contracting-ending", job(Contract, Ending)}, {"contracting-complete", job(Contract, Complete)},
	}
	for _, m := range moments {
		add("abort-"+m.name, steady(), bump, backward.then(m.when))
	}
	for _, m := range moments {
		if m.name == "expanding-pending" || strings.HasSuffix(m.name, "running") || m.name == "rolling-half" {
			add("image-changed-"+m.name, steady(), bump, rebuilt.then(m.when))
			add("status-lost-"+m.name, steady(), bump, loss.then(m.when))
		}
	}
	add("status-lost-steady", steady(), loss.then(atOnce))
	fails := interference{"the next Job is going to fail", func(w *world) { w.failures = 1 }}.then(in(Migrating))
	add("failed-job-deleted", steady(), bump, fails, cleanUp.then(repair))
	add("failed-job-reconfigured", steady(), bump, fails, newConfig.then(repair))
	add("failed-job-rebuilt", steady(), bump, fails, rebuilt.then(repair))
	add("failed-job-aborted", steady(), bump, fails, documented.then(repair), backward.then(reported(ImageReleaseMismatch)))
	add("target-changed", steady(), bump, skipping.then(job(Migrate, Running)), upward.then(reported(UpgradeTargetChanged)))
	add("abort-with-opaque-tag-left", opaque(), asks("2026.2", "r:next").then(atOnce), asks("2026.1", "r:next").then(job(Migrate, Running)),
		asks("2026.1", "r:stable").then(reported(ImageReleaseMismatch)))
	pinned := atRest2026("r:stable@sha256:a", 2)
	add("digest-unchanged", pinned, asks("2026.2", "r:stable@sha256:a").then(atOnce), asks("2026.2", "r:2026.2@sha256:a").then(reported(ImageReleaseMismatch)),
		asks("2026.2", "r:2026.2@sha256:b").then(reported(ImageReleaseMismatch)))
	stale := steady()
	for _, task := range PhaseTasks {
		*stale.job(task) = playedJob{exists: true, progress: Complete, work: Work{Task: task, From: "2025.2", To: "2026.1", Attempt: 1, Image: "r:2026.1"}}
	}
	add("stale-jobs-of-the-last-walk", stale, bump)
	add("skip-and-downgrade", steady(), skipping.then(atOnce), asks("2025.2", "r:2025.2").then(reported(UpgradePathInvalid)), backward.then(reported(DowngradeNotSupported)))

	keyed := func() world { return keyedAtRest("r:2026.1", 2) }
	forward, back := turns("r:2026.2").then(atOnce), func(when func(*world) bool) chapter { return turns("r:2026.1").then(when) }
	isAhead := reported(DowngradeNotSupported)
	add("by-tag-fresh-install", world{replicas: 2, wish: keyed().wish})
	add("by-tag-happy-path", keyed(), forward)
	add("by-tag-patch-bump", keyed(), turns("r:2026.1-p1").then(atOnce))
	for _, m := range moments {
		if strings.HasSuffix(m.name, "running") || m.name == "expanding-pending" || m.name == "rolling-half" || m.name == "contracting-complete" {
			add("by-tag-abort-"+m.name, keyed(), forward, back(m.when))
		}
	}
	add("by-tag-abort-patch-forward", keyed(), forward, back(job(Migrate, Running)), turns("r:2026.1-p1").then(isAhead), turns("r:2026.2-p1").then(isAhead))
	add("by-tag-abort-restored", keyed(), forward, back(job(Migrate, Running)), restored().then(isAhead))
	add("by-tag-abort-status-lost", keyed(), forward, loss.then(job(Migrate, Running)), back(atOnce))
	add("by-tag-opaque-to-named", keyedAtRest("r@sha256:a", 2), turns("r@sha256:c").then(atOnce), turns("r:2026.2").then(func(w *world) bool { return w.state.InstalledImage == "r@sha256:c" }))
	add("by-tag-opaque-is-named", keyedAtRest("r@sha256:a", 2), turns("r:2026.1@sha256:a").then(atOnce))
	add("by-tag-opaque-in-a-walk", keyed(), forward, turns("r@sha256:c").then(job(Migrate, Running)), back(reported(UpgradeTargetChanged)))

	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			got := tell(t, story.from, story.chapters...)
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err, "write it with: go test ./shared/upgrade -run WholeWalks -update")
			assert.Equal(t, string(want), got, "if this is meant: go test ./shared/upgrade -run WholeWalks -update")
		})
	}
	written, err := filepath.Glob("testdata/*.golden")
	require.NoError(t, err)
	assert.Len(t, written, len(stories), "a transcript without a story")
}
