package v1alpha1

import (
	"cmp"

	"github.com/c5c3/openstack-upgrade/shared/image"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// Condition types of every service.
const (
	ConditionDatabaseReady   = "DatabaseReady"
	ConditionDeploymentReady = "DeploymentReady"
	ConditionReady           = "Ready"
)

// Reasons of the Ready condition.
const (
	ReasonAllReady    = "AllReady"
	ReasonNotAllReady = "NotAllReady"
)

// Reference is the image as the planner reads it.
func (i ImageSpec) Reference() image.Reference {
	return image.Reference{Repository: i.Repository, Tag: i.Tag, Digest: i.Digest}
}

// Desired is what the spec asks of the planner.
func (g *Glance) Desired() upgrade.Desired {
	return upgrade.Desired{Release: g.Spec.OpenStackRelease, Image: g.Spec.Image.Reference(), Generation: g.Generation}
}

// Record is the part of the status that every service has.
func (g *Glance) Record() *ServiceStatus { return &g.Status.ServiceStatus }

// State is what the status records.
func (g *Glance) State() upgrade.State { return g.Status.State() }

// SetState records a state.
func (g *Glance) SetState(state upgrade.State) { g.Status.SetState(state) }

// Desired is what the spec asks of the planner: the tag names the release.
func (k *Keystone) Desired() upgrade.Desired {
	return upgrade.Tagged(k.State(), k.Spec.Image.Reference(), k.Generation)
}

// Record is the part of the status that every service has.
func (k *Keystone) Record() *ServiceStatus { return &k.Status.ServiceStatus }

// State is what the status records, where it holds tags.
func (k *Keystone) State() upgrade.State { return k.Status.TaggedState() }

// SetState records a state as tags.
func (k *Keystone) SetState(state upgrade.State) { k.Status.SetTaggedState(state) }

// State is what the status records, as the planner reads it.
func (s *ServiceStatus) State() upgrade.State {
	return upgrade.State{
		Installed: s.InstalledRelease, Target: s.TargetRelease, Phase: upgrade.Phase(s.UpgradePhase),
		InstalledImage: s.InstalledImage, TargetImage: s.TargetImage, AbortedImage: s.AbortedImage,
		Attempt: s.UpgradeAttempt, ContractBegun: s.ContractBegun, Ahead: s.ExpandedRelease,
	}
}

// SetState records a state.
func (s *ServiceStatus) SetState(state upgrade.State) {
	s.InstalledRelease, s.TargetRelease, s.UpgradePhase = state.Installed, state.Target, string(state.Phase)
	s.InstalledImage, s.TargetImage, s.AbortedImage = state.InstalledImage, state.TargetImage, state.AbortedImage
	s.UpgradeAttempt, s.ContractBegun, s.ExpandedRelease = state.Attempt, state.ContractBegun, state.Ahead
}

// TaggedState is the State of a status that holds tags for releases. This is
// the one place where a recorded tag is read. One that names no release is that
// of the installed image, or a mistake, which is left for the planner to refuse.
func (s *ServiceStatus) TaggedState() upgrade.State {
	state := s.State()
	if installed := releaseIn(s.InstalledRelease); installed != "" {
		state.Installed = installed
	} else if ref, err := image.Parse(s.InstalledImage); err == nil && s.InstalledRelease != "" && (s.InstalledRelease == ref.Tag || s.InstalledRelease == ref.Digest) {
		state.Installed = upgrade.Unnamed
	}
	if target := releaseIn(s.TargetRelease); target != "" {
		state.Target = target
	}
	return state
}

// SetTaggedState records a state with the tags that name its releases: those of
// the images, and where an image has none, the tag that was recorded for that
// release before.
func (s *ServiceStatus) SetTaggedState(state upgrade.State) {
	before := []string{s.InstalledRelease, s.TargetRelease}
	s.SetState(state)
	s.InstalledRelease = tagOf(state.Installed, state.InstalledImage, before)
	s.TargetRelease = tagOf(state.Target, state.TargetImage, before)
}

func tagOf(release, imageName string, before []string) string {
	ref, err := image.Parse(imageName)
	if release == upgrade.Unnamed && err == nil {
		return cmp.Or(ref.Tag, ref.Digest, release)
	}
	for _, tag := range append([]string{ref.Tag}, before...) {
		if release != "" && releaseIn(tag) == release {
			return tag
		}
	}
	return release
}

// releaseIn is the release that a tag names, empty when it names none.
func releaseIn(tag string) string {
	if named, ok := image.ReleaseOfTag(tag); ok {
		return named.String()
	}
	return ""
}

// JobName is the fixed name of the Job that runs a task for the object.
func JobName(object string, task upgrade.Task) string { return object + "-" + string(task) }
