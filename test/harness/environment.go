package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
)

// Env is the running world.
type Env struct {
	// Client and Config act as a cluster administrator.
	Client client.WithWatch
	Config *rest.Config
	Scheme *runtime.Scheme
	// Kubelet plays the scheduler and the nodes, unless FakeNodes do.
	Kubelet *Kubelet
	// Dir holds the logs of the components and the audit log.
	Dir string

	plane    *envtest.Environment
	manager  *component
	beside   []*component
	again    []*component // API servers that were started after the first
	watchdog *watchdog
	assets   string
	root     string
	shipped  shipped
	built    built
	plain    rest.Interface

	fakeNodes int
	flags     map[string][]string
	launched  atomic.Int64
}

// Start brings the world up. Stop takes it down, and so does the end of this process, however it ends.
func Start(ctx context.Context, options ...Option) (_ *Env, err error) {
	env := &Env{Scheme: newScheme(), flags: map[string][]string{}}
	for _, option := range options {
		option(env)
	}
	if env.assets, err = findAssets(ctx, env.programs()...); err != nil {
		return nil, err
	}
	if env.root, err = repository(); err != nil {
		return nil, err
	}
	if env.Dir, err = os.MkdirTemp("", "openstack-upgrade-harness-"); err != nil {
		return nil, fmt.Errorf("make a directory for the logs: %w", err)
	}
	if err := env.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%w (logs in %s)", err, env.Dir), env.Stop(true))
	}
	return env, nil
}

func (e *Env) start(ctx context.Context) (err error) {
	if os.Getenv("GOGC") == "" {
		// The components are Go programs with small heaps; they would spend a quarter of their time on collecting garbage.
		if err := os.Setenv("GOGC", "400"); err != nil {
			return fmt.Errorf("set GOGC: %w", err)
		}
	}
	if err := e.logClients(); err != nil {
		return err
	}
	if e.watchdog, err = startWatchdog(e.Dir); err != nil {
		return err
	}
	if err := e.startControlPlane(); err != nil {
		return err
	}
	if e.Client, err = client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme}); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	if e.plain, err = plainClient(e.Config); err != nil {
		return err
	}
	// The CRDs are in place by now. The garbage collector learns of kinds once at its start and then twice a minute.
	if e.manager, err = startControllerManager(e); err != nil {
		return err
	}
	if e.fakeNodes > 0 {
		err = e.startFakeNodes(ctx)
	} else {
		e.Kubelet, err = startKubelet(e)
	}
	if err != nil {
		return err
	}
	return e.awaitControllers(ctx)
}

func (e *Env) startControlPlane() error {
	for _, dir := range []string{"etcd", "pki"} {
		if err := os.Mkdir(filepath.Join(e.Dir, dir), 0o700); err != nil {
			return fmt.Errorf("make a directory: %w", err)
		}
	}
	if err := os.WriteFile(e.auditPolicy(), []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}
	e.plane = &envtest.Environment{
		BinaryAssetsDirectory:    e.assets,
		CRDDirectoryPaths:        []string{filepath.Join(e.root, "deploy", "base", "crds")},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: time.Minute,
		ControlPlaneStopTimeout:  10 * time.Second,
	}
	etcdLog, err := e.log("etcd")
	if err != nil {
		return err
	}
	apiLog, err := e.log("kube-apiserver")
	if err != nil {
		return err
	}
	api := e.plane.ControlPlane.GetAPIServer()
	api.CertDir, api.Out, api.Err = filepath.Join(e.Dir, "pki"), apiLog, apiLog
	api.Configure().
		Disable("disable-admission-plugins").                                       // envtest turns ServiceAccount off; here its controller runs
		Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement"). // some distributions turn it on
		Set("audit-policy-file", e.auditPolicy()).
		Set("audit-log-path", e.auditLog()).
		Set("audit-log-format", "json").
		Set("audit-log-maxsize", "4000") // a log that rotates loses marks
	e.configureAPIServer()
	e.plane.ControlPlane.Etcd = &envtest.Etcd{DataDir: filepath.Join(e.Dir, "etcd"), Out: etcdLog, Err: etcdLog}
	e.plane.ControlPlane.Etcd.Configure().Set("log-level", "warn")
	if e.Config, err = e.plane.Start(); err != nil {
		return fmt.Errorf("start etcd and the API server: %w", err)
	}
	return e.watchdog.guard(e.assets)
}

// awaitControllers waits for a deed of the controller manager: the service account of the default namespace.
func (e *Env) awaitControllers(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := e.manager.exited(); err != nil {
			return false, err
		}
		key := client.ObjectKey{Namespace: corev1.NamespaceDefault, Name: "default"}
		return e.Client.Get(ctx, key, &corev1.ServiceAccount{}) == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the controller manager to make the first service account: %w", err)
	}
	return nil
}

// Stop takes the world down. The logs stay when they are to be kept.
func (e *Env) Stop(keepLogs bool) error {
	var failures []error
	if e.Kubelet != nil {
		e.Kubelet.stop()
	}
	for _, c := range e.beside {
		failures = append(failures, c.stop())
	}
	if e.manager != nil {
		failures = append(failures, e.manager.stop())
	}
	for _, c := range e.again {
		failures = append(failures, c.stop())
	}
	if e.plane != nil {
		failures = append(failures, e.plane.Stop())
	}
	if e.watchdog != nil {
		failures = append(failures, e.watchdog.release())
	}
	if !keepLogs {
		failures = append(failures, os.RemoveAll(e.Dir))
	}
	return errors.Join(failures...)
}

func (e *Env) log(component string) (io.Writer, error) {
	file, err := os.Create(filepath.Join(e.Dir, component+".log"))
	if err != nil {
		return nil, fmt.Errorf("make the log of %s: %w", component, err)
	}
	return file, nil
}

// logClients sends what client libraries and controllers under test say to a file: a test speaks only when it fails.
func (e *Env) logClients() error {
	file, err := e.log("clients")
	if err != nil {
		return err
	}
	logger := zap.New(zap.WriteTo(file), zap.UseDevMode(true))
	log.SetLogger(logger)
	klog.SetLogger(logger)
	return nil
}

// plainClient asks for paths that are no resources.
func plainClient(config *rest.Config) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	plain, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for plain paths: %w", err)
	}
	return plain, nil
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}
