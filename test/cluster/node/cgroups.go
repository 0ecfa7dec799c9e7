package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const cgroupMount = "/sys/fs/cgroup"

// cgroupParents lists the directories that a cgroup of ours can hang in: one per hierarchy of version 1 (and of a
// hybrid's version 2), or the single root of version 2.
func cgroupParents(mount string) ([]string, error) {
	if isVersion2(mount) {
		return []string{mount}, nil
	}
	entries, err := os.ReadDir(mount)
	if err != nil {
		return nil, fmt.Errorf("find the cgroup hierarchies: %w", err)
	}
	var parents []string
	for _, e := range entries {
		if e.IsDir() {
			parents = append(parents, filepath.Join(mount, e.Name()))
		}
	}
	return parents, nil
}

func isVersion2(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "cgroup.controllers"))
	return err == nil
}

// makeCgroups makes the cgroup that the kubelet hangs its own below, in every hierarchy.
func (l Layout) makeCgroups() error {
	parents, err := cgroupParents(cgroupMount)
	if err != nil {
		return err
	}
	for _, parent := range parents {
		dir := filepath.Join(parent, l.Cgroup())
		if parent == cgroupMount {
			enable := []byte("+cpu +cpuset +memory +pids +io")
			if err := os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), enable, 0o644); err != nil {
				return fmt.Errorf("enable cgroup controllers: %w", err)
			}
		}
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make cgroup: %w", err)
		}
		// A new cpuset of version 1 is empty, and nothing can enter it.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			value, err := os.ReadFile(filepath.Join(parent, file))
			if err != nil {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, file), value, 0o644); err != nil {
				return fmt.Errorf("fill cgroup: %w", err)
			}
		}
	}
	return nil
}

// RemoveCgroups removes every cgroup of the cluster. The kernel takes a moment to let go of ended processes.
func (l Layout) RemoveCgroups() error {
	parents, err := cgroupParents(cgroupMount)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, parent := range parents {
		if err := removeTree(filepath.Join(parent, l.Cgroup()), time.Now().Add(10*time.Second)); err != nil {
			return err
		}
	}
	return nil
}

// removeTree removes a cgroup and all below it, the lowest first; files in it are the kernel's and go with it.
func removeTree(root string, deadline time.Time) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("find cgroups: %w", err)
	}
	slices.SortFunc(dirs, func(a, b string) int { return strings.Compare(b, a) })
	for _, dir := range dirs {
		for {
			err := syscall.Rmdir(dir)
			if err == nil || errors.Is(err, syscall.ENOENT) {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("remove cgroup %s: %w", dir, err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}
