package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/c5c3/openstack-upgrade/test/cluster/binaries"
)

const controllerManager = "kube-controller-manager"

// findAssets is the directory of the programs. It builds nothing: a test that compiles Kubernetes for ten minutes
// without a word looks like a hang.
func findAssets(ctx context.Context, programs ...string) (string, error) {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		for _, name := range programs {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				return "", fmt.Errorf("KUBEBUILDER_ASSETS is %s, but there is no %s in it: unset it, or let `make test-integration` build the programs and set it", dir, name)
			}
		}
		return dir, nil
	}
	ctx, refuse := context.WithCancel(ctx)
	defer refuse()
	toBuild := false
	dir, err := binaries.Ensure(ctx, func(string, ...any) { toBuild = true; refuse() }, programs...)
	switch {
	case toBuild:
		return "", fmt.Errorf("etcd and Kubernetes are not built yet: `make test-integration` builds them first (about ten minutes, once)")
	case err != nil:
		return "", fmt.Errorf("find etcd and Kubernetes: %w", err)
	}
	return dir, nil
}

// repository is the root directory, found upwards from the package that is tested.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "deploy", "base", "crds")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no deploy/base/crds above the working directory: run the tests inside the repository")
		}
		dir = parent
	}
}
