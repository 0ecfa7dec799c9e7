// Package binaries builds the programs that a test cluster is made of from their Go modules, and keeps them. Every
// program comes from a module of its own under test/cluster/modules, so their requirements never meet ours; what is
// built is kept under the user's cache directory by what it was built from, so a fresh clone builds nothing again.
package binaries

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Log is told what is being built, and every half minute that it still is.
type Log func(format string, args ...any)

// Node names what a cluster runs in any case, Cluster what it can run, Envtest what controller-runtime's envtest starts,
// FakeNodes what is beside it where nodes by the dozen are played.
var (
	Node = []string{
		"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl", "etcd",
		"containerd", "containerd-shim-runc-v2", "ctr", "coredns", "pause",
	}
	Cluster   = append(slices.Clone(Node), "cert-manager", "cert-manager-crds.yaml")
	Envtest   = []string{"kube-apiserver", "etcd", "kubectl", "kube-controller-manager"}
	FakeNodes = []string{"kube-scheduler", "kwok"}
)

// Ensure builds what is missing of names (of everything in Cluster, if there are none) and returns the one directory
// that holds them all.
func Ensure(ctx context.Context, log Log, names ...string) (dir string, err error) {
	if len(names) == 0 {
		names = Cluster
	}
	if err := Check(names); err != nil {
		return "", err
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	root = filepath.Join(root, "test", "cluster", "modules")
	store, err := storeDir()
	if err != nil {
		return "", err
	}
	keys, err := keysOf(root)
	if err != nil {
		return "", err
	}
	dir = filepath.Join(store, setKey(keys))

	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return exists(filepath.Join(dir, name)) })
	if len(missing) == 0 {
		return dir, nil
	}
	unlock, err := lock(ctx, filepath.Join(store, ".lock"), log)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the directory of binaries: %w", err)
	}
	for _, name := range missing {
		p := programs[name]
		if err := ensure(ctx, log, store, dir, root, name, p, keys[p.module]); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// Check says which of names nothing here can build.
func Check(names []string) error {
	for _, name := range names {
		if _, known := programs[name]; !known {
			return fmt.Errorf("unknown binary %q; known are %s", name, strings.Join(Known(), ", "))
		}
	}
	return nil
}

// ensure puts name into dir: a link to what was built from the same module once, or to what is built now.
func ensure(ctx context.Context, log Log, store, dir, root, name string, p program, key string) error {
	target := filepath.Join(dir, name)
	if exists(target) {
		return nil
	}
	kept := filepath.Join(store, "by-module", p.module+"-"+key, name)
	if !exists(kept) {
		if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
			return fmt.Errorf("make the directory of %s: %w", name, err)
		}
		fresh := kept + ".new"
		started := time.Now()
		log("build %s (%s)", name, p.takes)
		stop := remind(log, "build "+name, started)
		err := p.make(ctx, filepath.Join(root, p.module), fresh)
		stop()
		if err != nil {
			return fmt.Errorf("build %s: %w", name, err)
		}
		if err := os.Rename(fresh, kept); err != nil {
			return fmt.Errorf("keep %s: %w", name, err)
		}
		log("built %s in %s", name, time.Since(started).Round(time.Second))
	}
	if err := os.Link(kept, target); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("link %s: %w", name, err)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// remind logs every half minute until it is stopped, so that nobody takes ten minutes of compiling for a hang.
func remind(log Log, what string, since time.Time) (stop func()) {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(30 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				log("%s: still at it after %s", what, time.Since(since).Round(time.Second))
			}
		}
	}()
	return func() { close(done) }
}

// lock keeps two builds from doing the same work at once.
func lock(ctx context.Context, path string, log Log) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make the directory of binaries: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the binaries: %w", err)
	}
	started, said := time.Now(), time.Time{}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("lock the binaries: %w", err)
		}
		if time.Since(said) > 30*time.Second {
			said = time.Now()
			log("wait for another build that holds %s, for %s so far", path, time.Since(started).Round(time.Second))
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("wait for another build that holds %s: %w", path, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}
