package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/c5c3/openstack-upgrade/test/stage"
	"github.com/c5c3/openstack-upgrade/test/traffic/ledger"
)

// What must come out.
const (
	fewestRequests = 1000
	coreWrites     = 14
	mostWrites     = 20
	mostReads      = 5
)

// results is what the acts found out.
type results struct {
	installed   string
	headsBefore []string
	headsAfter  []string
	spans       []stage.Span
	upgrade     stage.Tally
	refused     int
	aborted     string
	requests    ledger.Summary
}

// conclude lets Glance's clients come to their end, prints what was counted, and fails if any of it is wrong.
func (d *demo) conclude(ctx context.Context) error {
	d.headline("What was counted of Glance")
	if err := d.stage.Await(ctx, "the clients to have asked often enough", 5*time.Minute, func(ctx context.Context) (bool, string, error) {
		now, err := d.traffic.Now(ctx)
		return err == nil && now.Sent >= fewestRequests, fmt.Sprintf("%d sent, %d failed", now.Sent, now.Failed), nil
	}); err != nil {
		return err
	}
	summary, err := d.traffic.Stop(ctx)
	if err != nil {
		return err
	}
	d.results.requests = summary
	return d.judge(d.results.lines(), d.results.wrong())
}

// judge prints what was counted, and fails if any of it is wrong.
func (d *demo) judge(counted, wrong []string) error {
	for _, line := range counted {
		d.say("  %s", line)
	}
	if len(wrong) == 0 {
		return nil
	}
	d.say("")
	for _, line := range wrong {
		d.say("  WRONG: %s", line)
	}
	return errors.New("not everything is as promised: " + strings.Join(wrong, "; "))
}

func (r results) lines() []string {
	lines := []string{
		row("release", "%s → %s installed", stage.ReleaseBefore, r.installed),
		row("database heads", "%s → %s", strings.Join(r.headsBefore, " "), strings.Join(r.headsAfter, " ")),
		row("phases", "%s", durations(r.spans)),
		row("refused edits", "%d", r.refused),
		row("aborted", "%s", r.aborted),
	}
	for i, line := range r.upgrade.Lines() {
		lines = append(lines, row([]string{"writes", ""}[min(i, 1)], "%s", line))
	}
	lines = append(lines, "", r.requests.String())
	return append(lines, r.requests.Lines()...)
}

func row(name, format string, args ...any) string {
	return fmt.Sprintf("%-18s %s", name, fmt.Sprintf(format, args...))
}

func durations(spans []stage.Span) string {
	var phases []string
	var whole time.Duration
	for _, span := range spans {
		phases = append(phases, fmt.Sprintf("%s %.1fs", span.Phase, span.Took.Seconds()))
		whole += span.Took
	}
	return fmt.Sprintf("%s; %.1fs in all", strings.Join(phases, ", "), whole.Seconds())
}

// wrong lists what is not as promised.
func (r results) wrong() []string {
	var wrong []string
	must := func(holds bool, format string, args ...any) {
		if !holds {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	must(r.installed == stage.ReleaseAfter, "installed is %q, not %s", r.installed, stage.ReleaseAfter)
	must(slices.Equal(r.headsBefore, stage.Glances.HeadsBefore), "the heads before were %v, not %v", r.headsBefore, stage.Glances.HeadsBefore)
	must(slices.Equal(r.headsAfter, stage.Glances.HeadsAfter), "the heads after are %v, not %v", r.headsAfter, stage.Glances.HeadsAfter)
	must(len(r.spans) == 4, "%d phases were seen, not 4", len(r.spans))
	must(r.aborted != "", "no event told of the abort")
	must(r.upgrade.Core() == coreWrites, "the walk took %d writes, not %d", r.upgrade.Core(), coreWrites)
	must(r.upgrade.Total() <= mostWrites, "%d writes in all, more than %d", r.upgrade.Total(), mostWrites)
	must(len(r.upgrade.Reads) <= mostReads, "%d reads past the caches, more than %d", len(r.upgrade.Reads), mostReads)
	must(r.requests.Failed == 0, "%d requests failed", r.requests.Failed)
	must(r.requests.Lost == 0, "%d images were lost", r.requests.Lost)
	must(r.requests.Sent >= fewestRequests, "only %d requests were sent, fewer than %d", r.requests.Sent, fewestRequests)
	return wrong
}
