package upgrade

import "github.com/c5c3/openstack-upgrade/shared/image"

// Unnamed stands for the release of an image that names none, where only
// images name releases. A schema at an unnamed release is never worked on in
// one pass by an image that names one.
const Unnamed = "an unnamed release"

// Tagged is the wish for an image whose tag names the release. An image that
// names none says nothing about a release, so it changes none: at rest it is
// taken for a build of what is installed. In a walk that would be a guess, and
// a wrong one runs a sync of one release under pods of another. So there it
// counts only when it is one of the two images on record. A tag that looks like
// the name of a release and is none is a mistake.
func Tagged(s State, ref image.Reference, generation int64) Desired {
	d := Desired{Image: ref, Generation: generation, ByTag: true}
	tagged, named := ref.Release()
	switch {
	case named:
		d.Release = tagged.String()
	case s.Walking() && runs(s.TargetImage, ref):
		d.Release = s.Target
	case s.Walking() && runs(s.InstalledImage, ref):
		d.Release = s.Installed
	case image.Misnamed(ref.Tag) && !runs(s.InstalledImage, ref):
		d.Release = ref.Tag // for the law to refuse: nothing else would tell a typo
	case s.Walking():
		d.Release = Unknown
	case s.Installed == "":
		d.Release = Unnamed
	default:
		d.Release = s.Installed
	}
	return d
}

// names tells whether the wish does nothing but name the release of the very
// image that is installed, which had none.
func names(s State, d Desired) bool {
	ref, err := image.Parse(s.InstalledImage)
	return !s.Walking() && s.Ahead == "" && s.Installed == Unnamed && d.Release != Unnamed &&
		err == nil && ref.Digest != "" && ref.Digest == d.Image.Digest
}

// inWords is a release in a sentence about the schema.
func inWords(releaseName, imageName string) string {
	if releaseName == Unnamed {
		return "the release of " + imageName
	}
	return releaseName
}
