package v1alpha1

import (
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

// State is what the status records, as the planner reads it.
func (s *ServiceStatus) State() upgrade.State {
	return upgrade.State{
		Installed: s.InstalledRelease, Target: s.TargetRelease, Phase: upgrade.Phase(s.UpgradePhase),
		InstalledImage: s.InstalledImage, TargetImage: s.TargetImage, AbortedImage: s.AbortedImage,
		Attempt: s.UpgradeAttempt, ContractBegun: s.ContractBegun,
	}
}

// SetState records a state.
func (s *ServiceStatus) SetState(state upgrade.State) {
	s.InstalledRelease, s.TargetRelease, s.UpgradePhase = state.Installed, state.Target, string(state.Phase)
	s.InstalledImage, s.TargetImage, s.AbortedImage = state.InstalledImage, state.TargetImage, state.AbortedImage
	s.UpgradeAttempt, s.ContractBegun = state.Attempt, state.ContractBegun
}

// JobName is the fixed name of the Job that runs a task for the object.
func JobName(object string, task upgrade.Task) string { return object + "-" + string(task) }
