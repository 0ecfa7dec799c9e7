package reconcile

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// set is a ReplicaSet of the API: a template as the Deployment had it once, and
// how many pods of it are ordered.
type set struct{ appsv1.ReplicaSet }

// sets are all of an object; nil where they were not asked for.
type sets []set

// orders asks, where the one-pass sync is about to run in the middle of a
// rollout, for what the Deployment controller has ordered: pods of the release
// that is being left may still be made. After a rollout nothing else is ordered,
// and nobody need be asked.
func (r *Reconciler) orders(ctx context.Context, seen *observation) error {
	next := seen.decides(true)
	if next.Step != upgrade.RunJob || next.Task != upgrade.Sync || seen.deployment == nil || seen.Deployment.Rolled() {
		return nil
	}
	var found appsv1.ReplicaSetList
	if err := r.Live.List(ctx, &found, client.InNamespace(seen.workload.Namespace), mine(seen.workload)); err != nil {
		return fmt.Errorf("list replicasets of %s: %w", seen.workload.Name, err)
	}
	seen.sets = sets{}
	for _, each := range found.Items {
		seen.sets = append(seen.sets, set{each})
	}
	observeDeployment(seen.state, seen.workload, seen)
	return nil
}

// orders tells whether pods of it are there or may come: also while its
// controller has not seen that none are to.
func (s set) orders() bool {
	return s.Spec.Replicas == nil || *s.Spec.Replicas > 0 || s.Status.Replicas > 0 || s.Status.ObservedGeneration < s.Generation
}

// claim is what its template says of itself, unless somebody has changed it.
func (s set) claim() claim {
	if render.Changed(s.Spec.Template) {
		return claim{"", upgrade.Unknown}
	}
	return claimOf(s.Spec.Template.Annotations)
}

// claimOf is what the ReplicaSet of a pod says of it; nothing where it has none.
func (s sets) claimOf(pod *corev1.Pod) claim {
	for _, each := range s {
		if metav1.IsControlledBy(pod, &each.ReplicaSet) {
			return each.claim()
		}
	}
	return claim{"", upgrade.Unknown}
}

// strays are pods, by name, that claim a template and come from another ReplicaSet than
// those that are not ending. Where these come from several, or none is left, it
// cannot be told which are.
func strays(template string, pods []corev1.Pod) map[string]bool {
	claiming, sources := map[string]string{}, map[string]bool{}
	for i := range pods {
		pod := &pods[i]
		if pod.Annotations[render.AnnotationTemplate] != template {
			continue
		}
		source := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
		claiming[pod.Name] = source
		if pod.DeletionTimestamp == nil {
			sources[source] = true
		}
	}
	found := map[string]bool{}
	for name, source := range claiming {
		found[name] = len(sources) != 1 || !sources[source]
	}
	return found
}
