package node

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"time"
)

// Write lays out all that the keeper and the components read: certificates, kubeconfigs and configuration.
func (l Layout) Write(now time.Time, port int) error {
	for _, dir := range []string{"", "log", "config", "cni", "etcd", "containerd", "var-lib", "var-log"} {
		if err := os.MkdirAll(l.path(dir), 0o755); err != nil {
			return fmt.Errorf("make the cluster's state: %w", err)
		}
	}
	if err := l.writePKI(now); err != nil {
		return err
	}
	files := map[string]string{
		l.path("cni", "10-node.conflist"): cniConfig(),
		l.config("audit-policy.yaml"):     auditPolicy,
		l.config("resolv.conf"):           "nameserver " + DNSService + "\n",
	}
	inside, outside := "https://"+Address+":"+APIPort, fmt.Sprintf("https://127.0.0.1:%d", port)
	for _, client := range []string{"kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "admin"} {
		content, err := l.kubeconfig(inside, client)
		if err != nil {
			return err
		}
		files[l.config(client+".kubeconfig")] = content
	}
	admin, err := l.kubeconfig(outside, "admin")
	if err != nil {
		return err
	}
	files[l.Kubeconfig()] = admin
	files[l.config("kubelet.yaml")] = l.kubeletConfig()
	for path, content := range files {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return fmt.Errorf("write configuration: %w", err)
		}
	}
	return nil
}

func (l Layout) kubeconfig(server, client string) (string, error) {
	data := map[string]string{}
	for _, file := range []string{"ca.crt", client + ".crt", client + ".key"} {
		content, err := os.ReadFile(l.pki(file))
		if err != nil {
			return "", fmt.Errorf("write the kubeconfig of %s: %w", client, err)
		}
		data[file] = base64.StdEncoding.EncodeToString(content)
	}
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: %[1]s
contexts:
- name: %[1]s
  context: {cluster: %[1]s, user: %[2]s}
clusters:
- name: %[1]s
  cluster:
    server: %[3]s
    certificate-authority-data: %[4]s
users:
- name: %[2]s
  user:
    client-certificate-data: %[5]s
    client-key-data: %[6]s
`, l.Name, client, server, data["ca.crt"], data[client+".crt"], data[client+".key"]), nil
}

// cniConfig gives pods a bridge of the node's own; the plugins' notes go where the kubelet's do.
func cniConfig() string {
	return fmt.Sprintf(`{
  "cniVersion": "1.0.0",
  "name": "node",
  "plugins": [
    {
      "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
      "ipam": {
        "type": "host-local", "dataDir": "/var/lib/cni/networks",
        "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`, podRange)
}

// auditPolicy notes who asked what, once per request, and no content: enough to count calls per client.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// kubeletConfig asks for room to breathe on a small machine: no pod is evicted and no image collected because the
// host's own disk is full. The QoS cgroups hang below ours, so that down knows what to remove.
func (l Layout) kubeletConfig() string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %[2]s}
authorization: {mode: Webhook}
tlsCertFile: %[3]s
tlsPrivateKeyFile: %[4]s
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: /%[5]s
failCgroupV1: false
enforceNodeAllocatable: []
failSwapOn: false
oomScoreAdj: 0
clusterDNS: [%[6]s]
clusterDomain: cluster.local
resolvConf: %[7]s
volumePluginDir: /var/lib/kubelet/volumeplugins
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard:
  memory.available: 50Mi
  nodefs.available: 100Mi
  imagefs.available: 100Mi
serializeImagePulls: true
`, Address, l.pki("ca.crt"), l.pki("kubelet-server.crt"), l.pki("kubelet-server.key"), l.Cgroup(), DNSService,
		l.config("resolv.conf"))
}

// containerdConfig keeps containerd from writing anywhere but in the cluster's state. Without CAP_SYS_RESOURCE a
// container's OOM score may not go below its parent's, which restrict_oom_score_adj respects.
func (l Layout) containerdConfig(runc, snapshotter string) string {
	return fmt.Sprintf(`version = 3
root = '%[1]s'
state = '/run/containerd'
disabled_plugins = ['io.containerd.internal.v1.opt', 'io.containerd.nri.v1.nri', 'io.containerd.image-verifier.v1.bindir']

[grpc]
  address = '/run/containerd/containerd.sock'

[plugins.'io.containerd.cri.v1.images']
  snapshotter = '%[2]s'
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = '%[3]s'

[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = '%[4]s'
      SystemdCgroup = false
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['%[5]s']
    conf_dir = '%[6]s'
`, l.path("containerd"), snapshotter, SandboxImage, runc, CNIPlugins, l.path("cni"))
}

// CNIPlugins is where Debian puts them.
const CNIPlugins = "/usr/lib/cni"

// searchPath finds our binaries first: containerd looks for its shim there.
func (l Layout) searchPath() string {
	return strings.Join([]string{l.Bin, "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}, ":")
}
