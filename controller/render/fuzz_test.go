package render_test

import (
	"testing"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/image"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// FuzzReadRecord notes anything on a Deployment. Whatever it is, a lost status is recovered from it only to what can be
// read, and a note is what was written.
func FuzzReadRecord(f *testing.F) {
	walk := upgrade.State{Installed: "2026.1", InstalledImage: "r:2026.1", Target: "2026.2", TargetImage: "r:2026.2", Phase: upgrade.RollingUpdate, Ahead: "2026.2", Attempt: 3}
	for _, s := range []upgrade.State{{}, {Installed: "2026.1", InstalledImage: "r:2026.1", Attempt: 1}, walk} {
		f.Add(render.Record(s))
	}
	for _, text := range []string{"", "{", "[]", "null", `{"installedRelease":7}`, `{"installedRelease":"2026.1","upgradePhase":"Expanding","upgradePhase":"Contracting","targetRelease":"2026.2"}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, readable := render.ReadRecord(text)
		if !readable {
			if s != (upgrade.State{}) {
				t.Fatalf("it cannot be read, and says %+v", s)
			}
			return
		}
		if again, readable := render.ReadRecord(render.Record(s)); !readable || again != s {
			t.Fatalf("%+v is noted, and read as %+v", s, again)
		}
		for _, done := range []bool{false, true} {
			wish := upgrade.Desired{Release: "2026.2", Image: image.Reference{Repository: "r", Tag: "2026.2"}, Generation: 1}
			got := upgrade.Decide(upgrade.State{}, wish, upgrade.Observed{Recorded: &s, RecordedDone: done, Deployment: upgrade.Deployment{Name: "images", Standing: upgrade.Current}})
			if fault := upgrade.Check(got.Next, wish); got.Serve != "" || got.Task != "" || got.Step == upgrade.Move && fault != nil && fault.Record {
				t.Fatalf("%q leads to %+v", text, got)
			}
		}
	})
}
