package walks

import (
	"fmt"
	"strings"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/image"
	"github.com/c5c3/openstack-upgrade/shared/release"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/faults/history"
)

// wish is what is asked for: the release is empty where the tag names it.
type wish struct {
	release string
	image   v1alpha1.ImageSpec
}

func (w wish) String() string {
	return strings.TrimSpace(w.release + " " + w.image.Reference().String())
}

// first is what a walk is installed with.
func (w Walk) first() wish { return w.lockstep(build.DefaultRelease, 0) }

// lockstep is a wish for a release and a build of it.
func (w Walk) lockstep(name string, number int) wish {
	asked := wish{release: name, image: w.imageOf(name, number)}
	if w.Service == history.Keystone {
		asked.release = ""
	}
	return asked
}

// imageOf is a build of a release. Digests hold the release in their first digits, for holds to read.
func (w Walk) imageOf(name string, number int) v1alpha1.ImageSpec {
	spec := v1alpha1.ImageSpec{Repository: build.DefaultRepository, Tag: name}
	if w.Service == history.Keystone {
		spec.Repository = build.KeystoneRepository
	}
	if number > 0 {
		spec.Tag = fmt.Sprintf("%s-p%d", name, number)
	}
	if w.ByDigest {
		spec.Digest = fmt.Sprintf("sha256:%s%059d", strings.ReplaceAll(name, ".", ""), number)
		if w.Service == history.Glance {
			spec.Tag = ""
		}
	}
	return spec
}

// holds is the release that an image of a walk really holds.
func holds(name string) string {
	if tagged := history.ByTag(name); tagged != "" {
		return tagged
	}
	_, digits, found := strings.Cut(name, "@sha256:")
	if !found || len(digits) < 5 {
		return ""
	}
	return digits[:4] + "." + digits[4:5]
}

// asks is what a deed asks for, given what is recorded and what was asked before; false when it is no edit of the wish,
// or has no meaning now.
func (w Walk) asks(step Step, s upgrade.State, now wish) (wish, bool) {
	installed, target := s.Installed, s.Target
	if installed == "" {
		installed = build.DefaultRelease
	}
	if target == "" {
		target = after(installed, 1)
	}
	recorded := func(reference, name string) wish {
		asked := w.lockstep(name, 0)
		if parsed, ok := specOf(reference); ok {
			asked.image = parsed
		}
		return asked
	}
	switch step.Deed {
	case Upgrade:
		return w.lockstep(after(installed, 1), step.Build), true
	case Patch:
		return w.lockstep(installed, step.Build), true
	case Rebuild:
		return w.lockstep(target, step.Build), true
	case Revert:
		return recorded(s.InstalledImage, installed), true
	case ReleaseBack:
		// With an image whose tag does not tell, this says after the record is lost that the image is of the old release.
		return wish{release: installed, image: now.image}, w.Service == history.Glance && !w.ByDigest
	case Skip:
		return w.lockstep(after(installed, 2), 0), true
	case Downgrade:
		return w.lockstep(after(installed, -1), 0), true
	case Third:
		return w.lockstep(after(target, 1), 0), true
	case Mismatch:
		return wish{release: after(installed, 1), image: w.imageOf(installed, 0)}, w.Service == history.Glance && !w.ByDigest
	case Garbage:
		asked := w.lockstep(installed, 0)
		if asked.release == "" {
			asked.image.Tag, asked.image.Digest = "2026.3", ""
		} else {
			asked.release = "2026.3"
		}
		return asked, true
	default:
		return wish{}, false
	}
}

// good is a wish that the law accepts and that ends well.
func (w Walk) good(s upgrade.State) wish {
	stay := func(reference, name string) wish {
		asked := w.lockstep(name, 0)
		if parsed, ok := specOf(reference); ok {
			asked.image = parsed
		}
		return asked
	}
	switch {
	case s.Installed == "":
		return w.first()
	case s.Walking() && w.Onward:
		return stay(s.TargetImage, s.Target)
	case s.Walking():
		return stay(s.InstalledImage, s.Installed)
	case s.Ahead != "":
		return w.lockstep(s.Ahead, 0)
	case w.Onward:
		return w.lockstep(after(s.Installed, 1), 0)
	}
	return stay(s.InstalledImage, s.Installed)
}

// after is a release so many steps on.
func after(name string, steps int) string {
	r, err := release.Parse(name)
	if err != nil {
		return name
	}
	for ; steps > 0; steps-- {
		r = r.Next()
	}
	for ; steps < 0; steps++ {
		r = previous(r)
	}
	return r.String()
}

func previous(r release.Release) release.Release {
	for year := 2000; ; year++ {
		for half := 1; half <= 2; half++ {
			earlier, err := release.Parse(fmt.Sprintf("%04d.%d", year, half))
			if err != nil || release.Distance(earlier, r) == 1 {
				return earlier
			}
		}
	}
}

// specOf is an image on record as a spec names it.
func specOf(recorded string) (v1alpha1.ImageSpec, bool) {
	ref, err := image.Parse(recorded)
	return v1alpha1.ImageSpec{Repository: ref.Repository, Tag: ref.Tag, Digest: ref.Digest}, err == nil
}

// same is whether two wishes ask for the same.
func (w wish) same(other wish) bool { return w.String() == other.String() }
