package upgrade

import (
	"fmt"

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
			Message: fault + "; no release can be walked to from there: repair the status first"}}
	}
	wanted, err := release.Parse(d.Release)
	if err != nil {
		return []Rejection{{Reason: VersionParseError, Field: FieldRelease, Message: err.Error(), Remedies: readable(s, d)}}
	}
	var found []Rejection
	if path := checkPath(s, d, wanted); path != nil {
		found = append(found, *path)
	}
	if lockstep := checkLockstep(s, d, wanted); lockstep != nil {
		found = append(found, *lockstep)
	}
	return found
}

// Aborts tells whether the wish takes an active walk back to the installed
// release.
func Aborts(s State, d Desired) bool {
	return s.Walking() && equal(s.Installed, d.Release)
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
	for _, recorded := range []struct{ name, text string }{{"installed", s.Installed}, {"target", s.Target}} {
		if recorded.text == "" {
			continue
		}
		if _, err := release.Parse(recorded.text); err != nil {
			return fmt.Sprintf("the recorded %s release cannot be read: %v", recorded.name, err)
		}
	}
	return ""
}

// checkPath judges the step from the recorded release to the wanted one.
func checkPath(s State, d Desired, wanted release.Release) *Rejection {
	if s.Installed == "" {
		return nil
	}
	installed, err := release.Parse(s.Installed)
	if err != nil {
		return nil // recordFault has said so
	}
	if s.Walking() {
		if equal(s.Target, d.Release) || wanted == installed {
			return nil
		}
		return &Rejection{Reason: UpgradeTargetChanged, Field: FieldRelease,
			Message: fmt.Sprintf("the upgrade %s → %s is in phase %s and %s is neither of the two; finish it or abort it first", s.Installed, s.Target, s.Phase, d.Release),
			Remedies: []Remedy{
				{Purpose: "go on to " + s.Target, Release: s.Target, Image: pinned(s.TargetImage, d, s.Target)},
				{Purpose: "abort, back to " + s.Installed, Release: s.Installed, Image: pinned(s.InstalledImage, d, s.Installed)},
			}}
	}
	switch distance := release.Distance(installed, wanted); {
	case distance < 0:
		return &Rejection{Reason: DowngradeNotSupported, Field: FieldRelease,
			Message:  fmt.Sprintf("%s → %s goes backwards, and contract has already run for %s: restore a backup, or roll forward", s.Installed, d.Release, s.Installed),
			Remedies: []Remedy{{Purpose: "stay on " + s.Installed, Release: s.Installed, Image: pinned(s.InstalledImage, d, s.Installed)}}}
	case distance > 1:
		step := installed.Next().String()
		return &Rejection{Reason: UpgradePathInvalid, Field: FieldRelease,
			Message:  fmt.Sprintf("%s → %s skips %s; upgrade one release at a time", s.Installed, d.Release, step),
			Remedies: []Remedy{{Purpose: "take the next step, " + step, Release: step, Image: named(d, step)}}}
	}
	return nil
}

// checkLockstep judges whether image and release are bumped together.
func checkLockstep(s State, d Desired, wanted release.Release) *Rejection {
	if d.Image.Tag == "" && d.Image.Digest == "" {
		return mismatch(d, "the image has neither a tag nor a digest", Remedy{Purpose: "name the image", Release: d.Release, Image: named(d, d.Release)})
	}
	if tagged, ok := d.Image.Release(); ok {
		if tagged == wanted || (Aborts(s, d) && equal(s.Target, tagged.String())) {
			return nil
		}
		return mismatch(d, fmt.Sprintf("tag %q names release %s, the release asked for is %s; change both together", d.Image.Tag, tagged, d.Release), together(s, d, tagged))
	}
	if s.Walking() || s.Installed == "" {
		return nil
	}
	same := equal(s.Installed, d.Release)
	installed, err := image.Parse(s.InstalledImage)
	switch {
	case !same && err == nil && installed.Same(d.Image):
		return mismatch(d, fmt.Sprintf("%s → %s with the image unchanged (%s): nothing would migrate; change both together", s.Installed, d.Release, d.Image),
			Remedy{Purpose: "bump the image too", Release: d.Release, Image: named(d, d.Release)})
	case same && s.AbortedImage != "" && s.AbortedImage == d.Image.String():
		return mismatch(d, fmt.Sprintf("image %s was the target of the upgrade that was aborted, it is not a build of %s", d.Image, s.Installed),
			Remedy{Purpose: "go back to the installed image", Release: s.Installed, Image: pinned(s.InstalledImage, d, s.Installed)})
	}
	return nil
}

func mismatch(_ Desired, message string, remedies ...Remedy) *Rejection {
	return &Rejection{Reason: ImageReleaseMismatch, Field: FieldTag, Message: message, Remedies: remedies}
}

// together finds the lockstep wish that is closest to what was asked: the
// release as asked with a tag to match if the law allows that step, otherwise
// the release that the tag names, otherwise what is installed.
func together(s State, d Desired, tagged release.Release) Remedy {
	for _, text := range []string{d.Release, tagged.String()} {
		wish := Desired{Release: text, Image: named(d, text)}
		if Check(s, wish) == nil {
			return Remedy{Purpose: "bump both to " + text, Release: text, Image: wish.Image}
		}
	}
	return Remedy{Purpose: "stay on " + s.Installed, Release: s.Installed, Image: pinned(s.InstalledImage, d, s.Installed)}
}

// readable is what to type instead of a release that cannot be read.
func readable(s State, d Desired) []Remedy {
	switch {
	case s.Walking():
		return []Remedy{{Purpose: "go on to " + s.Target, Release: s.Target, Image: pinned(s.TargetImage, d, s.Target)}}
	case s.Installed != "":
		return []Remedy{{Purpose: "stay on " + s.Installed, Release: s.Installed, Image: pinned(s.InstalledImage, d, s.Installed)}}
	}
	if tagged, ok := d.Image.Release(); ok {
		return []Remedy{{Purpose: "ask for the release that the tag names", Release: tagged.String(), Image: d.Image}}
	}
	return nil
}

// named is the wished image with a tag that names the release.
func named(d Desired, releaseName string) image.Reference {
	return image.Reference{Repository: d.Image.Repository, Tag: releaseName}
}

// pinned is a recorded image, or one named after the release when the record
// holds none.
func pinned(recorded string, d Desired, releaseName string) image.Reference {
	if ref, err := image.Parse(recorded); err == nil && (ref.Tag != "" || ref.Digest != "") {
		return ref
	}
	return named(d, releaseName)
}
