package harness

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/test/cluster/binaries"
)

func TestComponentsEndWithTheProcessThatStartedThem(t *testing.T) {
	t.Parallel()
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	dir := t.TempDir()
	program := filepath.Join(dir, "component")
	require.NoError(t, exec.Command("cp", sleep, program).Run())
	component := exec.Command(program, "300")
	require.NoError(t, component.Start())

	w, err := startWatchdog(dir)
	require.NoError(t, err)
	require.NoError(t, w.guard(dir))
	require.Contains(t, w.guarded, component.Process.Pid)
	// The end of a process closes its pipes; nothing else tells the watchdog.
	require.NoError(t, w.release())

	ended := make(chan error, 1)
	go func() { ended <- component.Wait() }()
	select {
	case err := <-ended:
		require.ErrorContains(t, err, "killed")
	case <-time.After(10 * time.Second):
		t.Fatal("the component lives on")
	}
}

func TestMissingProgramsAreSaidWithWhatBuildsThem(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", t.TempDir())
	_, err := findAssets(t.Context(), binaries.Envtest...)
	require.ErrorContains(t, err, "there is no kube-apiserver in it")
	require.ErrorContains(t, err, "make test-integration")

	t.Setenv("KUBEBUILDER_ASSETS", "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	_, err = findAssets(t.Context(), binaries.Envtest...)
	require.EqualError(t, err, "etcd and Kubernetes are not built yet: `make test-integration` builds them first (about ten minutes, once)")
}
