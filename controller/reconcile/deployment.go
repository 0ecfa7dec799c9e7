package reconcile

import (
	"slices"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// observeDeployment reduces the Deployment and the pods of the API.
func observeDeployment(s upgrade.State, w render.Workload, seen *observation) {
	live := seen.deployment
	seen.Deployment = upgrade.Deployment{Name: w.Name}
	d := &seen.Deployment
	image := s.TargetImage
	if !s.Walking() {
		image = s.InstalledImage
	}
	rendered := seen.rendering(image, s)
	observePods(rendered.Spec.Template.Annotations[render.AnnotationTemplate], seen)
	if live == nil {
		return
	}
	switch {
	case !ours(live, w):
		d.Standing, d.Owner = upgrade.Foreign, ownerOf(live, w.Owner)
		seen.again = sooner(seen.again, foreignPause)
		return
	case live.DeletionTimestamp != nil:
		d.Standing = upgrade.Leaving
	default:
		d.Standing = upgrade.Current
	}
	if record, ok := render.ReadRecord(live.Annotations[render.AnnotationRecord]); ok {
		seen.Recorded = &record
		seen.RecordedDone = contracted(record, w, seen.live)
	}
	if containers := live.Spec.Template.Spec.Containers; len(containers) > 0 {
		d.Image = containers[0].Image
	}
	d.Paused = live.Spec.Paused
	d.Unobserved = live.Status.ObservedGeneration < live.Generation
	d.Unrendered = !render.UpToDate(live, rendered)
	d.Replicas = 1
	if live.Spec.Replicas != nil {
		d.Replicas = *live.Spec.Replicas
	}
	d.Total, d.Updated, d.Available = live.Status.Replicas, live.Status.UpdatedReplicas, live.Status.AvailableReplicas
	d.Release = live.Spec.Template.Annotations[render.AnnotationRelease]
	if database := render.DatabaseOf(live.Spec.Template); database != "" {
		d.Elsewhere = database != w.DatabaseName()
	}
	d.Note, d.Trouble = wordsOfDeployment(live, seen.pods)
}

// observePods reduces the pods of the API by what is noted on them: which
// template they are of, and which release they were rendered for. Their image
// would not tell, since a cluster may rewrite it.
func observePods(template string, seen *observation) {
	d := &seen.Deployment
	for _, pod := range unfinished(seen.pods) {
		d.Pods++
		release := pod.Annotations[render.AnnotationRelease]
		if release == "" {
			release = upgrade.Unknown
		}
		if !slices.Contains(d.Releases, release) {
			d.Releases = append(d.Releases, release)
		}
		if pod.Annotations[render.AnnotationTemplate] != template {
			d.Outdated = append(d.Outdated, called(pod))
		}
	}
}
