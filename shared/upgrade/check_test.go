package upgrade

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/shared/release"
)

// at is a phase of an upgrade with the image that its status records.
func at(p Phase, images ...string) State {
	s := upgrading(p)
	if len(images) == 2 {
		s.InstalledImage, s.TargetImage = images[0], images[1]
	}
	return s
}

func was(release, image string) *Desired {
	d := wish(release, image)
	return &d
}

func aborted(image, target string) State {
	s := installed("2026.1", image)
	s.AbortedImage = target
	return s
}

const notARelease = " is not a release: it must be YYYY.1 or YYYY.2, such as 2026.1"

// TestTheTableOfAdmission is the decision table, row by row, with whole
// messages: what is said is part of the product.
func TestTheTableOfAdmission(t *testing.T) {
	trusted := func(image, release string) string {
		return fmt.Sprintf("ImageReleaseUnknown: %s names no release to compare with %s; it is trusted to be one (have it compared, with the tag that your registry has for %s: %s r:%s)", image, release, release, release, release)
	}
	step := func(image string) string {
		return strings.Replace(trusted(image, "2026.2"), ": ", ": 2026.1 → 2026.2: ", 1)
	}
	left := func(image, reference string) string {
		return fmt.Sprintf("ImageReleaseMismatch: 2026.2 → 2026.1 aborts and the pods stay with %s, but the image asked for is still that of 2026.2: the database sync waits until it is set back (set it back too: 2026.1 %s)", image, reference)
	}
	for _, c := range []struct {
		row    string
		stored State
		before *Desired
		wish   Desired
		says   []string // every violation, whole
		offers []string // every remedy, in order
		advice []string
	}{
		{"1 no half 9", State{}, nil, wish("2025.9", "r:stable"), []string{`VersionParseError: "2025.9"` + notARelease}, nil, nil},
		{"1 no half 3", State{}, nil, wish("2026.3", "r:2026.1"), []string{`VersionParseError: "2026.3"` + notARelease}, []string{"ask for the release that the tag names: 2026.1 r:2026.1"}, nil},
		{"1 short year", State{}, nil, wish("26.1", "r:stable"), []string{`VersionParseError: "26.1"` + notARelease}, nil, nil},
		{"1 space", State{}, nil, wish(" 2026.1", "r:stable"), []string{`VersionParseError: " 2026.1"` + notARelease}, nil, nil},
		{"1 leading zero", State{}, nil, wish("2026.01", "r:stable"), []string{`VersionParseError: "2026.01"` + notARelease}, nil, nil},
		{"1 other digits", State{}, nil, wish("２０２６.１", "r:stable"), []string{`VersionParseError: "２０２６.１"` + notARelease}, nil, nil},
		{"1 empty", State{}, nil, wish("", "r:stable"), []string{`VersionParseError: ""` + notARelease}, nil, nil},
		{"1 while installed", installed("2026.1", "r:2026.1"), was("2026.1", "r:2026.1"), wish("2026.3", "r:2026.1"), []string{`VersionParseError: "2026.3"` + notARelease + "; 2026.1 is installed"}, []string{"stay on 2026.1: 2026.1 r:2026.1"}, nil},
		{"1 while walking", at(Migrating), was("2026.2", "r:2026.2"), wish("2026.3", "r:2026.2"), []string{`VersionParseError: "2026.3"` + notARelease + "; 2026.1 is installed"}, []string{"go on to 2026.2: 2026.2 r:2026.2"}, nil},

		{"2 tag differs", State{}, nil, wish("2026.1", "r:2026.2"), []string{`ImageReleaseMismatch: tag "2026.2" names release 2026.2, the release asked for is 2026.1; change both together`},
			[]string{"install 2026.1: 2026.1 r:2026.1", "install 2026.2: 2026.2 r:2026.2"}, nil},
		{"2 suffix is equal", State{}, nil, wish("2026.1", "r:2026.1-p1"), nil, nil, nil},
		{"2 no tag, no digest", State{}, nil, wish("2026.1", "r"), []string{"ImageReleaseMismatch: the image has neither a tag nor a digest, the release asked for is 2026.1"}, []string{"install 2026.1: 2026.1 r:2026.1"}, nil},
		{"3 digest only", State{}, nil, wish("2026.1", "r@sha256:a"), nil, nil, []string{trusted("digest sha256:a", "2026.1")}},
		{"3 latest", State{}, nil, wish("2026.1", "r:latest"), nil, nil, []string{trusted(`tag "latest"`, "2026.1")}},
		{"3 v", State{}, nil, wish("2026.1", "r:v2026.1"), nil, nil, []string{trusted(`tag "v2026.1"`, "2026.1")}},
		{"3 third number", State{}, nil, wish("2026.1", "r:2026.1.0"), nil, nil, []string{trusted(`tag "2026.1.0"`, "2026.1")}},
		{"4 a lying tag beside a digest", State{}, nil, wish("2026.1", "r:2026.2@sha256:a"), []string{`ImageReleaseMismatch: tag "2026.2" names release 2026.2, the release asked for is 2026.1; change both together`},
			[]string{"install 2026.1: 2026.1 r:2026.1", "install 2026.2: 2026.2 r:2026.2"}, nil},

		{"6 forwards", State{}, was("2026.1", "r:2026.1"), wish("2027.1", "r:2027.1"), nil, nil, nil},
		{"6 backwards", State{}, was("2026.2", "r:2026.2"), wish("2026.1", "r:2026.1"), nil, nil, []string{"MovesBackwards: 2026.2 → 2026.1 moves backwards before anything is installed; if the first sync has already run, the older release may not read its schema (keep 2026.2: 2026.2 r:2026.2)"}},
		{"7 patch tag", installed("2026.1", "r:2026.1"), was("2026.1", "r:2026.1"), wish("2026.1", "r:2026.1-p1"), nil, nil, nil},
		{"7 digest beside the tag", installed("2026.1", "r:2026.1"), was("2026.1", "r:2026.1"), wish("2026.1", "r:2026.1@sha256:a"), nil, nil, nil},
		{"8 one step", installed("2026.1", "r:2026.1"), was("2026.1", "r:2026.1"), wish("2026.2", "r:2026.2"), nil, nil, nil},
		{"9 image forgotten", installed("2026.1", "r:2026.1"), was("2026.1", "r:2026.1"), wish("2026.2", "r:2026.1"), []string{`ImageReleaseMismatch: tag "2026.1" names release 2026.1, the release asked for is 2026.2; change both together`},
			[]string{"bump both to 2026.2: 2026.2 r:2026.2", "stay on 2026.1: 2026.1 r:2026.1"}, nil},
		{"9 release forgotten", installed("2026.1", "r:2026.1"), was("2026.1", "r:2026.1"), wish("2026.1", "r:2026.2"), []string{`ImageReleaseMismatch: tag "2026.2" names release 2026.2, the release asked for is 2026.1; change both together`},
			[]string{"bump both to 2026.2: 2026.2 r:2026.2", "stay on 2026.1: 2026.1 r:2026.1"}, nil},
		{"9 release forgotten, and too far", installed("2026.1", "r:2026.1"), was("2026.1", "r:2026.1"), wish("2026.1", "r:2027.1"), []string{`ImageReleaseMismatch: tag "2027.1" names release 2027.1, the release asked for is 2026.1; change both together`},
			[]string{"stay on 2026.1: 2026.1 r:2026.1"}, nil},
		{"10 opaque tag unchanged", installed("2026.1", "r:stable"), was("2026.1", "r:stable"), wish("2026.2", "r:stable"), []string{"ImageReleaseMismatch: 2026.1 → 2026.2 with the image unchanged (r:stable): nothing would migrate; change both together"},
			[]string{"bump both to 2026.2, with the tag that your registry has for it: 2026.2 r:2026.2", "stay on 2026.1: 2026.1 r:stable"}, nil},
		{"10 digest unchanged", installed("2026.1", "r@sha256:a"), was("2026.1", "r@sha256:a"), wish("2026.2", "r@sha256:a"), []string{"ImageReleaseMismatch: 2026.1 → 2026.2 with the image unchanged (r@sha256:a): nothing would migrate; change both together"},
			[]string{"bump both to 2026.2, with the tag that your registry has for it: 2026.2 r:2026.2", "stay on 2026.1: 2026.1 r@sha256:a"}, nil},
		{"10 digest unchanged behind a new tag", installed("2026.1", "r:2026.1@sha256:a"), was("2026.1", "r:2026.1@sha256:a"), wish("2026.2", "r:2026.2@sha256:a"), []string{"ImageReleaseMismatch: 2026.1 → 2026.2 with the image unchanged (r:2026.2@sha256:a): nothing would migrate; change both together"},
			[]string{"bump both to 2026.2: 2026.2 r:2026.2", "stay on 2026.1: 2026.1 r:2026.1@sha256:a"}, nil},
		{"10 digest changed", installed("2026.1", "r@sha256:a"), was("2026.1", "r@sha256:a"), wish("2026.2", "r@sha256:b"), nil, nil, []string{step("digest sha256:b")}},
		{"11 opaque tag changed", installed("2026.1", "r:stable"), was("2026.1", "r:stable"), wish("2026.1", "r:next"), nil, nil, []string{`ImageReleaseUnknown: tag "next" names no release: if it holds a newer one than 2026.1, bump the release with it, otherwise its schema changes run in one pass (bump both, if it holds 2026.2: 2026.2 r:next)`}},
		{"11 opaque tag unchanged", installed("2026.1", "r:stable"), was("2026.2", "r:stable"), wish("2026.1", "r:stable"), nil, nil, nil},
		{"12 downgrade", installed("2026.2", "r:2026.2"), was("2026.2", "r:2026.2"), wish("2026.1", "r:2026.1"), []string{"DowngradeNotSupported: 2026.2 → 2026.1 goes backwards, and the schema is already at 2026.2: restore a backup, or roll forward"},
			[]string{"stay on 2026.2: 2026.2 r:2026.2"}, nil},
		{"13 skip", installed("2026.1", "r:2026.1"), was("2026.1", "r:2026.1"), wish("2027.1", "r:2027.1"), []string{"UpgradePathInvalid: 2026.1 → 2027.1 skips 2026.2; upgrade one release at a time"}, []string{"take the next step, 2026.2: 2026.2 r:2026.2"}, nil},
		{"13 skip and mismatch in one answer", installed("2026.1", "r:2026.1"), was("2026.1", "r:2026.1"), wish("2027.1", "r:2026.1"), []string{
			"UpgradePathInvalid: 2026.1 → 2027.1 skips 2026.2; upgrade one release at a time",
			`ImageReleaseMismatch: tag "2026.1" names release 2026.1, the release asked for is 2027.1; change both together`},
			[]string{"take the next step, 2026.2: 2026.2 r:2026.2", "stay on 2026.1: 2026.1 r:2026.1"}, nil},
		{"13 two quick edits do not add up", installed("2026.1", "r:2026.1"), was("2026.2", "r:2026.2"), wish("2027.1", "r:2027.1"), []string{"UpgradePathInvalid: 2026.1 → 2027.1 skips 2026.2; upgrade one release at a time"}, []string{"take the next step, 2026.2: 2026.2 r:2026.2"}, nil},
		{"14 into the next year", installed("2026.2", "r:2026.2"), was("2026.2", "r:2026.2"), wish("2027.1", "r:2027.1"), nil, nil, nil},

		{"15 abort with the image", at(Migrating), was("2026.2", "r:2026.2"), wish("2026.1", "r:2026.1"), nil, nil, nil},
		{"15 abort, tag left", at(Expanding), was("2026.2", "r:2026.2"), wish("2026.1", "r:2026.2"), nil, nil, []string{left(`tag "2026.1"`, "r:2026.1")}},
		{"15 abort, opaque tag left", at(RollingUpdate, "r:stable", "r:next"), was("2026.2", "r:next"), wish("2026.1", "r:next"), nil, nil, []string{left(`tag "stable"`, "r:stable")}},
		{"15 abort, digest left under another tag", at(Migrating, "r@sha256:a", "r:2026.2@sha256:b"), was("2026.2", "r:2026.2@sha256:b"), wish("2026.1", "r:2026.1@sha256:b"), nil, nil, []string{left("digest sha256:a", "r@sha256:a")}},
		{"15 abort, tag of a third release", at(Migrating), was("2026.2", "r:2026.2"), wish("2026.1", "r:2027.1"), []string{`ImageReleaseMismatch: tag "2027.1" names release 2027.1, the release asked for is 2026.1; change both together`},
			[]string{"abort, back to 2026.1: 2026.1 r:2026.1"}, nil},
		{"15 afterwards the tag is held", aborted("r:2026.1", "r:2026.2"), was("2026.1", "r:2026.2"), wish("2026.1", "r:2026.2"), []string{`ImageReleaseMismatch: tag "2026.2" names release 2026.2, the release asked for is 2026.1; change both together`},
			[]string{"stay on 2026.1: 2026.1 r:2026.1", "bump both to 2026.2: 2026.2 r:2026.2"}, nil},
		{"15 afterwards the opaque tag is held", aborted("r:stable", "r:next"), was("2026.1", "r:next"), wish("2026.1", "r:next"), []string{"ImageReleaseMismatch: image r:next was the target of the upgrade that was aborted, it is not a build of 2026.1; set the image back to r:stable"},
			[]string{"stay on 2026.1: 2026.1 r:stable"}, nil},
		{"15 afterwards the digest is held under any tag", aborted("r@sha256:a", "r:2026.2@sha256:b"), was("2026.1", "r:2026.2@sha256:b"), wish("2026.1", "r:2026.1@sha256:b"), []string{"ImageReleaseMismatch: image r:2026.1@sha256:b was the target of the upgrade that was aborted, it is not a build of 2026.1; set the image back to r@sha256:a"},
			[]string{"stay on 2026.1: 2026.1 r@sha256:a"}, nil},
		{"15 afterwards it may be tried again", aborted("r:stable", "r:next"), was("2026.1", "r:stable"), wish("2026.2", "r:next"), nil, nil, []string{step(`tag "next"`)}},
		{"16 abort while contracting", at(Contracting), was("2026.2", "r:2026.2"), wish("2026.1", "r:2026.1"), nil, nil, []string{"AbortWhileContracting: 2026.2 → 2026.1 aborts after contract has begun: it may already have dropped columns that 2026.1 reads, and then only going on or a backup helps (go on to 2026.2: 2026.2 r:2026.2)"}},
		{"17 third release", at(Migrating), was("2026.2", "r:2026.2"), wish("2027.1", "r:2027.1"), []string{"UpgradeTargetChanged: the upgrade 2026.1 → 2026.2 is in phase Migrating and 2027.1 is neither of the two; finish it or abort it first"},
			[]string{"go on to 2026.2: 2026.2 r:2026.2", "abort, back to 2026.1: 2026.1 r:2026.1"}, nil},
		{"18 another build", at(RollingUpdate), was("2026.2", "r:2026.2"), wish("2026.2", "r:2026.2-p1"), nil, nil, []string{`UpgradeStartsOver: the upgrade 2026.1 → 2026.2 starts over at Expanding with tag "2026.2-p1" (keep the image that it began with: 2026.2 r:2026.2)`}},
		{"18 another opaque build", at(Expanding, "r:stable", "r:next"), was("2026.2", "r:next"), wish("2026.2", "r:newer"), nil, nil, []string{`UpgradeStartsOver: the upgrade 2026.1 → 2026.2 starts over at Expanding with tag "newer" (keep the image that it began with: 2026.2 r:next)`, step(`tag "newer"`)}},
		{"18 the installed image is no build of the target", at(Expanding, "r:stable", "r:next"), was("2026.2", "r:next"), wish("2026.2", "r:stable"), []string{"ImageReleaseMismatch: 2026.1 → 2026.2 with the image unchanged (r:stable): nothing would migrate; change both together"},
			[]string{"go on to 2026.2: 2026.2 r:next", "abort, back to 2026.1: 2026.1 r:stable"}, nil},
		{"18 going on", at(Contracting), was("2026.2", "r:2026.2"), wish("2026.2", "r:2026.2"), nil, nil, nil},
		{"19 tag of another release", at(Migrating), was("2026.2", "r:2026.2"), wish("2026.2", "r:2026.1"), []string{`ImageReleaseMismatch: tag "2026.1" names release 2026.1, the release asked for is 2026.2; change both together`},
			[]string{"go on to 2026.2: 2026.2 r:2026.2", "abort, back to 2026.1: 2026.1 r:2026.1"}, nil},

		{"21 unknown phase", at("Shrinking"), nil, wish("2026.2", "r:2026.2"), []string{`VersionParseError: the recorded phase "Shrinking" is none of Expanding, Migrating, RollingUpdate, Contracting; 2026.1 → 2026.2 cannot be judged: repair the status first`}, nil, nil},
		{"21 phase without target", State{Installed: "2026.1", Phase: Migrating}, nil, wish("2026.1", "r:2026.1"), []string{"VersionParseError: phase Migrating is recorded without a target; 2026.1 → 2026.1 cannot be judged: repair the status first"}, nil, nil},
		{"21 phase without installed", State{Target: "2026.2", TargetImage: "r:2026.2", Phase: Migrating}, nil, wish("2026.2", "r:2026.2"), []string{"VersionParseError: phase Migrating is recorded without an installed release; \"\" → 2026.2 cannot be judged: repair the status first"}, nil, nil},
		{"21 target without phase", State{Installed: "2026.1", Target: "2026.2"}, nil, wish("2026.1", "r:2026.1"), []string{`VersionParseError: target release "2026.2" is recorded without a phase; 2026.1 → 2026.1 cannot be judged: repair the status first`}, nil, nil},
		{"21 unreadable installed", installed("zed", "r:zed"), nil, wish("2026.1", "r:2026.1"), []string{`VersionParseError: the recorded installed release cannot be read: "zed"` + notARelease + "; \"zed\" → 2026.1 cannot be judged: repair the status first"}, nil, nil},
		{"21 target that skips", State{Installed: "2026.1", Target: "2027.1", Phase: Migrating, TargetImage: "r:2027.1"}, nil, wish("2027.1", "r:2027.1"), []string{"VersionParseError: the recorded target release 2027.1 does not follow the installed release 2026.1; 2026.1 → 2027.1 cannot be judged: repair the status first"}, nil, nil},
		{"21 target that goes back", State{Installed: "2026.2", Target: "2026.1", Phase: Migrating, TargetImage: "r:2026.1"}, nil, wish("2026.1", "r:2026.1"), []string{"VersionParseError: the recorded target release 2026.1 does not follow the installed release 2026.2; 2026.2 → 2026.1 cannot be judged: repair the status first"}, nil, nil},
	} {
		t.Run(c.row, func(t *testing.T) {
			var says, offers []string
			for _, rejection := range Violations(c.stored, c.wish) {
				says = append(says, rejection.Error())
				for _, remedy := range rejection.Remedies {
					offers = append(offers, fmt.Sprintf("%s: %s %s", remedy.Purpose, remedy.Release, remedy.Image))
				}
				assert.Equal(t, strings.HasPrefix(c.row, "21"), rejection.Record)
				assert.Equal(t, rejection.Reason == ImageReleaseMismatch, rejection.Field == FieldTag)
			}
			assert.Equal(t, c.says, says)
			assert.Equal(t, c.offers, offers)
			first := Check(c.stored, c.wish)
			if len(c.says) > 0 {
				require.NotNil(t, first)
				assert.Equal(t, c.says[0], first.Error())
				return
			}
			require.Nil(t, first)
			assert.Equal(t, c.advice, told(Advise(c.stored, c.before, c.wish)))
			if c.before == nil {
				return
			}
			again := told(Advise(c.stored, &c.wish, c.wish))
			assert.NotContains(t, strings.Join(again, "\n"), "it is trusted to be one", "an edit that leaves the image alone is not told again that it is trusted")
		})
	}
}

// told is advice in words, with the remedy behind it.
func told(all []Advice) []string {
	var words []string
	for _, a := range all {
		text := a.String()
		if a.Remedy != nil {
			text += fmt.Sprintf(" (%s: %s %s)", a.Remedy.Purpose, a.Remedy.Release, a.Remedy.Image)
		}
		words = append(words, text)
	}
	return words
}

func TestTheLawOfAcceptedTransitions(t *testing.T) {
	for _, from := range somewhen {
		for _, to := range somewhen {
			rejection := Check(installed(from, "r:"+from), wish(to, "r:"+to))
			left, errLeft := release.Parse(from)
			right, errRight := release.Parse(to)
			var want Reason
			switch {
			case errLeft != nil || errRight != nil:
				want = VersionParseError
			case release.Distance(left, right) < 0:
				want = DowngradeNotSupported
			case release.Distance(left, right) > 1:
				want = UpgradePathInvalid
			}
			if want == "" {
				assert.Nil(t, rejection, "%s → %s", from, to)
				continue
			}
			if assert.NotNil(t, rejection, "%s → %s", from, to) {
				assert.Equal(t, want, rejection.Reason, "%s → %s", from, to)
			}
		}
	}
}

var somewhen = []string{"0000.1", "2025.2", "2026.1", "2026.2", "2027.1", "2027.2", "9999.1", "9999.2", "26.1", "2026.3"}

func TestEveryRemedyThatARejectionOffersIsAccepted(t *testing.T) {
	offered, rejected, helpless, told := 0, 0, 0, 0
	everyState(func(s State) {
		everyWish(s, func(d Desired) {
			for _, rejection := range Violations(s, d) {
				rejected++
				if rejection.Record {
					assert.Empty(t, rejection.Remedies, "no wish repairs a record")
					continue
				}
				if len(rejection.Remedies) == 0 {
					helpless++
					unknown := s.Installed == Unnamed && s.InstalledImage == "" // nothing is known to go back to
					if !unknown && (s.Installed != "" || d.Image.Tag != "" && rejection.Reason != VersionParseError) {
						t.Errorf("no remedy for %+v with %+v: %s", s, d, rejection.Error())
					}
				}
				for _, remedy := range rejection.Remedies {
					offered++
					offer := d.again(s, remedy)
					if !equal(offer.Release, remedy.Release) {
						t.Errorf("state %+v\nwish %+v is offered %+v, which would be %+v", s, d, remedy, offer)
					}
					if again := Check(s, offer); again != nil {
						t.Errorf("state %+v\nwish %+v is rejected: %s\noffered %+v is rejected too: %s", s, d, rejection.Error(), remedy, again.Error())
					}
					if remedy.Purpose == "" || remedy.Release == d.Release && remedy.Image == d.Image {
						t.Errorf("state %+v\nwish %+v is offered %+v", s, d, remedy)
					}
				}
			}
		})
	})
	everyState(func(s State) {
		everyWish(s, func(d Desired) {
			for _, remedy := range Decide(s, d, Observed{Confirmed: true}).Database.Remedies {
				told++
				if offer := d.again(s, remedy); !equal(offer.Release, remedy.Release) || Check(s, offer) != nil {
					t.Errorf("state %+v\nwish %+v is told to ask for %+v, which would be %+v: %v", s, d, remedy, offer, Check(s, offer))
				}
			}
		})
	})
	t.Logf("%d rejections, %d offers, %d without any; %d told", rejected, offered, helpless, told)
	assert.Greater(t, told, 100)
	assert.Greater(t, offered, 1000)
}

func TestAdviceIsGivenInWholeSentencesWithARemedyThatPassesAndNeverForWhatIsAtRest(t *testing.T) {
	given, helpless, said := 0, 0, map[Reason]bool{}
	everyState(func(s State) {
		everyWish(s, func(d Desired) {
			if Check(s, d) != nil {
				return
			}
			for _, before := range []*Desired{nil, &d, was("2026.2", "r:2026.2")} {
				for _, advice := range Advise(s, before, d) {
					given++
					said[advice.Reason] = true
					if strings.Contains(advice.Message, "%!") || strings.Contains(advice.Message, "  ") {
						t.Errorf("%+v %+v: %s", s, d, advice)
					}
					if advice.Remedy == nil {
						helpless++
						continue
					}
					offer := d.again(s, *advice.Remedy)
					if again := Check(s, offer); again != nil {
						t.Errorf("%+v %+v: %s\noffered %+v is rejected: %s", s, d, advice, advice.Remedy, again)
					}
				}
			}
			if !s.Walking() && s.Installed == d.Release && s.InstalledImage == d.Image.String() {
				if advice := Advise(s, &d, d); len(advice) > 0 {
					t.Errorf("%+v %+v is at rest and told %q", s, d, advice)
				}
			}
		})
	})
	t.Logf("%d pieces of advice, %d without a remedy", given, helpless)
	assert.Greater(t, given, 1000)
	assert.Less(t, helpless, given/10)
	for _, reason := range AdviceReasons {
		assert.True(t, said[reason], "%s is never said", reason)
	}
	assert.Len(t, said, len(AdviceReasons))
}
