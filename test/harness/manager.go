package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// leftOut are the controllers that would punish the stand-in for not being a real node, and those that would only make
// noise. Everything else that the controller manager starts by default is on.
var leftOut = []string{
	"node-lifecycle-controller", "taint-eviction-controller", "node-ipam-controller", "ttl-controller",
	"persistentvolume-binder-controller", "persistentvolume-attach-detach-controller", "persistentvolume-expander-controller",
	"horizontal-pod-autoscaler-controller", "storage-version-migrator-controller",
}

// startControllerManager runs it as the user that it is in a cluster, with one service account per controller: what the
// API server forbids these there, it forbids them here.
func startControllerManager(e *Env) (*component, error) {
	pki := filepath.Join(e.Dir, "pki")
	ca := filepath.Join(pki, "ca.crt")
	if err := os.WriteFile(ca, e.Config.CAData, 0o600); err != nil {
		return nil, fmt.Errorf("write the certificate of the API server: %w", err)
	}
	kubeconfig, err := e.kubeconfigFor("system:"+controllerManager, controllerManager)
	if err != nil {
		return nil, err
	}
	return e.startComponent(controllerManager,
		"--kubeconfig="+kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+filepath.Join(pki, "sa-signer.key"), "--root-ca-file="+ca,
		"--controllers=*,-"+strings.Join(leftOut, ",-"),
		"--kube-api-qps=2000", "--kube-api-burst=4000",
		"--concurrent-job-syncs=10", "--concurrent-deployment-syncs=10", "--concurrent-replicaset-syncs=10",
		"--concurrent-namespace-syncs=10", "--concurrent-resource-quota-syncs=10",
	)
}

// WithoutControllerManager stops the controller manager, does something, and starts it again.
func (e *Env) WithoutControllerManager(t testing.TB, deed func()) {
	t.Helper()
	if err := e.manager.stop(); err != nil {
		t.Fatal(err)
	}
	deed()
	var err error
	if e.manager, err = startControllerManager(e); err == nil {
		err = e.awaitControllers(context.WithoutCancel(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
}
