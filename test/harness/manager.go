package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// leftOut are the controllers that would punish the stand-in for not being a real node, and those that would only make
// noise. Everything else that the controller manager starts by default is on.
var leftOut = []string{
	"node-lifecycle-controller", "taint-eviction-controller", "node-ipam-controller", "ttl-controller",
	"persistentvolume-binder-controller", "persistentvolume-attach-detach-controller", "persistentvolume-expander-controller",
	"horizontal-pod-autoscaler-controller", "storage-version-migrator-controller",
}

type controllerManagerProcess struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// startControllerManager runs it as the user that it is in a cluster, with one service account per controller: what the
// API server forbids these there, it forbids them here.
func startControllerManager(e *Env) (*controllerManagerProcess, error) {
	user, err := e.plane.AddUser(envtest.User{Name: "system:kube-controller-manager"}, &rest.Config{QPS: -1})
	if err != nil {
		return nil, fmt.Errorf("make the user of the controller manager: %w", err)
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return nil, fmt.Errorf("make the kubeconfig of the controller manager: %w", err)
	}
	pki := filepath.Join(e.Dir, "pki")
	kubeconfigFile, ca := filepath.Join(pki, controllerManager+".kubeconfig"), filepath.Join(pki, "ca.crt")
	if err := os.WriteFile(kubeconfigFile, kubeconfig, 0o600); err != nil {
		return nil, fmt.Errorf("write the kubeconfig of the controller manager: %w", err)
	}
	if err := os.WriteFile(ca, e.Config.CAData, 0o600); err != nil {
		return nil, fmt.Errorf("write the certificate of the API server: %w", err)
	}
	log, err := e.log(controllerManager)
	if err != nil {
		return nil, err
	}
	process := &controllerManagerProcess{done: make(chan struct{}), cmd: exec.Command(filepath.Join(e.assets, controllerManager),
		"--kubeconfig="+kubeconfigFile, "--leader-elect=false", "--secure-port=0",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+filepath.Join(pki, "sa-signer.key"), "--root-ca-file="+ca,
		"--controllers=*,-"+strings.Join(leftOut, ",-"),
		"--kube-api-qps=2000", "--kube-api-burst=4000",
		"--concurrent-job-syncs=10", "--concurrent-deployment-syncs=10", "--concurrent-replicaset-syncs=10",
		"--concurrent-namespace-syncs=10", "--concurrent-resource-quota-syncs=10",
	)}
	process.cmd.Stdout, process.cmd.Stderr = log, log
	// Its own process group: Ctrl-C is for the test, which then stops it.
	process.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := process.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", controllerManager, err)
	}
	go func() {
		process.err = process.cmd.Wait()
		close(process.done)
	}()
	return process, e.watchdog.guard(e.assets)
}

func (p *controllerManagerProcess) exited() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s has ended: %w", controllerManager, errors.Join(p.err, errors.New("see its log")))
	default:
		return nil
	}
}

func (p *controllerManagerProcess) stop() error {
	if p.exited() != nil {
		return nil
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", controllerManager, err)
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(10 * time.Second):
	}
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", controllerManager, err)
	}
	<-p.done
	return nil
}
