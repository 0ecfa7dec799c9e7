package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/c5c3/openstack-upgrade/test/cluster/node"
)

// requirement is a file of the host that the node runs, and the Debian package that brings it.
type requirement struct{ file, pkg string }

var requirements = []requirement{
	{"runc", "runc"},
	{filepath.Join(node.CNIPlugins, "bridge"), "containernetworking-plugins"},
	{"iptables", "iptables"},
	{"ip", "iproute2"},
	{"conntrack", "conntrack"},
	{"nsenter", "util-linux"},
}

var systemPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// require makes sure that a node can live on this machine, and installs what Debian has and the machine has not.
func require(ctx context.Context, p progress) error {
	if runtime.GOOS != "linux" {
		return errors.New("a cluster needs Linux")
	}
	if os.Geteuid() != 0 {
		return errors.New("a cluster needs root: run this with sudo -E, or in a privileged container")
	}
	if err := node.CanIsolate(ctx); err != nil {
		return err
	}
	missing := missingPackages(onDisk)
	if len(missing) == 0 {
		return nil
	}
	if !onDisk("apt-get") {
		return fmt.Errorf("this machine lacks %s and has no apt-get: install them first", strings.Join(missing, ", "))
	}
	p.say("install %s", strings.Join(missing, ", "))
	install := append([]string{"install", "--yes", "--no-install-recommends"}, missing...)
	if err := apt(ctx, install...); err == nil {
		return nil
	}
	if err := apt(ctx, "update"); err != nil {
		return err
	}
	return apt(ctx, install...)
}

func missingPackages(present func(file string) bool) []string {
	var missing []string
	for _, r := range requirements {
		if !present(r.file) && !slices.Contains(missing, r.pkg) {
			missing = append(missing, r.pkg)
		}
	}
	return missing
}

// onDisk finds a command in the directories that the node's own search path has, whatever the caller's says.
func onDisk(file string) bool {
	dirs := systemPath
	if filepath.IsAbs(file) {
		dirs = []string{""}
	}
	return slices.ContainsFunc(dirs, func(dir string) bool {
		info, err := os.Stat(filepath.Join(dir, file))
		return err == nil && !info.IsDir()
	})
}

func apt(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := cmd.CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("apt-get %s: %w: %s", args[0], err, lines[len(lines)-1])
	}
	return nil
}
