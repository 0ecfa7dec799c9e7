package v1alpha1

import (
	"testing"
	"unicode/utf8"

	"github.com/c5c3/openstack-upgrade/shared/image"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// FuzzStatus writes anything into a status, as a person or a restored backup may. Whatever it is, it is read the same way
// each time, a step that is decided on it has words, and what is recorded next can be read.
func FuzzStatus(f *testing.F) {
	f.Add("2026.1", "r:2026.1", "", "", "", "", "2026.2")
	f.Add("2026.1-p1", "r:2026.1-p1", "2026.2", "r:2026.2@sha256:b", "Migrating", "2026.2", "2026.2-p1")
	f.Add("latest", "r:latest", "2026.2", "r:2026.2", "Contracting", "", "stable")
	f.Add("sha256:a", "r@sha256:a", "", "", "", "2026.2", "2026.2")
	f.Add("", "", "2026.2", "r:2026.2", "Expanding", "", "2026.2")
	f.Add("an unknown release", "r:stable", "an unnamed release", ":", "RollingUpdate", "26.2", "")
	f.Fuzz(func(t *testing.T, installed, installedImage, target, targetImage, phase, expanded, tag string) {
		for _, text := range []string{installed, installedImage, target, targetImage, phase, expanded, tag} {
			if !utf8.ValidString(text) {
				return // no JSON holds it
			}
		}
		status := ServiceStatus{InstalledRelease: installed, InstalledImage: installedImage, TargetRelease: target, TargetImage: targetImage, UpgradePhase: phase, ExpandedRelease: expanded}
		named, tagged := status.State(), status.TaggedState()
		rewritten := status
		rewritten.SetTaggedState(tagged)
		if got := rewritten.TaggedState(); got != tagged && upgrade.Check(tagged, upgrade.Desired{Release: tagged.Installed}) == nil {
			t.Fatalf("it is read as %+v, recorded, and then read as %+v", tagged, got)
		}
		ref := image.Reference{Repository: "r", Tag: tag}
		byTag := upgrade.Tagged(tagged, ref, 1)
		byTag.Facts.ReadsOwnSchemaOnly = true
		for state, wish := range map[upgrade.State]upgrade.Desired{named: {Release: tag, Image: ref, Generation: 1}, tagged: byTag} {
			noted := state
			for _, o := range []upgrade.Observed{{}, {Confirmed: true, Recorded: &noted, Deployment: upgrade.Deployment{Standing: upgrade.Current, Image: installedImage}}} {
				got := upgrade.Decide(state, wish, o)
				if got.Database.Message == "" || got.Database.Reason == "" || !utf8.ValidString(got.Database.Message) {
					t.Fatalf("no words for %+v: %+v", state, got)
				}
				if fault := upgrade.Check(got.Next, wish); got.Step == upgrade.Move && fault != nil && fault.Record {
					t.Fatalf("%+v moves to %+v, which cannot be read: %v", state, got.Next, fault)
				}
				upgrade.Advise(state, nil, wish)
			}
		}
	})
}
