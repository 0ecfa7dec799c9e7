package upgrade

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/c5c3/openstack-upgrade/shared/image"
	"github.com/c5c3/openstack-upgrade/shared/release"
)

// What cannot be read is equal to nothing, itself included, follows nothing
// and goes before nothing: a comparison must never pass because both sides
// failed alike.
func TestWhatCannotBeReadComparesAsTrueWithNothing(t *testing.T) {
	texts := []string{"2026.1", "2026.2", "2027.1", "0000.1", "9999.2",
		"", "2026.3", "26.1", " 2026.1", "2026.1 ", "2026.1\n", "2026.01", "v2026.1", "2026.1.0", "2026.1-p1", "２０２６.１", "latest", "2026.1\x00", strings.Repeat("2026.1", 2000)}
	readable := func(text string) bool { _, err := release.Parse(text); return err == nil }
	for _, a := range texts {
		for _, b := range texts {
			both := readable(a) && readable(b)
			what := fmt.Sprintf("%.40q and %.40q", a, b)
			assert.Equal(t, both && a == b, equal(a, b), "equal: %s", what)
			assert.Equal(t, equal(a, b), equal(b, a), "either way round: %s", what)
			if !both {
				assert.False(t, follows(a, b), "follows: %s", what)
				assert.False(t, backwards(a, b), "backwards: %s", what)
				assert.False(t, Aborts(State{Installed: a, Target: "2026.2", Phase: Expanding}, Desired{Release: b}), "aborts: %s", what)
			}
		}
	}
}

func TestARecordedImageThatCannotBeReadIsTheSameAsNone(t *testing.T) {
	for _, recorded := range []string{"", ":", "@", ":2026.1", "r:", "r@", "r@nothing", "r:a b", "a b:c", "\n", strings.Repeat(":", 10_000)} {
		for _, wished := range []image.Reference{{}, {Repository: recorded}, {Repository: "r", Tag: "2026.1"}, {Repository: "r", Digest: "nothing"}, {Tag: recorded}, {Digest: recorded}} {
			assert.False(t, runs(recorded, wished), "%.20q and %.60v", recorded, wished)
		}
	}
}

// No record that cannot be read lets a change of the release through.
func TestALawThatCannotReadTheRecordRefusesEveryChange(t *testing.T) {
	unreadable := []string{"2026.3", "latest", " ", "2026.1\n", "２０２６.１"}
	for _, text := range unreadable {
		for _, s := range []State{
			{Installed: text, InstalledImage: "r:2026.1"},
			{Installed: "2026.1", InstalledImage: "r:2026.1", Target: text, TargetImage: "r:2026.2", Phase: Migrating},
			{Installed: text, InstalledImage: "r:2026.1", Target: text, TargetImage: "r:2026.1", Phase: Migrating},
		} {
			for _, wish := range []string{"2026.1", "2026.2", text} {
				assert.NotNil(t, Check(s, Desired{Release: wish, Image: image.Reference{Repository: "r", Tag: "latest"}}), "%+v → %q", s, wish)
			}
		}
	}
}
