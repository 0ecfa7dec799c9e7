//go:build cluster

package lifecycle_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/c5c3/openstack-upgrade/test/cluster/addons"
	"github.com/c5c3/openstack-upgrade/test/cluster/archive"
	"github.com/c5c3/openstack-upgrade/test/cluster/lifecycle"
	"github.com/c5c3/openstack-upgrade/test/cluster/node"
)

const name = "proof"

// host is what a cluster must leave as it was.
type host struct {
	interfaces []string
	mounts     string
	kernel     map[string]string
}

func look(t *testing.T) host {
	t.Helper()
	h := host{kernel: map[string]string{}}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		h.interfaces = append(h.interfaces, i.Name)
	}
	// Others may mount elsewhere meanwhile; these are the places that the node covers for itself.
	for line := range strings.Lines(read(t, "/proc/self/mounts")) {
		point := strings.Fields(line)[1]
		for _, ours := range []string{"/run", "/var/lib", "/var/log", "/proc/sys", "openstack-upgrade/cluster"} {
			if strings.Contains(point, ours) {
				h.mounts += line
			}
		}
	}
	for _, file := range []string{"kernel/panic", "kernel/panic_on_oops", "vm/overcommit_memory", "vm/panic_on_oom", "net/ipv4/ip_forward"} {
		h.kernel[file] = read(t, "/proc/sys/"+file)
	}
	return h
}

func (h host) mustBeAsBefore(t *testing.T, before host) {
	t.Helper()
	if !slices.Equal(h.interfaces, before.interfaces) {
		t.Errorf("interfaces of the host: %v, before %v", h.interfaces, before.interfaces)
	}
	if h.mounts != before.mounts {
		t.Errorf("mounts of the host:\n%s\nbefore:\n%s", h.mounts, before.mounts)
	}
	for file, value := range before.kernel {
		if h.kernel[file] != value {
			t.Errorf("%s is %s, was %s", file, h.kernel[file], value)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func up(t *testing.T) node.Layout {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute)
	defer cancel()
	if err := lifecycle.Up(ctx, t.Logf, name, addons.CertManager); err != nil {
		t.Fatal(err)
	}
	layout, err := node.NewLayout(name)
	if err != nil {
		t.Fatal(err)
	}
	state, _, err := layout.ReadState()
	if err != nil {
		t.Fatal(err)
	}
	layout.Bin = state.Bin
	return layout
}

func down(t *testing.T, layout node.Layout) {
	t.Helper()
	if err := lifecycle.Down(context.Background(), t.Logf, name); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(layout.State); !os.IsNotExist(err) {
		t.Errorf("state is left: %v", err)
	}
	if left, _ := filepath.Glob("/sys/fs/cgroup/*/" + layout.Cgroup()); len(left) > 0 {
		t.Errorf("cgroups are left: %v", left)
	}
	if left := processes(layout); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// processes finds whatever was started from the cluster's state or has a word of it in its arguments.
func processes(layout node.Layout) []string {
	var found []string
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		if line, err := os.ReadFile(path); err == nil && strings.Contains(string(line), layout.State+"/") {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

type client struct {
	t      *testing.T
	layout node.Layout
}

func (c client) try(stdin string, args ...string) (string, error) {
	args = append([]string{"--kubeconfig", c.layout.Kubeconfig(), "--cache-dir", c.layout.KubectlCache()}, args...)
	cmd := exec.CommandContext(c.t.Context(), c.layout.Program("kubectl"), args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c client) must(args ...string) string {
	c.t.Helper()
	out, err := c.try("", args...)
	if err != nil {
		c.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func visitorImage(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	binary, tar := filepath.Join(dir, "visitor"), filepath.Join(dir, "visitor.tar")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", binary, "./testdata/visitor")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := archive.WriteFile(tar, archive.Image{
		Ref:    "test.local/visitor:1",
		Config: archive.Config{Entrypoint: []string{"/visitor"}, User: "65532:65532"},
		Layers: []archive.Layer{{Files: []archive.File{{Path: "visitor", Source: binary}}}},
	}); err != nil {
		t.Fatal(err)
	}
	return tar
}

func TestAClusterServesAndLeavesNothingBehind(t *testing.T) {
	before := look(t)
	layout := up(t)
	t.Cleanup(func() {
		down(t, layout)
		look(t).mustBeAsBefore(t, before)
	})
	look(t).mustBeAsBefore(t, before)
	c := client{t, layout}

	started := time.Now()
	up(t)
	if took := time.Since(started); took > 2*time.Second {
		t.Errorf("the second up took %s", took)
	}

	names, err := lifecycle.Load(context.Background(), name, visitorImage(t))
	if err != nil || !slices.Equal(names, []string{"test.local/visitor:1"}) {
		t.Fatalf("loaded %v, %v", names, err)
	}
	c.must("apply", "-f", "testdata/proof.yaml")
	c.must("wait", "-n", "proof", "--for=condition=Ready", "pod/server", "--timeout=60s")
	c.must("apply", "-f", "testdata/visit.yaml")
	c.must("wait", "-n", "proof", "--for=condition=Complete", "job/visit", "--timeout=60s")
	if out := c.must("logs", "-n", "proof", "job/visit"); out != "welcome\n" {
		t.Errorf("the Job's log says %q", out)
	}
	full := "http://server.proof.svc.cluster.local"
	if out := c.must("exec", "-n", "proof", "server", "--", "/visitor", "get", full); out != "welcome\n" {
		t.Errorf("a command in the pod says %q", out)
	}
	if out, err := c.try("", "exec", "-n", "proof", "server", "--", "/visitor", "get", "http://example.com"); err == nil ||
		!strings.Contains(out, "no such host") {
		t.Errorf("a name outside the cluster: %v, %q", err, out)
	}

	c.must("wait", "-n", "proof", "--for=condition=Ready", "certificate/serving", "--timeout=60s")
	c.must("wait", "--for=jsonpath={.webhooks[0].clientConfig.caBundle}", "validatingwebhookconfiguration/proof", "--timeout=60s")

	privileged := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"bad","namespace":"proof"},
		"spec":{"containers":[{"name":"a","image":"test.local/visitor:1","securityContext":{"privileged":true}}]}}`
	if out, err := c.try(privileged, "apply", "-f", "-"); err == nil || !strings.Contains(out, "violates PodSecurity") {
		t.Errorf("a privileged pod: %v, %q", err, out)
	}
	mustBeAudited(t, layout)
}

// mustBeAudited looks for one read and one write of kubectl, each with who asked.
func mustBeAudited(t *testing.T, layout node.Layout) {
	t.Helper()
	file, err := os.Open(layout.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	seen := map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Verb, UserAgent string
			User            struct{ Username string }
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		if strings.HasPrefix(event.UserAgent, "kubectl/") && event.User.Username == "kubernetes-admin" {
			seen[event.Verb]++
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if seen["get"] == 0 || seen["patch"]+seen["create"] == 0 {
		t.Errorf("requests of kubectl by verb: %v", seen)
	}
}

func TestAClusterWhoseSupervisorIsKilledComesUpAgain(t *testing.T) {
	before := look(t)
	layout := up(t)
	t.Cleanup(func() {
		down(t, layout)
		look(t).mustBeAsBefore(t, before)
	})
	state, _, err := layout.ReadState()
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(state.Supervisor.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); state.Init.Alive(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the node outlives its supervisor")
		}
	}
	if left := processes(layout); len(left) > 0 {
		t.Errorf("processes outlive the supervisor: %v", left)
	}
	up(t)
	if again, _, err := layout.ReadState(); err != nil || again.Supervisor == state.Supervisor || !again.Running() {
		t.Errorf("after the second up: %+v, %v", again, err)
	}
}
