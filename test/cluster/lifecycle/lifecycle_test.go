package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/c5c3/openstack-upgrade/test/cluster/node"
)

func TestOnlyMissingPackagesAreInstalled(t *testing.T) {
	present := map[string]bool{"iptables": true, "ip": true, "nsenter": true}
	got := missingPackages(func(file string) bool { return present[file] })
	if want := []string{"runc", "containernetworking-plugins", "conntrack"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := missingPackages(func(string) bool { return true }); len(got) > 0 {
		t.Errorf("nothing is missing, yet %v", got)
	}
}

func TestMountsOfOneClusterAreFoundAndNoOthers(t *testing.T) {
	const table = `22 1 254:0 / / rw - ext4 /dev/vda rw
30 22 0:30 / /state/dev rw - tmpfs tmpfs rw
31 30 0:31 / /state/dev/var\040lib rw - tmpfs tmpfs rw
32 22 0:32 / /state/development rw - tmpfs tmpfs rw
short
`
	want := []string{"/state/dev", "/state/dev/var lib"}
	if got := mountsBelow(table, "/state/dev"); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestEveryDeedOnAClusterThatIsNotUpSaysSo(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	_, errKubeconfig := Kubeconfig("dev")
	_, errLoad := Load(context.Background(), "dev", "image.tar")
	for deed, err := range map[string]error{
		"status":     Status(context.Background(), os.Stdout, "dev", time.Now()),
		"kubeconfig": errKubeconfig,
		"load":       errLoad,
		"exec":       Exec("dev", "", []string{"true"}),
	} {
		if !errors.Is(err, ErrNotUp) {
			t.Errorf("%s: %v", deed, err)
		}
	}
}

func TestTakingDownWhatIsNotThereSucceedsTwice(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for range 2 {
		if err := Down(context.Background(), t.Logf, "test-nothing"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTakingDownRemovesTheRemainsOfADeadCluster(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	layout, err := node.NewLayout("test-dead")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(layout.State, "log"), 0o755); err != nil {
		t.Fatal(err)
	}
	stale := node.Process{PID: os.Getpid(), Started: "1", Boot: "another"}
	if err := layout.WriteState(node.State{Supervisor: stale, Init: stale}); err != nil {
		t.Fatal(err)
	}
	if err := Down(context.Background(), t.Logf, "test-dead"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(layout.State); !os.IsNotExist(err) {
		t.Errorf("the state is still there: %v", err)
	}
}

func TestWaitingEndsWithWhatWasSeenLast(t *testing.T) {
	p := progress{log: t.Logf, started: time.Now()}
	err := p.await(context.Background(), "rain", 200*time.Millisecond, func(context.Context) (bool, string, error) {
		return false, "sunshine", nil
	})
	if err == nil || !strings.Contains(err.Error(), "rain") || !strings.Contains(err.Error(), "sunshine") {
		t.Errorf("got %v", err)
	}
	broken := errors.New("broken")
	err = p.await(context.Background(), "rain", time.Minute, func(context.Context) (bool, string, error) {
		return false, "", broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestWaitingForAComponentEndsWhenTheNodeHas(t *testing.T) {
	layout := node.Layout{Name: "dev", State: t.TempDir()}
	if err := os.MkdirAll(filepath.Join(layout.State, "log"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(layout.Log("supervisor"), []byte("mount /proc: refused\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := watcher{layout: layout}.running("etcd")(context.Background())
	if err == nil || !strings.Contains(err.Error(), "refused") || !strings.Contains(err.Error(), layout.Log("supervisor")) {
		t.Errorf("got %v", err)
	}
}

func TestAConditionIsTrueOnlyIfItSaysSo(t *testing.T) {
	conditions := []condition{{"Ready", "False", "no network"}, {"Available", "True", ""}}
	if ok, seen := conditionTrue(conditions, "Ready"); ok || seen != "no network" {
		t.Errorf("Ready: %v %q", ok, seen)
	}
	if ok, _ := conditionTrue(conditions, "Available"); !ok {
		t.Error("Available is not true")
	}
	if ok, seen := conditionTrue(nil, "Ready"); ok || seen == "" {
		t.Errorf("none: %v %q", ok, seen)
	}
}

func TestWaitingEndsWhenAComponentEndsAgainAndAgain(t *testing.T) {
	layout := node.Layout{Name: "dev", State: t.TempDir()}
	if err := os.MkdirAll(filepath.Join(layout.State, "log"), 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := node.Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	state := node.State{Supervisor: self, Init: self}
	for _, c := range []struct {
		restarts int
		fails    bool
	}{{tooOften - 1, false}, {tooOften, true}} {
		components := fmt.Sprintf(`[{"name":"etcd","state":"restarting","restarts":%d}]`, c.restarts)
		if err := os.WriteFile(filepath.Join(layout.State, "components.json"), []byte(components), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(layout.Log("etcd"), []byte("data directory is damaged\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, seen, err := watcher{layout: layout, state: state}.running("kubelet")(context.Background())
		if (err != nil) != c.fails {
			t.Errorf("%d restarts: %v", c.restarts, err)
		}
		if c.fails && (!strings.Contains(err.Error(), "damaged") || !strings.Contains(err.Error(), layout.Log("etcd"))) {
			t.Errorf("got %v", err)
		}
		if !c.fails && seen != "etcd restarting" {
			t.Errorf("saw %q", seen)
		}
	}
}
