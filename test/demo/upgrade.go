package main

import (
	"context"
	"fmt"
	"time"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/stage"
)

const (
	database = "glance"
	// tagBeyond is trixie once more: the demo needs an image to begin a second upgrade with, and aborts it.
	tagBeyond = "next"
	// turnsPerSecond is how often the clients create an image; each turn is four requests.
	turnsPerSecond = 3
	walkPatience   = 20 * time.Minute
)

func (d *demo) images() subject { return subject{d.stage, d.glance.Key(), d.traffic} }

func (d *demo) patch(ctx context.Context, release, tag string) error {
	_, err := d.kubectl(ctx, "", "-n", d.glance.Namespace, "patch", "glance", d.glance.Name, "--type=merge", "-p", stage.Patch(release, tag))
	return err
}

// upgrade walks to the next release, and counts what that cost.
func (d *demo) upgrade(ctx context.Context) error {
	d.headline(fmt.Sprintf("The upgrade: %s → %s", stage.ReleaseBefore, stage.ReleaseAfter),
		"Image and release are bumped in one edit. The schema is expanded and migrated while the old pods serve, the pods",
		"roll one by one, and only when no old pod is left is the schema contracted.")
	mark, err := d.stage.Mark()
	if err != nil {
		return err
	}
	timeline, err := d.film(ctx, d.images())
	if err != nil {
		return err
	}
	defer timeline.end()
	if err := d.patch(ctx, stage.ReleaseAfter, stage.TagAfter); err != nil {
		return err
	}
	_, err = timeline.film.Until(ctx, "the upgrade to be complete", walkPatience, func(o stage.Object) bool {
		return o.Record().InstalledRelease == stage.ReleaseAfter && o.Record().UpgradePhase == "" && stage.Ready(o)
	})
	if err != nil {
		return err
	}
	d.results.spans = timeline.film.Spans()
	if d.results.headsAfter, err = d.stage.Heads(ctx, database); err != nil {
		return err
	}
	if err := d.stage.Await(ctx, "the sync that follows an upgrade", walkPatience,
		d.stage.SyncedBy(d.glance.Key(), stage.Glances.Image(stage.TagAfter))); err != nil {
		return err
	}
	d.settle()
	calls, err := d.stage.ControllerCalls(mark, d.glance.Namespace)
	if err != nil {
		return err
	}
	d.results.upgrade = stage.Count(calls, timeline.film.Moves())
	if _, err := d.kubectl(ctx, "", "-n", d.glance.Namespace, "get", "glance", d.glance.Name); err != nil {
		return err
	}
	g, err := d.stage.Get(ctx, d.glance.Key())
	if err != nil {
		return err
	}
	d.results.installed = g.Record().InstalledRelease
	return nil
}

// abort begins the upgrade after the next and takes it back while its first Job runs.
func (d *demo) abort(ctx context.Context) error {
	d.headline(fmt.Sprintf("An upgrade that is aborted: %s → %s and back", stage.ReleaseAfter, stage.ReleaseBeyond),
		"Release and image are set back in one edit while the walk is under way (the image is trixie's under another tag).")
	if err := d.stage.Tag(ctx, stage.TagAfter, tagBeyond); err != nil {
		return err
	}
	timeline, err := d.film(ctx, d.images())
	if err != nil {
		return err
	}
	defer timeline.end()
	if err := d.patch(ctx, stage.ReleaseBeyond, tagBeyond); err != nil {
		return err
	}
	if _, err := timeline.film.Until(ctx, "the second upgrade to begin", time.Minute, func(o stage.Object) bool {
		return o.Record().TargetRelease == stage.ReleaseBeyond
	}); err != nil {
		return err
	}
	if err := d.stage.Await(ctx, "its first Job to run", time.Minute, func(ctx context.Context) (bool, string, error) {
		job, err := d.stage.Job(ctx, d.glance.Key(), upgrade.Expand)
		if err != nil || job == nil || job.Spec.Template.Spec.Containers[0].Image != stage.Glances.Image(tagBeyond) {
			return false, "no Job yet", nil
		}
		return job.Status.Active > 0, "no pod yet", nil
	}); err != nil {
		return err
	}
	if err := d.patch(ctx, stage.ReleaseAfter, stage.TagAfter); err != nil {
		return err
	}
	if _, err := timeline.film.Until(ctx, "the upgrade to be aborted and all to be Ready", walkPatience, func(o stage.Object) bool {
		return o.Record().AbortedImage == stage.Glances.Image(tagBeyond) && o.Record().UpgradePhase == "" && stage.Ready(o)
	}); err != nil {
		return err
	}
	d.settle()
	events, err := d.stage.Events(ctx, d.glance.Key())
	if err != nil {
		return err
	}
	for _, event := range events {
		if event.Reason == string(upgrade.UpgradeAborted) {
			d.results.aborted = event.Note
		}
	}
	_, err = d.kubectl(ctx, "", "-n", d.glance.Namespace, "get", "events", "--field-selector=involvedObject.kind=Glance",
		"--sort-by=.metadata.creationTimestamp", "-o=custom-columns=REASON:.reason,MESSAGE:.message")
	return err
}

// settle gives what is told after the last status write time to arrive.
func (d *demo) settle() { time.Sleep(2 * time.Second) }
