package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// component is a running program of the cluster beside etcd and the API server.
type component struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// kubeconfigFor lets a program act as a user with a client certificate.
func (e *Env) kubeconfigFor(name, program string, groups ...string) (path string, err error) {
	user, err := e.plane.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{QPS: -1})
	if err != nil {
		return "", fmt.Errorf("make the user of %s: %w", program, err)
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return "", fmt.Errorf("make the kubeconfig of %s: %w", program, err)
	}
	path = filepath.Join(e.Dir, "pki", program+".kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return "", fmt.Errorf("write the kubeconfig of %s: %w", program, err)
	}
	return path, nil
}

// startComponent runs a program. Flags that the world was given for it come last and win.
func (e *Env) startComponent(name string, flags ...string) (*component, error) {
	return e.launch(name, name, slices.Concat(flags, e.flags[name]))
}

// launch runs a program with these flags and no others, and has it write to a log of this name.
func (e *Env) launch(name, logged string, flags []string) (*component, error) {
	log, err := e.log(logged)
	if err != nil {
		return nil, err
	}
	c := &component{name: name, done: make(chan struct{}), cmd: exec.Command(filepath.Join(e.assets, name), flags...)}
	c.cmd.Stdout, c.cmd.Stderr = log, log
	// Its own process group: Ctrl-C is for the test, which then stops it.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.done)
	}()
	return c, e.watchdog.guard(e.assets)
}

func (c *component) exited() error {
	select {
	case <-c.done:
		return fmt.Errorf("%s has ended: %w", c.name, errors.Join(c.err, errors.New("see its log")))
	default:
		return nil
	}
}

func (c *component) stop() error {
	if c.exited() != nil {
		return nil
	}
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", c.name, err)
	}
	select {
	case <-c.done:
		return nil
	case <-time.After(10 * time.Second):
	}
	if err := c.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", c.name, err)
	}
	<-c.done
	return nil
}
