package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/controller/service"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// past takes a whole look past the caches, at the object itself too. When they
// have shown the same, they are believed again. It gives no object if that is
// gone, or going; after an error, object and caches as they were.
func (r *Reconciler) past(ctx context.Context, object service.Object, cached observation) (service.Object, observation, error) {
	key, live := client.ObjectKeyFromObject(object), r.Service.New()
	switch err := r.Live.Get(ctx, key, live); {
	case apierrors.IsNotFound(err):
		return nil, cached, nil // the cache will say so
	case err != nil:
		return object, cached, fmt.Errorf("get %s %s past the caches: %w", r.Service.Kind, key, err)
	case live.GetDeletionTimestamp() != nil:
		return nil, cached, nil
	}
	seen := r.begin(live)
	seen.address, seen.config = cached.address, cached.config // what serves is mended when they show it
	jobs, err := r.liveJobs(ctx, seen.workload)
	if err != nil {
		return object, cached, err
	}
	seen.live = jobs
	for task, job := range cached.live {
		if jobs[task] == nil && cached.unshown[task] {
			seen.live[task] = job // it carries no label of ours any more, and was read past the caches
		}
		seen.unshown[task] = cached.unshown[task]
	}
	if err := r.liveDeployment(ctx, &seen); err != nil {
		return object, cached, err
	}
	pods, err := list(ctx, r.Live, seen.workload)
	if err != nil {
		return object, cached, err
	}
	r.reduce(ctx, pods, &seen)
	seen.Confirmed = true
	if err := r.orders(ctx, &seen); err != nil {
		return object, cached, err
	}
	if slices.Equal(versions(live, seen), versions(object, cached)) {
		r.doubts.settle(key)
	}
	return live, seen, nil
}

// versions tells apart two views of an object and what decisions about it go by.
func versions(object service.Object, seen observation) []string {
	version := func(of client.Object) string { return of.GetName() + " " + of.GetResourceVersion() }
	all := []string{version(object)}
	if seen.deployment != nil {
		all = append(all, version(seen.deployment))
	}
	for _, task := range upgrade.Tasks {
		if job := seen.live[task]; job != nil {
			all = append(all, version(job))
		}
	}
	for _, pods := range [][]corev1.Pod{seen.pods, seen.jobPods} {
		for i := range pods {
			all = append(all, version(&pods[i]))
		}
	}
	slices.SortFunc(all, strings.Compare)
	return all
}
