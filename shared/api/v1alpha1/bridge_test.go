package v1alpha1

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func TestAStatusHoldsTheTagsAndTheStateTheReleases(t *testing.T) {
	for _, c := range []struct {
		what              string
		before            ServiceStatus
		state             upgrade.State
		installed, target string
	}{
		{"a tag", ServiceStatus{}, upgrade.State{Installed: "2026.1", InstalledImage: "r:2026.1-bookworm"}, "2026.1-bookworm", ""},
		{"a tag beside a digest", ServiceStatus{}, upgrade.State{Installed: "2026.1", InstalledImage: "r:2026.1-p1@" + digest}, "2026.1-p1", ""},
		{"two tags in a walk", ServiceStatus{InstalledRelease: "2026.1-p1"}, upgrade.State{Installed: "2026.1", InstalledImage: "r:2026.1-p1", Target: "2026.2", TargetImage: "r:2026.2-trixie", Phase: upgrade.Migrating, Ahead: "2026.2"}, "2026.1-p1", "2026.2-trixie"},
		{"a digest as a build of a named release", ServiceStatus{InstalledRelease: "2026.1-p1"}, upgrade.State{Installed: "2026.1", InstalledImage: "r@" + digest}, "2026.1-p1", ""},
		{"promoted with a digest", ServiceStatus{InstalledRelease: "2026.1", TargetRelease: "2026.2-p1"}, upgrade.State{Installed: "2026.2", InstalledImage: "r@" + digest}, "2026.2-p1", ""},
		{"a digest and nothing known", ServiceStatus{}, upgrade.State{Installed: upgrade.Unnamed, InstalledImage: "r@" + digest}, digest, ""},
		{"a tag that names none", ServiceStatus{}, upgrade.State{Installed: upgrade.Unnamed, InstalledImage: "r:latest"}, "latest", ""},
		{"no image on record", ServiceStatus{}, upgrade.State{Installed: "2026.1"}, "2026.1", ""},
		{"nothing", ServiceStatus{InstalledRelease: "2026.1"}, upgrade.State{}, "", ""},
	} {
		status := c.before
		status.SetTaggedState(c.state)
		assert.Equal(t, c.installed, status.InstalledRelease, c.what)
		assert.Equal(t, c.target, status.TargetRelease, c.what)
		assert.Equal(t, c.state, status.TaggedState(), "%s: what was written is read again", c.what)
		again := status
		again.SetTaggedState(again.TaggedState())
		assert.Equal(t, status, again, "%s: writing it once more changes nothing", c.what)
	}
}

func TestARecordedTextThatIsNeitherAReleaseNorTheInstalledImageIsLeftToBeRefused(t *testing.T) {
	for installed, imageName := range map[string]string{"2026.1.0": "r:2026.1", "latest": "r:stable", "stable": "", digest: "r:stable"} {
		status := ServiceStatus{InstalledRelease: installed, InstalledImage: imageName}
		rejection := upgrade.Check(status.TaggedState(), upgrade.Desired{Release: "2026.1", Image: ImageSpec{Repository: "r", Tag: "2026.1"}.Reference(), ByTag: true})
		if assert.NotNil(t, rejection, installed) {
			assert.Equal(t, upgrade.VersionParseError, rejection.Reason)
			assert.True(t, rejection.Record)
			assert.Contains(t, rejection.Message, "the recorded installed release cannot be read")
		}
	}
}

func TestAWishOfAKeystoneIsItsTag(t *testing.T) {
	k := &Keystone{Spec: KeystoneSpec{Image: ImageSpec{Repository: "r", Tag: "2026.2-trixie"}}}
	k.Generation = 7
	k.Status.SetTaggedState(upgrade.State{Installed: "2026.1", InstalledImage: "r:2026.1"})
	assert.Equal(t, "2026.2", k.Desired().Release)
	assert.Equal(t, int64(7), k.Desired().Generation)
	k.Spec.Image = ImageSpec{Repository: "r", Digest: digest}
	assert.Equal(t, "2026.1", k.Desired().Release, "a digest alone is taken for a build of what is installed")
	k.SetState(upgrade.State{})
	assert.Equal(t, upgrade.Unnamed, k.Desired().Release)
}

func TestAStateIsReadBackFromAStatusWhole(t *testing.T) {
	state := upgrade.State{Installed: "2026.1", InstalledImage: "r:2026.1", Target: "2026.2", TargetImage: "r:2026.2", Phase: upgrade.Contracting,
		AbortedImage: "r:next", Ahead: "2026.2", Attempt: 7, ContractBegun: true}
	var named, tagged ServiceStatus
	named.SetState(state)
	assert.Equal(t, state, named.State())
	tagged.SetTaggedState(state)
	assert.Equal(t, state, tagged.TaggedState())
}
