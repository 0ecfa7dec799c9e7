package upgrade

import (
	"fmt"

	"github.com/c5c3/openstack-upgrade/shared/release"
)

// Advise lists what a person should know about a wish that the law accepts.
// before is the wish it replaces, nil when the object is new.
func Advise(s State, before *Desired, d Desired) []string {
	var advice []string
	say := func(format string, args ...any) { advice = append(advice, fmt.Sprintf(format, args...)) }

	if s.Installed == "" && before != nil && backwards(before.Release, d.Release) {
		say("%s → %s moves backwards before anything is installed; if the first sync has already run, the older release may not read its schema", before.Release, d.Release)
	}
	tagged, comparable := d.Image.Release()
	switch {
	case Aborts(s, d):
		if AbortsContract(s, d) {
			say("abort after contract has begun: it may already have dropped columns that %s reads. If pods of %s fail afterwards, go forward to %s again or restore a backup", s.Installed, s.Installed, s.Target)
		}
		if (comparable && equal(s.Target, tagged.String())) || runs(s.TargetImage, d.Image) {
			say("the abort keeps the pods on %s, but the image is still %s: set it back too, the database sync waits for that", orUnknown(s.InstalledImage), d.Image)
		}
	case s.Walking() && s.TargetImage != d.Image.String():
		say("the upgrade %s → %s re-enters at %s with %s", s.Installed, s.Target, Expanding, d.Image)
	}
	if comparable || Aborts(s, d) {
		return advice
	}
	if s.Installed != "" && !s.Walking() && equal(s.Installed, d.Release) {
		if s.InstalledImage != d.Image.String() {
			say("image %s names no release: if it is a newer release than %s, bump the release with it, otherwise its schema changes run in one pass", d.Image, s.Installed)
		}
		return advice
	}
	if before == nil || before.Image != d.Image || before.Release != d.Release {
		say("image %s names no release to compare with %s; it is trusted to be one", d.Image, d.Release)
	}
	return advice
}

func backwards(from, to string) bool {
	left, errLeft := release.Parse(from)
	right, errRight := release.Parse(to)
	return errLeft == nil && errRight == nil && release.Distance(left, right) < 0
}

func orUnknown(text string) string {
	if text == "" {
		return "the installed image"
	}
	return text
}
