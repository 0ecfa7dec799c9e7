//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/test/stage"
)

// cluster is the name of the tests' own cluster: that of the demo stays as it is.
const cluster = "e2e"

// patience is for what comes by itself on a slow machine; words is how soon trouble must be said.
const (
	patience = 10 * time.Minute
	words    = time.Minute
)

// on is the stage that all tests share.
var on *stage.Stage

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	say := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	var err error
	if on, err = stage.Up(ctx, say, cluster); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	go func() { settled <- settle(ctx) }()
	code := m.Run()
	if code != 0 {
		on.Report(context.WithoutCancel(ctx), os.Stdout)
	}
	if err := on.Down(context.WithoutCancel(ctx)); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	return code
}

// patchTo asks for a release and an image tag in one edit, as a user types it.
func patchTo(t *testing.T, key client.ObjectKey, release, tag string) {
	t.Helper()
	_, err := on.Kubectl(t.Context(), "", "-n", key.Namespace, "patch", "glance", key.Name, "--type=merge", "-p", stage.Patch(release, tag))
	require.NoError(t, err)
}

func get(t *testing.T, key client.ObjectKey) stage.Object {
	t.Helper()
	g, err := on.Get(t.Context(), key)
	require.NoError(t, err)
	return g
}

func mark(t *testing.T) stage.Mark {
	t.Helper()
	m, err := on.Mark()
	require.NoError(t, err)
	return m
}
