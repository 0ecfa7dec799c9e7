package reconcile

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// children reads Jobs, Deployment, Service and ConfigMap. What a cache should
// show for a while, and does not, is asked for past it.
func (r *Reconciler) children(ctx context.Context, w render.Workload, seen *observation) error {
	for _, task := range upgrade.Tasks {
		job, name := &batchv1.Job{}, v1alpha1.JobName(w.Name, task)
		found, err := r.job(ctx, w, name, job, seen)
		if left, known := r.deleted.quiet(w.Namespace, name, r.Now()); err == nil && !found && known && left == 0 {
			if found, err = get(ctx, r.Live, w, name, job); err == nil && !found {
				r.deleted.forget(w.Namespace, name)
				r.doubts.raise(client.ObjectKey{Namespace: w.Namespace, Name: w.Name}) // a pod of it may live on
			}
			if seen.unshown[task] = found; found {
				seen.again = sooner(seen.again, foreignPause) // no watch may ever tell of its end
			}
		}
		if err != nil {
			return err
		}
		if found {
			seen.live[task] = job
		}
	}
	deployment, address, config := &appsv1.Deployment{}, &corev1.Service{}, &corev1.ConfigMap{}
	found, err := r.deployment(ctx, w, deployment, seen)
	if err != nil {
		return err
	}
	if found {
		seen.deployment = deployment
	}
	if found, err = get(ctx, r.Client, w, w.Name, address); err != nil {
		return err
	}
	if found {
		seen.address = address
	}
	if found, err = get(ctx, r.Client, w, w.ConfigName(), config); err != nil {
		return err
	}
	if found {
		seen.config = config
	}
	return nil
}

// job reads a Job, past the cache while that is behind the one we have made. One
// that it does not show yet need not be read for a while: until it is, nothing
// is made beside it, since it is known to have work left.
func (r *Reconciler) job(ctx context.Context, w render.Workload, name string, into *batchv1.Job, seen *observation) (bool, error) {
	return current(ctx, r, &r.made, w, name, into, true, seen)
}

// deployment reads the Deployment, past the cache while that is behind what we
// wrote last.
func (r *Reconciler) deployment(ctx context.Context, w render.Workload, into *appsv1.Deployment, seen *observation) (bool, error) {
	return current(ctx, r, &r.rolled, w, w.Name, into, false, seen)
}

// current reads an object, past the cache while that is behind what we wrote.
func current[T any, P interface {
	*T
	client.Object
}](ctx context.Context, r *Reconciler, ours *written, w render.Workload, name string, into P, patient bool, seen *observation) (bool, error) {
	key := client.ObjectKey{Namespace: w.Namespace, Name: name}
	found, err := get(ctx, r.Client, w, name, into)
	if err != nil {
		return false, err
	}
	var shown metav1.Object
	if found {
		shown = into
	}
	behind, left := ours.behind(key, shown, r.Now())
	switch {
	case !behind:
		return found, nil
	case patient && !found && left > 0:
		seen.again = sooner(seen.again, left)
		return false, nil
	}
	seen.again = sooner(seen.again, foreignPause) // it may be gone before the cache has ever shown it
	*into = *new(T)
	if found, err = get(ctx, r.Live, w, name, into); err != nil {
		return false, err
	}
	if !found || ours.older(key, into) {
		ours.forget(key)
	}
	return found, nil
}
