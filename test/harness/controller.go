package harness

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/c5c3/openstack-upgrade/test/free"
)

// built remembers the binary of the controller, which is built once per world.
type built struct {
	once sync.Once
	path string
	err  error
}

// ControllerProcess is a running controller: the real binary, as its own process, with the shipped rights.
type ControllerProcess struct {
	// Actor tells the calls of this process, and of those that succeed it in the same namespace.
	Actor Actor
	// Log is the file that it writes to.
	Log string

	cmd    *exec.Cmd
	done   chan struct{}
	err    error
	health string
}

// StartController runs the controller for one namespace and waits until it is ready. Further flags come after, and win
// over, those that a test needs: no leader election, no metrics, logs as text. What is no flag but NAME=value goes into
// its environment. It ends with the test, if not before.
func (e *Env) StartController(t testing.TB, namespace string, flags ...string) *ControllerProcess {
	t.Helper()
	c := e.RunController(t, namespace, e.ControllerConfig(t), flags...)
	e.Eventually(t, Patience, "the controller to be ready", func(ctx context.Context) string {
		if c.Ended() {
			t.Fatalf("the controller has ended: %v\n%s", c.err, c.tail())
		}
		return c.Unready(ctx)
	})
	return c
}

// RunController is StartController as somebody else, and without waiting: what it lacks may be what a test is about.
func (e *Env) RunController(t testing.TB, namespace string, as *rest.Config, flags ...string) *ControllerProcess {
	t.Helper()
	e.built.once.Do(func() { e.built.path, e.built.err = e.buildController(t.Context()) })
	if e.built.err != nil {
		t.Fatal(e.built.err)
	}
	// Each process has its own: two in one namespace may talk over different wires.
	kubeconfig := filepath.Join(e.Dir, "pki", fmt.Sprintf("controller-%s-%d.kubeconfig", namespace, e.launched.Add(1)))
	if err := clientcmd.WriteToFile(kubeconfigOf(as), kubeconfig); err != nil {
		t.Fatalf("write the kubeconfig of the controller: %v", err)
	}
	health := free.Address(t)
	log, err := os.OpenFile(filepath.Join(e.Dir, "controller-"+namespace+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatalf("make the log of the controller: %v", err)
	}
	name := "controller-" + namespace
	environment := append(os.Environ(), "KUBECONFIG="+kubeconfig)
	flags = slices.DeleteFunc(slices.Clone(flags), func(flag string) bool {
		isFlag := strings.HasPrefix(flag, "-")
		if !isFlag {
			environment = append(environment, flag)
		}
		return !isFlag
	})
	c := &ControllerProcess{
		Actor: Actor{User: "system:serviceaccount:" + ControllerNamespace + ":" + ControllerServiceAccount, Agent: name + "/"},
		Log:   log.Name(), done: make(chan struct{}), health: health,
		cmd: &exec.Cmd{
			Path: e.built.path,
			// The name that a program is called by is the beginning of its user agent.
			Args: slices.Concat([]string{name, "--watch-namespaces=" + namespace, "--leader-elect=false", "--leader-election-namespace=" + ControllerNamespace,
				"--metrics-address=0", "--health-address=" + health, "--log-format=text", "--log-level=debug"}, flags),
			Env:    environment,
			Stdout: log, Stderr: log,
			SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
		},
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatalf("start the controller: %v", err)
	}
	go func() {
		c.err = c.cmd.Wait()
		_ = log.Close()
		close(c.done)
	}()
	t.Cleanup(func() { c.end(t, syscall.SIGTERM) })
	if err := e.watchdog.guard(e.Dir); err != nil {
		t.Fatal(err)
	}
	return c
}

// Lasting is a test that leaves what it would clean up to another, which lasts longer.
type Lasting struct {
	testing.TB
	Longer testing.TB
}

// Cleanup outlasts the test.
func (l Lasting) Cleanup(f func()) { l.Longer.Cleanup(f) }

// PID is the number of the process.
func (c *ControllerProcess) PID() int { return c.cmd.Process.Pid }

// Ended is whether the process is no more.
func (c *ControllerProcess) Ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Unready is why it says that it is not ready; empty when it says that it is.
func (c *ControllerProcess) Unready(ctx context.Context) string {
	return unready(ctx, "http://"+c.health+"/readyz")
}

// Stop ends the controller in good order.
func (c *ControllerProcess) Stop(t testing.TB) { t.Helper(); c.end(t, syscall.SIGTERM) }

// Kill ends it at once, as a crash does.
func (c *ControllerProcess) Kill(t testing.TB) { t.Helper(); c.end(t, syscall.SIGKILL) }

// Pause stops the process where it stands, with all it has begun, until Resume: a machine that is starved, or migrated.
func (c *ControllerProcess) Pause(t testing.TB) { t.Helper(); c.signal(t, syscall.SIGSTOP) }

// Resume lets it go on.
func (c *ControllerProcess) Resume(t testing.TB) { t.Helper(); c.signal(t, syscall.SIGCONT) }

func (c *ControllerProcess) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := c.cmd.Process.Signal(signal); err != nil && !c.Ended() {
		t.Errorf("send %s to the controller: %v", signal, err)
	}
}

// AwaitEnd waits until the process has ended by itself, and gives what it ended with.
func (c *ControllerProcess) AwaitEnd(t testing.TB, limit time.Duration) error {
	t.Helper()
	select {
	case <-c.done:
	case <-time.After(limit):
		t.Fatalf("the controller has not ended after %s\n%s", limit, c.tail())
	}
	return c.err
}

func (c *ControllerProcess) end(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if c.Ended() {
		return
	}
	c.signal(t, syscall.SIGCONT) // one that is paused would hear of nothing but its death
	if err := c.cmd.Process.Signal(signal); err != nil {
		t.Errorf("send %s to the controller: %v", signal, err)
		return
	}
	select {
	case <-c.done:
		if signal == syscall.SIGTERM && c.err != nil {
			t.Errorf("the controller was asked to end and failed: %v\n%s", c.err, c.tail())
		}
	case <-time.After(30 * time.Second):
		t.Errorf("the controller does not end on %s: killed", signal)
		_ = c.cmd.Process.Kill() // it may have ended by now
		<-c.done
	}
}

// tail is the end of the log.
func (c *ControllerProcess) tail() string {
	content, err := os.ReadFile(c.Log)
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-4000):])
}

func (e *Env) buildController(ctx context.Context) (string, error) {
	path := filepath.Join(e.Dir, "controller")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "./controller")
	cmd.Dir = e.root
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the controller: %w\n%s", err, output)
	}
	return path, nil
}

func kubeconfigOf(config *rest.Config) clientcmdapi.Config {
	return clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"test": {Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}},
		CurrentContext: "test",
	}
}

func unready(ctx context.Context, url string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "it answers " + response.Status
	}
	return ""
}
