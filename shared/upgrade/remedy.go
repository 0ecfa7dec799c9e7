package upgrade

import (
	"slices"

	"github.com/c5c3/openstack-upgrade/shared/image"
	"github.com/c5c3/openstack-upgrade/shared/release"
)

// inStep lists the lockstep wishes that are closest to what was asked. Who
// bumped one half most likely wants the other half bumped too; who aborted
// wants to be back.
func inStep(s State, d Desired) []Remedy {
	var offers []Remedy
	offer := func(purpose, releaseName string, ref image.Reference) {
		remedy := Remedy{Purpose: purpose, Release: releaseName, Image: ref}
		for _, known := range offers {
			if known.Release == releaseName && known.Image == ref {
				return
			}
		}
		if lawful(s, remedy) && len(offered(remedy)) > 0 {
			offers = append(offers, remedy)
		}
	}
	forward := func(releaseName string) {
		switch {
		case s.Installed == "":
			offer("install "+releaseName, releaseName, named(d, releaseName))
		case equal(s.Target, releaseName):
			offer("go on to "+releaseName, releaseName, pinned(s, d, s.TargetImage, releaseName))
		case !equal(s.Installed, releaseName):
			offer("bump both to "+releaseName+assumed(s), releaseName, named(d, releaseName))
		}
	}
	back := func() {
		purpose := "stay on " + s.Installed
		if s.Walking() {
			purpose = "abort, back to " + s.Installed
		}
		offer(purpose, s.Installed, pinned(s, d, s.InstalledImage, s.Installed))
	}
	if runs(s.AbortedImage, d.Image) {
		back()
	}
	forward(d.Release)
	if tagged, ok := d.Image.Release(); ok {
		forward(tagged.String())
	}
	back()
	return offers
}

// lawful judges an offer, so that no rejection ever offers what would be
// rejected again.
func lawful(s State, r Remedy) bool {
	wish := Desired{Release: r.Release, Image: r.Image}
	wanted, err := release.Parse(r.Release)
	return (err == nil || unnamed(s, wish)) && checkPath(s, wish, wanted) == nil && outOfStep(s, wish, wanted) == ""
}

// readable is what to type instead of a release that cannot be read.
func readable(s State, d Desired) []Remedy {
	switch {
	case s.Walking():
		return offered(Remedy{Purpose: "go on to " + s.Target, Release: s.Target, Image: pinned(s, d, s.TargetImage, s.Target)})
	case s.Installed != "":
		return offered(Remedy{Purpose: "stay on " + s.Installed, Release: s.Installed, Image: pinned(s, d, s.InstalledImage, s.Installed)})
	}
	if tagged, ok := d.Image.Release(); ok {
		return []Remedy{{Purpose: "ask for the release that the tag names", Release: tagged.String(), Image: d.Image}}
	}
	return nil
}

// forwardOrStay are the two wishes for a schema that is ahead of the installed
// release. Where the tag names the release, the image that was tried is offered
// only if its tag does.
func forwardOrStay(s State, d Desired) []Remedy {
	target := named(d, s.Ahead)
	if tried, err := image.Parse(s.AbortedImage); err == nil {
		if tagged, ok := tried.Release(); ok && equal(s.Ahead, tagged.String()) || !ok && !d.ByTag {
			target = tried
		}
	}
	remedies := []Remedy{{Purpose: "go forward to " + s.Ahead, Release: s.Ahead, Image: target}}
	if installed, err := image.Parse(s.InstalledImage); err == nil {
		remedies = append(remedies, Remedy{Purpose: "stay on " + s.InstalledImage, Release: s.Installed, Image: installed})
	}
	return remedies
}

// offered leaves out what cannot be typed: an image for an unnamed release that
// is not on record.
func offered(remedies ...Remedy) []Remedy {
	return slices.DeleteFunc(remedies, func(r Remedy) bool { return r.Image == (image.Reference{}) })
}

// assumed warns that a tag is a guess, where the installed image shows that the
// registry does not name its tags after releases.
func assumed(s State) string {
	ref, err := image.Parse(s.InstalledImage)
	if _, named := ref.Release(); err == nil && !named {
		return ", with the tag that your registry has for it"
	}
	return ""
}

// named is the wished image with a tag that names the release, nothing where
// there is none to name.
func named(d Desired, releaseName string) image.Reference {
	if releaseName == Unnamed {
		return image.Reference{}
	}
	return image.Reference{Repository: d.Image.Repository, Tag: releaseName}
}

// pinned is a recorded image, or one named after the release when the record
// holds none that the law would accept with it.
func pinned(s State, d Desired, recorded, releaseName string) image.Reference {
	ref, err := image.Parse(recorded)
	wanted, unreadable := release.Parse(releaseName)
	if releaseName == Unnamed {
		unreadable = nil
	}
	if err != nil || unreadable != nil || outOfStep(s, Desired{Release: releaseName, Image: ref}, wanted) != "" {
		return named(d, releaseName)
	}
	return ref
}
