package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// The states of a component.
const (
	Waiting    = "waiting"
	Running    = "running"
	Restarting = "restarting"
)

const restartDelay = 2 * time.Second

// keeper starts the components, restarts what ends, and records all of it.
type keeper struct {
	layout Layout
	ready  map[string]chan struct{}

	mu     sync.Mutex
	states []ComponentState
}

// Keep is the keeper: it furnishes the private world, starts the components and keeps them until ctx ends.
func (l Layout) Keep(ctx context.Context) error {
	if err := l.furnish(ctx); err != nil {
		return err
	}
	handed := os.NewFile(listenerFD, "listener")
	listener, err := net.FileListener(handed)
	if err != nil {
		return fmt.Errorf("take over the listening socket: %w", err)
	}
	// Left open, every component would inherit it.
	if err := handed.Close(); err != nil {
		return fmt.Errorf("take over the listening socket: %w", err)
	}
	k := &keeper{layout: l, ready: map[string]chan struct{}{}}
	components := l.components()
	for _, c := range components {
		k.ready[c.name] = make(chan struct{})
		k.states = append(k.states, ComponentState{Name: c.name, State: Waiting, Since: time.Now()})
	}
	failed := make(chan error, len(components)+1)
	go func() { failed <- forward(ctx, listener) }()
	for i, c := range components {
		go func() { failed <- k.keep(ctx, i, c) }()
	}
	return <-failed
}

// keep holds one component alive. It returns when ctx ends, or if its state or log cannot be written.
func (k *keeper) keep(ctx context.Context, i int, c component) error {
	if c.needs != "" {
		<-k.ready[c.needs]
	}
	log, err := os.OpenFile(k.layout.Log(c.name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", c.name, err)
	}
	defer log.Close()
	go func() {
		for probe := k.probe(c.name); probe(ctx) != nil; time.Sleep(100 * time.Millisecond) {
		}
		close(k.ready[c.name])
	}()
	for {
		cmd := exec.CommandContext(ctx, k.layout.Program(c.name), c.args...)
		cmd.Stdout, cmd.Stderr = log, log
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		err := cmd.Start()
		if err == nil {
			if err := k.record(i, Running, cmd.Process.Pid); err != nil {
				return err
			}
			err = cmd.Wait()
		}
		if _, printErr := fmt.Fprintf(log, "\n%s ended: %v\n", c.name, err); printErr != nil {
			return fmt.Errorf("write the log of %s: %w", c.name, printErr)
		}
		if err := k.record(i, Restarting, 0); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("keep %s: %w", c.name, ctx.Err())
		case <-time.After(restartDelay):
		}
	}
}

func (k *keeper) record(i int, state string, pid int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := &k.states[i]
	if state == Restarting {
		s.Restarts++
	}
	s.State, s.PID, s.Since = state, pid, time.Now()
	return writeJSON(k.layout.path("components.json"), k.states)
}

// probe tells how to see that a component can be used by those that need it.
func (k *keeper) probe(name string) func(context.Context) error {
	switch name {
	case etcd:
		return func(ctx context.Context) error { return dial(ctx, "tcp", "127.0.0.1:2379") }
	case containerd:
		return func(ctx context.Context) error { return dial(ctx, "unix", "/run/containerd/containerd.sock") }
	case apiServer:
		return k.layout.apiReady
	default:
		return func(context.Context) error { return nil }
	}
}

func dial(ctx context.Context, network, address string) error {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	return conn.Close()
}

func (l Layout) apiReady(ctx context.Context) error {
	ca, err := os.ReadFile(l.pki("ca.crt"))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+Address+":"+APIPort+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}
