package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/c5c3/openstack-upgrade/test/stage"
	"github.com/c5c3/openstack-upgrade/test/traffic/ledger"
)

const (
	// fewestTokens is how many requests an Identity API has to answer in the course of its upgrade.
	fewestTokens = 300
	// tokensPerSecond is how often the clients get a token; each turn is five requests.
	tokensPerSecond = 2
)

// walked is what came of Keystone's upgrade.
type walked struct {
	installed   string
	headsBefore []string
	headsAfter  []string
	spans       []stage.Span
	requests    ledger.Summary
}

// keystone shows the other service: from a fresh install, with its first user, to the next release.
func (d *demo) keystone(ctx context.Context) error {
	k := stage.Keystone{Namespace: "identity", Name: "identity", Tag: stage.KeystoneBefore, Replicas: 2}
	d.headline(fmt.Sprintf("A Keystone: %s → %s", stage.KeystoneBefore, stage.KeystoneAfter),
		"The same machine walks another service. Its image tag names the release: bookworm's Keystone 22.0 is called 2026.1-bookworm",
		"here, trixie's 27.0 is called 2026.2-trixie. Clients get tokens for a password, have them and older ones validated, and",
		"create projects with them.")
	if err := d.stage.TagKeystone(ctx); err != nil {
		return err
	}
	d.say("make namespace, database, keys and Secrets anew")
	if err := d.stage.Namespace(ctx, k.Namespace); err != nil {
		return err
	}
	password, err := d.stage.PrepareKeystone(ctx, k.Namespace, k.Namespace)
	if err != nil {
		return err
	}
	d.block(k.Manifest())
	if _, err := d.kubectl(ctx, k.Manifest(), "apply", "-f", "-"); err != nil {
		return err
	}
	d.walked = &walked{}
	of := subject{stage: d.stage.Of(stage.Keystones), key: k.Key()}
	if err := of.stage.AwaitReady(ctx, of.key, 10*time.Minute); err != nil {
		return err
	}
	object, err := of.stage.Get(ctx, of.key)
	if err != nil {
		return err
	}
	if of.traffic, err = of.stage.StartIdentityTraffic(ctx, "tokens", object.Record().Endpoint, password, tokensPerSecond); err != nil {
		return err
	}
	if err := d.walkKeystone(ctx, of); err != nil {
		return err
	}
	_, err = d.kubectl(ctx, "", "-n", k.Namespace, "get", "keystone", k.Name)
	return err
}

func (d *demo) walkKeystone(ctx context.Context, of subject) (err error) {
	result := d.walked
	if result.headsBefore, err = d.stage.Heads(ctx, of.key.Namespace); err != nil {
		return err
	}
	timeline, err := d.film(ctx, of)
	if err != nil {
		return err
	}
	defer timeline.end()
	if _, err := d.kubectl(ctx, "", "-n", of.key.Namespace, "patch", "keystone", of.key.Name, "--type=merge", "-p", stage.PatchTag(stage.KeystoneAfter)); err != nil {
		return err
	}
	last, err := timeline.film.Until(ctx, "the upgrade to be complete", walkPatience, func(o stage.Object) bool {
		return o.Record().InstalledRelease == stage.KeystoneAfter && o.Record().UpgradePhase == "" && stage.Ready(o)
	})
	if err != nil {
		return err
	}
	result.installed, result.spans = last.Object.Record().InstalledRelease, timeline.film.Spans()
	if result.headsAfter, err = d.stage.Heads(ctx, of.key.Namespace); err != nil {
		return err
	}
	if err := d.stage.Await(ctx, "the clients of Keystone to have asked often enough", 5*time.Minute, func(ctx context.Context) (bool, string, error) {
		now, err := of.traffic.Now(ctx)
		return err == nil && now.Sent >= fewestTokens, fmt.Sprintf("%d sent, %d failed", now.Sent, now.Failed), nil
	}); err != nil {
		return err
	}
	result.requests, err = of.traffic.Stop(ctx)
	return err
}

// concludeKeystone is the same for Keystone.
func (d *demo) concludeKeystone(context.Context) error {
	d.headline("What was counted of Keystone")
	return d.judge(d.walked.lines(), d.walked.wrong())
}

func (w walked) lines() []string {
	lines := []string{
		row("Keystone", "%s → %s installed", stage.KeystoneBefore, w.installed),
		row("database heads", "%s → %s", strings.Join(w.headsBefore, " "), strings.Join(w.headsAfter, " ")),
		row("phases", "%s", durations(w.spans)),
		"", w.requests.String(),
	}
	return append(lines, w.requests.Lines()...)
}

func (w walked) wrong() []string {
	var wrong []string
	must := func(holds bool, format string, args ...any) {
		if !holds {
			wrong = append(wrong, "Keystone: "+fmt.Sprintf(format, args...))
		}
	}
	must(w.installed == stage.KeystoneAfter, "installed is %q, not %s", w.installed, stage.KeystoneAfter)
	must(slices.Equal(w.headsBefore, stage.Keystones.HeadsBefore), "the heads before were %v, not %v", w.headsBefore, stage.Keystones.HeadsBefore)
	must(slices.Equal(w.headsAfter, stage.Keystones.HeadsAfter), "the heads after are %v, not %v", w.headsAfter, stage.Keystones.HeadsAfter)
	must(len(w.spans) == 4, "%d phases were seen, not 4", len(w.spans))
	must(w.requests.Failed == 0, "%d requests failed", w.requests.Failed)
	must(w.requests.Lost == 0, "%d tokens and projects were lost", w.requests.Lost)
	must(w.requests.Sent >= fewestTokens, "only %d requests were sent, fewer than %d", w.requests.Sent, fewestTokens)
	return wrong
}
