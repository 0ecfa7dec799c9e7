package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/c5c3/openstack-upgrade/controller/metrics"
	"github.com/c5c3/openstack-upgrade/controller/reconcile"
	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/controller/service"
	"github.com/c5c3/openstack-upgrade/controller/shelf"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// retryPeriod is how often the lease is asked for, or renewed: a replica that waits takes over from one that leaves in
// good order within that.
const retryPeriod = time.Second

// lease is the name of the leader election lock and of the event source.
const lease = "openstack-upgrade-controller"

// run works until the context ends.
func run(ctx context.Context, config *rest.Config, o options, log logr.Logger) error {
	ctrl.SetLogger(log)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("register API types: %w", err)
	}
	kept := shelf.New(scheme, render.LabelInstance, render.LabelComponent, components()...)
	retry := retryPeriod
	if o.leaderElect {
		config = fenced(config, time.Now)
	}
	deadline := renewDeadline
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Logger: log,
		Cache: scopedCache(o, kept),
		NewClient: func(config *rest.Config, options client.Options) (client.Client, error) {
			options.Cache.Reader = shelf.Reader{Shelf: kept}
			return client.New(config, options)
		},
		RetryPeriod:                   &retry,
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        o.healthAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              lease,
		LeaderElectionNamespace:       o.leaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		RenewDeadline:                 &deadline,
	})
	if err != nil {
		return fmt.Errorf("set up the manager: %w", err)
	}
	if err := fillCaches(ctx, mgr.GetCache()); err != nil {
		return err
	}
	meter := metrics.New(registry.Registry, version, time.Now())
	for _, s := range service.All() {
		r := &reconcile.Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: mgr.GetEventRecorder(lease), Service: s, Meter: meter, Now: time.Now, Versions: kept}
		if err := r.Setup(mgr, reconcile.Options{Concurrency: o.concurrency, MaxBackoff: o.maxBackoff}); err != nil {
			return err
		}
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("caches", synced(mgr.GetCache()))); err != nil {
		return fmt.Errorf("set up health checks: %w", err)
	}
	if err := mgr.Add(tidier{}); err != nil {
		return fmt.Errorf("set up the manager: %w", err)
	}
	return work(ctx, mgr, filling{synced: mgr.GetCache().WaitForCacheSync, received: kept.Received, log: log})
}

// stopTimeout is how long the manager may take to stop. It never does while its
// caches are not filled.
const stopTimeout = 15 * time.Second

// work runs the manager until the context ends, but neither idles nor stays on
// where the manager would.
func work(ctx context.Context, mgr ctrl.Manager, first filling) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	go func() {
		if err := first.await(ctx); err != nil {
			stop(err)
		}
	}()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		select {
		case err = <-ended:
		case <-time.After(stopTimeout):
		}
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

// components are what children of ours are for.
func components() []string {
	found := []string{render.ComponentAPI}
	for _, task := range upgrade.Tasks {
		found = append(found, string(task))
	}
	return found
}

// scopedCache keeps only what carries our label, and that on the shelf.
func scopedCache(o options, kept *shelf.Shelf) cache.Options {
	mine := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{render.LabelManagedBy: render.ManagedBy})}
	options := cache.Options{
		SyncPeriod:       &o.resyncPeriod,
		DefaultTransform: kept.Pack,
		NewInformer:      kept.Informer,
		ByObject: map[client.Object]cache.ByObject{
			&batchv1.Job{}: mine, &appsv1.Deployment{}: mine, &corev1.Service{}: mine, &corev1.ConfigMap{}: mine, &corev1.Pod{}: mine,
		},
	}
	if len(o.watchNamespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range o.watchNamespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return options
}

// fillCaches has every cache filled from the start, also while another replica
// leads: readiness then means that this one may take over at once, and a right
// that is missing shows before it is needed.
func fillCaches(ctx context.Context, c cache.Cache) error {
	kinds := []client.Object{&batchv1.Job{}, &appsv1.Deployment{}, &corev1.Service{}, &corev1.ConfigMap{}, &corev1.Pod{}}
	for _, s := range service.All() {
		kinds = append(kinds, s.New())
	}
	for _, kind := range kinds {
		if _, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	return nil
}

// synced is not ready before every cache has been filled once.
func synced(c cache.Cache) healthz.Checker {
	return func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), time.Second)
		defer cancel()
		if !c.WaitForCacheSync(ctx) {
			return errors.New("caches are not filled: is the controller allowed to list and watch what it needs?")
		}
		return nil
	}
}
