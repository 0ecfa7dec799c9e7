// Command cert-manager runs cert-manager's own controllers and CA injector, without its webhook and its command
// line: the project's commands are not part of its module, its controllers are. ACME, Vault and Venafi are left
// out, since a cluster without a way out can use none of them.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgo "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/logs"
	"github.com/cert-manager/cert-manager/pkg/util"
)

const workers = 2

func main() {
	namespace := flag.String("cluster-resource-namespace", "cert-manager", "where a ClusterIssuer's Secrets are")
	probes := flag.String("health-probe-bind-address", ":8081", "where /healthz and /readyz are served")
	flag.Parse()

	log := klog.Background()
	ctrl.SetLogger(log)
	ctx := logs.NewContext(ctrl.SetupSignalHandler(), log)
	if err := run(ctx, log, *namespace, *probes); err != nil {
		fmt.Fprintln(os.Stderr, "cert-manager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, log logr.Logger, namespace, probes string) error {
	group, ctx := errgroup.WithContext(ctx)
	if err := issue(ctx, group, namespace); err != nil {
		return err
	}
	if err := inject(ctx, group, probes); err != nil {
		return err
	}
	log.Info("started", "controllers", len(controller.Known()))
	return group.Wait()
}

// issue starts every controller that the imports registered: from Certificate over CertificateRequest to Secret.
func issue(ctx context.Context, group *errgroup.Group, namespace string) error {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		KubernetesAPIQPS:   50,
		KubernetesAPIBurst: 100,
		IssuerOptions:      controller.IssuerOptions{ClusterResourceNamespace: namespace},
		CertificateOptions: controller.CertificateOptions{
			CertificateRequestMinimumBackoffDuration: time.Hour,
			CertificateRequestMaximumBackoffDuration: 32 * time.Hour,
		},
	})
	if err != nil {
		return fmt.Errorf("reach the cluster: %w", err)
	}
	shared, err := factory.Build()
	if err != nil {
		return fmt.Errorf("build the controllers' clients: %w", err)
	}
	for name, construct := range controller.Known() {
		c, err := construct(factory)
		if err != nil {
			return fmt.Errorf("construct controller %s: %w", name, err)
		}
		group.Go(func() error {
			if err := c.Run(workers, ctx); err != nil {
				return fmt.Errorf("run controller %s: %w", name, err)
			}
			return nil
		})
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	return nil
}

// inject starts the controllers that write a Certificate's CA into webhook configurations, CRDs and APIServices.
func inject(ctx context.Context, group *errgroup.Group, probes string) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgo.AddToScheme, certmanager.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("add types: %w", err)
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	// The injector applies under a field manager that it takes from the user agent.
	config = util.RestConfigWithUserAgent(config, "cainjector")
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: probes,
	})
	if err != nil {
		return fmt.Errorf("make the injector's manager: %w", err)
	}
	if err := cainjector.RegisterAllInjectors(ctx, manager, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName:   true,
			cainjector.ValidatingWebhookConfigurationName: true,
			cainjector.CustomResourceDefinitionName:       true,
			cainjector.APIServiceName:                     true,
		},
	}); err != nil {
		return fmt.Errorf("register the injectors: %w", err)
	}
	ready := func(r *http.Request) error {
		if !manager.GetCache().WaitForCacheSync(r.Context()) {
			return fmt.Errorf("caches are not filled yet")
		}
		return nil
	}
	if err := manager.AddReadyzCheck("caches", ready); err != nil {
		return fmt.Errorf("add the readiness check: %w", err)
	}
	group.Go(func() error { return manager.Start(ctx) })
	return nil
}
