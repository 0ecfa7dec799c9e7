package upgrade

import (
	"fmt"
	"slices"

	"github.com/c5c3/openstack-upgrade/shared/image"
	"github.com/c5c3/openstack-upgrade/shared/release"
)

// Field is the part of the wish that a rejection is about.
type Field string

// The fields a rejection can name. Where they lie in a spec is the API's
// business.
const (
	FieldRelease Field = "release"
	FieldTag     Field = "tag"
)

// Rejection says why a wish cannot be walked, and what would be.
type Rejection struct {
	Reason  Reason
	Field   Field
	Message string
	// Remedies are the wishes that the law accepts instead, best first.
	Remedies []Remedy
	// Record is set when the fault lies in the recorded state: then every
	// change of the release is refused, and edits that leave it alone are not.
	Record bool
}

// Remedy is a wish that would be accepted, and what it is good for: "go on",
// "abort", and so on.
type Remedy struct {
	Purpose string
	Release string
	Image   image.Reference
}

// Error reads like the rule: "UpgradePathInvalid: 2026.1 → 2027.1 skips 2026.2".
func (r *Rejection) Error() string { return string(r.Reason) + ": " + r.Message }

// Check is the law: nil when the wish may be walked from the recorded state,
// otherwise the first violation. It never looks at an earlier wish, so two
// quick edits cannot add up to a skip and a revert is never a downgrade.
func Check(s State, d Desired) *Rejection {
	if all := Violations(s, d); len(all) > 0 {
		return &all[0]
	}
	return nil
}

// Violations lists everything that is wrong with the wish, most important
// first, so that one answer can say it all.
func Violations(s State, d Desired) []Rejection {
	if fault := recordFault(s); fault != "" {
		return []Rejection{{Reason: VersionParseError, Field: FieldRelease, Record: true,
			Message: fmt.Sprintf("%s; %s → %s cannot be judged: repair the status first", fault, shown(s.Installed), shown(d.Release))}}
	}
	if s.Walking() && d.Release == Unknown {
		return []Rejection{*targetChanged(s, d, FieldTag, fmt.Sprintf("image %s names no release, so it cannot be told to which of the two it belongs", d.Image))}
	}
	wanted, err := release.Parse(d.Release)
	if err != nil && !unnamed(s, d) {
		return withWaysOut(s, d, []Rejection{{Reason: VersionParseError, Field: FieldRelease, Message: unreadable(s, err), Remedies: readable(s, d)}})
	}
	var found []Rejection
	if path := checkPath(s, d, wanted); path != nil {
		found = append(found, *path)
	}
	if lockstep := checkLockstep(s, d, wanted); lockstep != nil {
		found = append(found, *lockstep)
	}
	return withWaysOut(s, d, found)
}

// withWaysOut offers what is left where the schema is ahead of the installed
// release, whatever else is wrong.
func withWaysOut(s State, d Desired, found []Rejection) []Rejection {
	if s.Ahead == "" || s.Walking() {
		return found
	}
	for i := range found {
		found[i].Remedies = slices.DeleteFunc(forwardOrStay(s, d), func(r Remedy) bool {
			return !lawful(s, r) || r.Release == d.Release && r.Image == d.Image
		})
	}
	return found
}

// Aborts tells whether the wish takes an active walk back to the installed
// release.
func Aborts(s State, d Desired) bool {
	return s.Walking() && equal(s.Installed, d.Release)
}

// AbortsContract tells whether the wish takes back a walk whose contract has
// begun: columns that the installed release reads may be gone.
func AbortsContract(s State, d Desired) bool { return Aborts(s, d) && s.contracting() }

// unnamed tells whether the wish is for an image that names no release where
// none has been named before.
func unnamed(s State, d Desired) bool {
	return d.Release == Unnamed && (s.Installed == "" || s.Installed == Unnamed)
}

// recordFault says what cannot be read in the recorded state, empty when all
// can.
func recordFault(s State) string {
	if s.Walking() {
		if _, known := progressOf[s.Phase]; !known {
			return fmt.Sprintf("the recorded phase %q is none of %s, %s, %s, %s", string(s.Phase), Expanding, Migrating, RollingUpdate, Contracting)
		}
		if s.Target == "" || s.TargetImage == "" {
			return fmt.Sprintf("phase %s is recorded without a target", s.Phase)
		}
		if s.Installed == "" {
			return fmt.Sprintf("phase %s is recorded without an installed release", s.Phase)
		}
	} else if s.Target != "" {
		return fmt.Sprintf("target release %q is recorded without a phase", s.Target)
	}
	if s.Installed == "" && s.Ahead != "" {
		return fmt.Sprintf("expanded release %q is recorded without an installed release", s.Ahead)
	}
	for _, recorded := range []struct{ name, text string }{{"installed", s.Installed}, {"target", s.Target}, {"expanded", s.Ahead}} {
		if recorded.text == "" || (s.Installed == Unnamed && recorded.text == Unnamed) {
			continue
		}
		if _, err := release.Parse(recorded.text); err != nil {
			return fmt.Sprintf("the recorded %s release cannot be read: %v", recorded.name, err)
		}
	}
	if s.Walking() && !follows(s.Installed, s.Target) {
		return fmt.Sprintf("the recorded target release %s does not follow the installed release %s", s.Target, s.Installed)
	}
	for _, recorded := range []struct{ name, text, image string }{{"installed", s.Installed, s.InstalledImage}, {"target", s.Target, s.TargetImage}} {
		ref, err := image.Parse(recorded.image)
		if named, tells := ref.Release(); err == nil && tells && recorded.text != "" && !equal(recorded.text, named.String()) {
			return fmt.Sprintf("the recorded %s release is %s, but the recorded image %s names %s", recorded.name, recorded.text, recorded.image, named)
		}
	}
	return ""
}

// unreadable says what is wrong with a wished release, and what is installed.
func unreadable(s State, err error) string {
	if s.Installed == "" {
		return err.Error()
	}
	return fmt.Sprintf("%v; %s is installed", err, s.Installed)
}

// shown is a release, or the text that stands in its place, quoted and cut.
func shown(text string) string {
	if _, err := release.Parse(text); err != nil {
		return fmt.Sprintf("%.40q", text)
	}
	return text
}

// checkPath judges the step from the recorded release to the wanted one.
func checkPath(s State, d Desired, wanted release.Release) *Rejection {
	if s.Installed == "" {
		return nil
	}
	if s.Walking() {
		if equal(s.Target, d.Release) || equal(s.Installed, d.Release) {
			return nil
		}
		return targetChanged(s, d, FieldRelease, d.Release+" is neither of the two")
	}
	if s.Ahead != "" {
		if ahead := checkAhead(s, d); ahead != nil {
			return ahead
		}
	}
	installed, err := release.Parse(s.Installed)
	if err != nil || equal(s.Installed, d.Release) {
		return nil // whatever follows an unnamed release is trusted to
	}
	switch distance := release.Distance(installed, wanted); {
	case distance < 0:
		return &Rejection{Reason: DowngradeNotSupported, Field: FieldRelease,
			Message:  fmt.Sprintf("%s → %s goes backwards, and the schema is already at %s: restore a backup, or roll forward", s.Installed, d.Release, s.Installed),
			Remedies: offered(Remedy{Purpose: "stay on " + s.Installed, Release: s.Installed, Image: pinned(s, d, s.InstalledImage, s.Installed)})}
	case distance > 1:
		step := installed.Next().String()
		return &Rejection{Reason: UpgradePathInvalid, Field: FieldRelease,
			Message:  fmt.Sprintf("%s → %s skips %s; upgrade one release at a time", s.Installed, d.Release, step),
			Remedies: []Remedy{{Purpose: "take the next step, " + step + assumed(s), Release: step, Image: named(d, step)}}}
	}
	return nil
}

func targetChanged(s State, d Desired, field Field, what string) *Rejection {
	return &Rejection{Reason: UpgradeTargetChanged, Field: field,
		Message: fmt.Sprintf("the upgrade %s → %s is in phase %s and %s; finish it or abort it first", s.Installed, s.Target, s.Phase, what),
		Remedies: offered(
			Remedy{Purpose: "go on to " + s.Target, Release: s.Target, Image: pinned(s, d, s.TargetImage, s.Target)},
			Remedy{Purpose: "abort, back to " + s.Installed, Release: s.Installed, Image: pinned(s, d, s.InstalledImage, s.Installed)},
		)}
}

// checkAhead judges a wish for a schema that an aborted walk has expanded, and
// that the installed release cannot read: it goes on to that release, or stays
// as it is. Another build of the installed release could not be synced.
func checkAhead(s State, d Desired) *Rejection {
	stays := equal(s.Installed, d.Release)
	if equal(s.Ahead, d.Release) || (stays && (s.InstalledImage == "" || d.Image.String() == s.InstalledImage)) {
		return nil
	}
	then := "go forward to " + s.Ahead + " first"
	if !follows(s.Ahead, d.Release) {
		then = "only " + s.Ahead + " can follow"
	}
	rejection := &Rejection{Reason: UpgradePathInvalid, Field: FieldRelease,
		Message: fmt.Sprintf("%s → %s is not possible, the database may have been expanded for %s by an upgrade that was aborted: %s", s.Installed, d.Release, s.Ahead, then)}
	if stays {
		rejection.Reason, rejection.Field = DowngradeNotSupported, FieldTag
		rejection.Message = fmt.Sprintf("the database may have been expanded for %s by an upgrade that was aborted, and then no build of %s can be synced with it: go forward, or restore a backup", s.Ahead, inWords(s.Installed, s.InstalledImage))
	}
	return rejection
}

// checkLockstep judges whether image and release are bumped together.
func checkLockstep(s State, d Desired, wanted release.Release) *Rejection {
	message := outOfStep(s, d, wanted)
	if message == "" {
		return nil
	}
	return &Rejection{Reason: ImageReleaseMismatch, Field: FieldTag, Message: message, Remedies: inStep(s, d)}
}

// outOfStep says how image and release contradict each other, empty when they
// do not. A tag that names a release must name the wanted one, except that an
// abort may leave it at the target. What no tag can tell is compared with the
// images on record; a digest counts there even when the tag beside it fits.
func outOfStep(s State, d Desired, wanted release.Release) string {
	if d.Image.Tag == "" && d.Image.Digest == "" {
		return fmt.Sprintf("the image has neither a tag nor a digest, the release asked for is %s", d.Release)
	}
	aborts := Aborts(s, d)
	tagged, comparable := d.Image.Release()
	if comparable && tagged != wanted && !(aborts && equal(s.Target, tagged.String())) {
		return fmt.Sprintf("tag %q names release %s, the release asked for is %s; change both together", d.Image.Tag, tagged, d.Release)
	}
	if s.Installed == "" || aborts || (comparable && d.Image.Digest == "") {
		return ""
	}
	same := equal(s.Installed, d.Release)
	stays := same && !runs(s.InstalledImage, d.Image) // what is installed is a build of itself, whatever else is on record
	steps := !same && (equal(s.Target, d.Release) || (!s.Walking() && follows(s.Installed, d.Release)))
	switch {
	case steps && !names(s, d) && runs(s.InstalledImage, d.Image):
		return fmt.Sprintf("%s → %s with the image unchanged (%s): nothing would migrate; change both together", s.Installed, d.Release, d.Image)
	case stays && d.ByTag && runs(s.AbortedImage, d.Image):
		return fmt.Sprintf("image %s is on record with another release, it is not a build of %s; set the image back to %s", d.Image, inWords(s.Installed, "the installed image"), orUnknown(s.InstalledImage))
	case stays && runs(s.AbortedImage, d.Image):
		return fmt.Sprintf("image %s was the target of the upgrade that was aborted, it is not a build of %s; set the image back to %s", d.Image, s.Installed, orUnknown(s.InstalledImage))
	}
	return ""
}

// runs tells whether a recorded image and a wished one are the same.
func runs(recorded string, wished image.Reference) bool {
	ref, err := image.Parse(recorded)
	return err == nil && ref.Same(wished)
}

// follows tells whether a release is the next one. What an unnamed release is
// cannot be known; the phases do no harm when it is the same, and fail before
// they change anything when it is a later one.
func follows(from, to string) bool {
	left, errLeft := release.Parse(from)
	right, errRight := release.Parse(to)
	if from == Unnamed {
		return errRight == nil
	}
	return errLeft == nil && errRight == nil && release.Distance(left, right) == 1
}
