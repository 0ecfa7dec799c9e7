package stage

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/test/cluster/addons"
	"github.com/c5c3/openstack-upgrade/test/cluster/binaries"
	"github.com/c5c3/openstack-upgrade/test/cluster/lifecycle"
	"github.com/c5c3/openstack-upgrade/test/cluster/node"
)

// Log is told each step as it begins, and what is waited for while it lasts.
type Log func(format string, args ...any)

// Stage is a cluster with the product on it.
type Stage struct {
	// Cluster is its name; Root the directory of the source, where kubectl is run.
	Cluster string
	Root    string
	// Client asks the API server directly, without caches.
	Client client.WithWatch

	kind    Kind
	layout  node.Layout
	log     Log
	started time.Time
}

// Namespaces that the stage makes.
const (
	ProductNamespace  = "openstack-upgrade"
	DatabaseNamespace = "database"
	TrafficNamespace  = "traffic"
)

// Up brings the cluster up with cert-manager, the product and the database server on it. Afterwards every edit of an
// object goes through the webhook.
func Up(ctx context.Context, log Log, cluster string) (*Stage, error) {
	s := &Stage{Cluster: cluster, kind: Glances, log: log, started: time.Now()}
	var err error
	if s.Root, err = binaries.Root(); err != nil {
		return nil, err
	}
	if err := lifecycle.Up(ctx, lifecycle.Log(log), cluster, addons.CertManager); err != nil {
		return nil, fmt.Errorf("bring the cluster up: %w", err)
	}
	if err := s.connect(); err != nil {
		return nil, err
	}
	images, err := s.loadImages(ctx)
	if err != nil {
		return nil, err
	}
	// The database server starts while the product is installed.
	if err := s.applyDatabaseServer(ctx); err != nil {
		return nil, err
	}
	if err := s.installProduct(ctx, images); err != nil {
		return nil, err
	}
	if err := s.awaitDatabaseServer(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Down ends the cluster.
func (s *Stage) Down(ctx context.Context) error {
	return lifecycle.Down(ctx, lifecycle.Log(s.log), s.Cluster)
}

func (s *Stage) connect() error {
	var err error
	if s.layout, err = node.NewLayout(s.Cluster); err != nil {
		return err
	}
	state, _, err := s.layout.ReadState()
	if err != nil {
		return err
	}
	s.layout.Bin = state.Bin
	config, err := s.config()
	if err != nil {
		return err
	}
	log.SetLogger(logr.Discard()) // what a client library has to say is of no use here
	config.QPS, config.Burst = 100, 200
	config.UserAgent = "stage"
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return fmt.Errorf("register API types: %w", err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("register API types: %w", err)
	}
	if s.Client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("make a client of the cluster: %w", err)
	}
	return nil
}

func (s *Stage) config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.layout.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read the cluster's kubeconfig: %w", err)
	}
	return config, nil
}

// Kubeconfig and KubectlPath are what a person needs to look around.
func (s *Stage) Kubeconfig() string { return s.layout.Kubeconfig() }

// KubectlPath is the kubectl that belongs to the cluster.
func (s *Stage) KubectlPath() string { return s.layout.Program("kubectl") }

func (s *Stage) path(parts ...string) string {
	return filepath.Join(append([]string{s.Root}, parts...)...)
}
