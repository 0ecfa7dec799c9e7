package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// The hidden commands by which this program becomes the three processes that carry a node.
const (
	CommandSupervise = "node-supervise"
	CommandInit      = "node-init"
	CommandKeep      = "node-keep"
)

// listenerFD is the number under which the host's socket is handed on: the first after the standard three.
const listenerFD = 3

const namespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC

// CanIsolate says whether this process may make the namespaces that a node lives in.
func CanIsolate(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	if err := cmd.Run(); err != nil {
		return errors.New("this machine does not let us make namespaces; inside a container, start it privileged")
	}
	return nil
}

// Start leaves a supervisor behind that outlives this process, listening on the host's loopback, and returns once
// the private namespaces exist.
func (l Layout) Start(ctx context.Context, listener *net.TCPListener) (State, error) {
	socket, err := listener.File()
	if err != nil {
		return State{}, fmt.Errorf("hand over the listening socket: %w", err)
	}
	defer socket.Close()
	log, err := os.Create(l.Log("supervisor"))
	if err != nil {
		return State{}, fmt.Errorf("open the supervisor's log: %w", err)
	}
	defer log.Close()

	port := listener.Addr().(*net.TCPAddr).Port
	// Whoever loses patience with the start loses the wait alone: the supervisor lives on.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), l.Self(), CommandSupervise, l.Name, l.State, l.Bin, fmt.Sprint(port))
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{socket}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return State{}, fmt.Errorf("start the supervisor: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	for {
		state, found, err := l.ReadState()
		if err != nil {
			return State{}, err
		}
		if found && state.Supervisor.PID == cmd.Process.Pid {
			return state, nil
		}
		select {
		case <-ctx.Done():
			return State{}, fmt.Errorf("wait for the supervisor: %w", ctx.Err())
		case <-ended:
			return State{}, fmt.Errorf("the supervisor ended at once: %s (all of it in %s)", Tail(l.Log("supervisor"), 3), l.Log("supervisor"))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Supervise is the supervisor: it holds the first process of the private world until ctx ends, and ends with it. The kernel kills
// that process when the thread that started it ends, hence the lock: the main thread lives as long as the process.
func (l Layout) Supervise(ctx context.Context, port int) error {
	runtime.LockOSThread()
	if err := l.makeCgroups(); err != nil {
		return err
	}
	listener := os.NewFile(listenerFD, "listener")
	cmd := exec.CommandContext(ctx, l.Self(), CommandInit, l.Name, l.State, l.Bin)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{listener}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the node's first process: %w", err)
	}
	listener.Close()

	self, err := Identify(os.Getpid())
	if err != nil {
		return errors.Join(err, cmd.Process.Kill())
	}
	first, err := Identify(cmd.Process.Pid)
	if err != nil {
		return errors.Join(err, cmd.Process.Kill())
	}
	state := State{Supervisor: self, Init: first, Bin: l.Bin, Port: port, Since: time.Now()}
	if err := l.WriteState(state); err != nil {
		return errors.Join(err, cmd.Process.Kill())
	}
	return cmd.Wait()
}

// Init is the first process of the private world: it starts the keeper, buries orphans, and ends with the keeper.
func (l Layout) Init() error {
	keeper, err := os.StartProcess(l.Self(), []string{l.Self(), CommandKeep, l.Name, l.State, l.Bin}, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, os.NewFile(listenerFD, "listener")},
		Env:   []string{"PATH=" + l.searchPath(), "HOME=/root", "LANG=C.UTF-8"},
	})
	if err != nil {
		return fmt.Errorf("start the keeper: %w", err)
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait for children: %w", err)
		}
		if pid == keeper.Pid {
			return fmt.Errorf("the keeper ended with status %d", status.ExitStatus())
		}
	}
}
