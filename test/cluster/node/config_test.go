package node

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func written(t *testing.T) Layout {
	t.Helper()
	l := Layout{Name: "dev", State: filepath.Join(t.TempDir(), "dev"), Bin: "/bin-dir"}
	if err := l.Write(now, 4711); err != nil {
		t.Fatal(err)
	}
	return l
}

func content(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestEveryFileThatAComponentIsToldOfIsWritten(t *testing.T) {
	l := written(t)
	madeLater := map[string]bool{l.config("containerd.toml"): true, l.AuditLog(): true}
	for _, c := range l.components() {
		for _, arg := range c.args {
			_, value, _ := strings.Cut(arg, "=")
			if !strings.HasPrefix(value, l.State) || madeLater[value] {
				continue
			}
			if _, err := os.Stat(value); err != nil {
				t.Errorf("%s: %s: %v", c.name, arg, err)
			}
		}
	}
	for line := range strings.Lines(content(t, l.config("kubelet.yaml"))) {
		_, value, _ := strings.Cut(strings.TrimRight(strings.TrimSpace(line), "}"), ": ")
		if i := strings.Index(value, l.State); i >= 0 {
			if _, err := os.Stat(value[i:]); err != nil {
				t.Errorf("kubelet.yaml: %s: %v", line, err)
			}
		}
	}
}

func TestComponentsNeedOnlyWhatComesBeforeThem(t *testing.T) {
	before := map[string]bool{"": true}
	for _, c := range (Layout{}).components() {
		if !before[c.needs] {
			t.Errorf("%s needs %s, which does not come before it", c.name, c.needs)
		}
		before[c.name] = true
	}
}

func TestTheHostsKubeconfigPointsAtTheHostsPort(t *testing.T) {
	l := written(t)
	if got := content(t, l.Kubeconfig()); !strings.Contains(got, "server: https://127.0.0.1:4711\n") {
		t.Errorf("kubeconfig:\n%s", got)
	}
	for _, client := range []string{"kubelet", "kube-scheduler", "admin"} {
		if got := content(t, l.config(client+".kubeconfig")); !strings.Contains(got, "server: https://10.89.0.10:6443\n") {
			t.Errorf("%s:\n%s", client, got)
		}
	}
	info, err := os.Stat(l.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the administrator's kubeconfig may be read with mode %o", info.Mode().Perm())
	}
}

func TestCertificatesHoldForTheirAddressesAndUsers(t *testing.T) {
	l := written(t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(content(t, l.pki("ca.crt"))))
	for _, id := range identities {
		pair, err := tls.LoadX509KeyPair(l.pki(id.file+".crt"), l.pki(id.file+".key"))
		if err != nil {
			t.Fatal(err)
		}
		options := x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		if _, err := pair.Leaf.Verify(options); err != nil {
			t.Errorf("%s: %v", id.file, err)
		}
		if pair.Leaf.Subject.CommonName != id.name {
			t.Errorf("%s: user %s", id.file, pair.Leaf.Subject.CommonName)
		}
	}
	pair, err := tls.LoadX509KeyPair(l.pki("apiserver.crt"), l.pki("apiserver.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", Address, APIService, "kubernetes.default.svc"} {
		if err := pair.Leaf.VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
	if err := pair.Leaf.VerifyHostname("192.0.2.1"); err == nil {
		t.Error("the API server's certificate holds for any address")
	}
}

func TestTheNetworkConfigurationIsJSON(t *testing.T) {
	var conflist struct{ Plugins []struct{ Type string } }
	if err := json.Unmarshal([]byte(cniConfig()), &conflist); err != nil {
		t.Fatal(err)
	}
	if len(conflist.Plugins) != 2 || conflist.Plugins[0].Type != "bridge" {
		t.Errorf("plugins: %+v", conflist.Plugins)
	}
}

func TestContainerdKeepsToTheClustersState(t *testing.T) {
	l := Layout{Name: "dev", State: "/state/dev", Bin: "/bin-dir"}
	got := l.containerdConfig("/usr/sbin/runc", "native")
	for _, want := range []string{
		"root = '/state/dev/containerd'", "snapshotter = 'native'", "BinaryName = '/usr/sbin/runc'",
		"sandbox = '" + SandboxImage + "'", "restrict_oom_score_adj = true", "SystemdCgroup = false", "conf_dir = '/state/dev/cni'",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestAClustersNameIsFitForPathsAndCgroups(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/cache")
	l, err := NewLayout("e2e-1")
	if err != nil {
		t.Fatal(err)
	}
	if l.State != "/cache/openstack-upgrade/cluster/e2e-1" || l.Cgroup() != "openstack-upgrade-e2e-1" {
		t.Errorf("%+v", l)
	}
	for _, bad := range []string{"", "..", "a/b", "-a", "a-", "A", "a b", strings.Repeat("a", 31)} {
		if _, err := NewLayout(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
