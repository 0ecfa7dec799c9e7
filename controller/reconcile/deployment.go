package reconcile

import (
	"cmp"
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
	template := rendered.Spec.Template.Annotations[render.AnnotationTemplate]
	defer func() { observePods(template, seen) }() // by what the Deployment says
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
	if d.Release = live.Spec.Template.Annotations[render.AnnotationRelease]; render.Changed(live.Spec.Template) {
		d.Release = upgrade.Unknown
	}
	if database := render.DatabaseOf(live.Spec.Template); database != "" {
		d.Elsewhere = database != w.DatabaseName()
	}
	d.Note, d.Trouble = wordsOfDeployment(live, seen.pods)
}

// claim is what a pod says of itself, or what its ReplicaSet says of it.
type claim struct{ template, release string }

// claimOf reads what is noted on a pod template, or on a pod.
func claimOf(annotations map[string]string) claim {
	return claim{annotations[render.AnnotationTemplate], cmp.Or(annotations[render.AnnotationRelease], upgrade.Unknown)}
}

// observePods reduces the pods of the API by what is noted on them: which
// template they are of, and which release they were rendered for. Their image
// would not tell, since a cluster may rewrite it. But somebody may have changed
// the image of the Deployment beneath the notes. By whether that was so for a
// pod its ReplicaSet tells, if those were asked for, and otherwise another one
// than that of all pods that are not ending.
func observePods(template string, seen *observation) {
	d := &seen.Deployment
	add := func(name string, c claim) {
		if !slices.Contains(d.Releases, c.release) {
			d.Releases = append(d.Releases, c.release)
		}
		if c.template != template {
			d.Outdated = append(d.Outdated, name)
		}
	}
	pods := unfinished(seen.pods)
	var stray map[string]bool
	if seen.sets == nil && d.Rolled() {
		stray = strays(template, pods)
	}
	for i := range pods {
		pod := &pods[i]
		d.Pods++
		c := claimOf(pod.Annotations)
		switch {
		case seen.sets != nil:
			c = seen.sets.claimOf(pod)
		case stray[pod.Name] && d.Replicas == 0:
			c.release = upgrade.Unknown // old or not, contract waits for it
		case stray[pod.Name]:
			c = claim{"", upgrade.Unknown}
		}
		add(called(*pod), c)
	}
	for _, set := range seen.sets {
		if set.orders() {
			add("ReplicaSet "+set.Name, set.claim())
		}
	}
}
