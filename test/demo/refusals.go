package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/stage"
)

// refusal is an edit that must not get through, and the word that the answer must have.
type refusal struct {
	why   string
	patch string
	word  string
}

var refused = []refusal{
	{"a release that does not exist (two a year, .1 and .2)", stage.Patch("2026.3", stage.TagAfter), "spec.openStackRelease"},
	{"a downgrade", stage.Patch("2025.2", "older"), string(upgrade.DowngradeNotSupported)},
	{"two releases at once", stage.Patch(stage.ReleaseBeyond, stage.TagAfter), string(upgrade.UpgradePathInvalid)},
	{"an image that says it is another release", stage.Patch(stage.ReleaseAfter, "2026.1-p1"), string(upgrade.ImageReleaseMismatch)},
}

// refusals tries what could never be walked, and fails if any of it is admitted.
func (d *demo) refusals(ctx context.Context) error {
	d.headline("Edits that could never be walked are refused where they are typed",
		"Each answer says what is wrong and what would pass instead. Nothing reaches the controller.")
	before, err := d.stage.Get(ctx, d.glance.Key())
	if err != nil {
		return err
	}
	for _, r := range refused {
		args := []string{"-n", d.glance.Namespace, "patch", "glance", d.glance.Name, "--type=merge", "-p", r.patch}
		d.say("# %s", r.why)
		d.say("$ %s", stage.CommandLine(args...))
		out, err := d.stage.Kubectl(ctx, "", args...)
		if err == nil {
			return fmt.Errorf("%s was admitted: %s", r.why, out)
		}
		d.block(err.Error())
		if !strings.Contains(err.Error(), r.word) {
			return fmt.Errorf("the refusal of %s does not say %s", r.why, r.word)
		}
	}
	after, err := d.stage.Get(ctx, d.glance.Key())
	if err != nil {
		return err
	}
	if before.GetGeneration() != after.GetGeneration() {
		return fmt.Errorf("a refused edit changed the object: its generation went from %d to %d", before.GetGeneration(), after.GetGeneration())
	}
	d.results.refused = len(refused)
	return nil
}
