package lifecycle

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/c5c3/openstack-upgrade/test/cluster/binaries"
)

const ownPackage = "github.com/c5c3/openstack-upgrade/test/cluster"

// placeSelf puts the cluster command where it can supervise from for as long as the cluster lives. It is this very
// program, unless a test called us: its program would know nothing of supervising.
func placeSelf(ctx context.Context, target string) error {
	if info, ok := debug.ReadBuildInfo(); ok && info.Path == ownPackage {
		return copySelf(target)
	}
	root, err := binaries.Root()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", target, "./test/cluster")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the cluster command: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

func copySelf(target string) error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("copy this program: %w", err)
	}
	defer self.Close()
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("copy this program: %w", err)
	}
	copied, err := os.OpenFile(target, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return fmt.Errorf("copy this program: %w", err)
	}
	defer copied.Close()
	if _, err := io.Copy(copied, self); err != nil {
		return fmt.Errorf("copy this program: %w", err)
	}
	return copied.Close()
}
