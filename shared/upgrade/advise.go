package upgrade

import (
	"fmt"

	"github.com/c5c3/openstack-upgrade/shared/image"
	"github.com/c5c3/openstack-upgrade/shared/release"
)

// Advice is what a person should know about a wish that the law accepts.
type Advice struct {
	Reason  Reason
	Field   Field
	Message string
	// Remedy is the wish that does without this advice, nil when there is none
	// that the law accepts.
	Remedy *Remedy
}

// String reads like a rejection.
func (a Advice) String() string { return string(a.Reason) + ": " + a.Message }

// Advise lists what a person should know about a wish that the law accepts.
// before is the wish it replaces, nil when the object is new.
func Advise(s State, before *Desired, d Desired) []Advice {
	var all []Advice
	say := func(reason Reason, field Field, remedy Remedy, format string, args ...any) {
		advice := Advice{Reason: reason, Field: field, Message: fmt.Sprintf(format, args...)}
		if len(offered(remedy)) > 0 && lawful(s, remedy) && (remedy.Release != d.Release || remedy.Image != d.Image) {
			advice.Remedy = &remedy
		}
		all = append(all, advice)
	}
	if s.Installed == "" && before != nil && backwards(before.Release, d.Release) {
		say(MovesBackwards, FieldRelease, Remedy{"keep " + before.Release, before.Release, before.Image},
			"%s → %s moves backwards before anything is installed; if the first sync has already run, the older release may not read its schema", before.Release, d.Release)
	}
	tagged, comparable := d.Image.Release()
	goOn := Remedy{"go on to " + s.Target, s.Target, pinned(s, d, s.TargetImage, s.Target)}
	switch {
	case Aborts(s, d):
		if AbortsContract(s, d) {
			say(AbortWhileContracting, FieldRelease, goOn,
				"%s → %s aborts after contract has begun: it may already have dropped columns that %s reads, and then only going on or a backup helps", s.Target, s.Installed, s.Installed)
		}
		if (comparable && equal(s.Target, tagged.String())) || runs(s.TargetImage, d.Image) {
			say(ImageReleaseMismatch, FieldTag, Remedy{"set it back too", s.Installed, pinned(s, d, s.InstalledImage, s.Installed)},
				"%s → %s aborts and the pods stay with %s, but the image asked for is still that of %s: the database sync waits until it is set back", s.Target, s.Installed, called(s.InstalledImage), s.Target)
		}
		if s.Ahead != "" {
			say(DowngradeNotSupported, FieldTag, goOn, "%s → %s aborts, but the database stays expanded for %s and %s cannot sync it: the pods go on serving with %s until you go forward again or restore a backup",
				s.Target, s.Installed, s.Target, inWords(s.Installed, "the installed release"), called(s.InstalledImage))
		}
	case names(s, d):
		say(ImageReleaseUnknown, FieldTag, Remedy{}, "%s is installed and named no release so far: it is trusted to hold %s", called(s.InstalledImage), d.Release)
	case s.Installed == Unnamed && comparable && !s.Walking():
		say(ImageReleaseUnknown, FieldTag, Remedy{"stay with what is installed", s.Installed, pinned(s, d, s.InstalledImage, s.Installed)},
			"%s, which is installed, names no release: it is trusted to hold the one before %s, or %s itself", called(s.InstalledImage), d.Release, d.Release)
	case s.Walking() && s.TargetImage != d.Image.String():
		goOn.Purpose = "keep the image that it began with"
		say(UpgradeStartsOver, FieldTag, goOn, "the upgrade %s → %s starts over at %s with %s", s.Installed, s.Target, Expanding, label(d.Image))
	}
	if comparable || Aborts(s, d) {
		return all
	}
	if d.ByTag {
		if !s.Walking() && (s.Installed == "" || !runs(s.InstalledImage, d.Image)) {
			message, remedy := untold(s, d)
			say(ImageReleaseUnknown, FieldTag, remedy, "%s", message)
		}
		return all
	}
	if s.Installed != "" && !s.Walking() && equal(s.Installed, d.Release) {
		if !runs(s.InstalledImage, d.Image) {
			next := following(s.Installed)
			say(ImageReleaseUnknown, FieldTag, Remedy{"bump both, if it holds " + next, next, d.Image},
				"%s names no release: if it holds a newer one than %s, bump the release with it, otherwise its schema changes run in one pass", label(d.Image), s.Installed)
		}
		return all
	}
	if before == nil || before.Image != d.Image || before.Release != d.Release {
		say(ImageReleaseUnknown, FieldTag, Remedy{"have it compared, with the tag that your registry has for " + d.Release, d.Release, named(d, d.Release)},
			"%s%s names no release to compare with %s; it is trusted to be one", step(s, d), label(d.Image), d.Release)
	}
	return all
}

// step leads over from the installed release to the one asked for.
func step(s State, d Desired) string {
	if s.Installed == "" || equal(s.Installed, d.Release) {
		return ""
	}
	return fmt.Sprintf("%s → %s: ", s.Installed, d.Release)
}

// following is the release after one, empty when that cannot be read.
func following(releaseName string) string {
	r, err := release.Parse(releaseName)
	if err != nil {
		return ""
	}
	return r.Next().String()
}

// label is the part of an image that tells it from others of its repository,
// short enough for a sentence.
func label(ref image.Reference) string {
	switch {
	case ref.Tag != "":
		return fmt.Sprintf("tag %q", ref.Tag)
	case len(ref.Digest) > 19:
		return "digest " + ref.Digest[:19] + "…"
	}
	return "digest " + ref.Digest
}

// called is label for a recorded image.
func called(recorded string) string {
	ref, err := image.Parse(recorded)
	if err != nil || ref.Tag == "" && ref.Digest == "" {
		return "the installed image"
	}
	return label(ref)
}

// untold says what becomes of an image whose tag should name its release and
// does not.
func untold(s State, d Desired) (message string, remedy Remedy) {
	if s.Installed == "" {
		return fmt.Sprintf("%s names no release: it is installed as it is, and nothing is known to compare with until a tag names one", label(d.Image)), Remedy{}
	}
	next := following(s.Installed)
	return fmt.Sprintf("%s names no release and is taken for a build of %s: if it is a newer one, use a tag that names it, otherwise its schema changes run in one pass",
		label(d.Image), inWords(s.Installed, "the installed release")), Remedy{"name it, if it is " + next, next, named(d, next)}
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
