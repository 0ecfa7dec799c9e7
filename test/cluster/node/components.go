package node

// component is one process of the node. It starts when the component it needs is ready.
type component struct {
	name  string
	needs string
	args  []string
}

const (
	etcd       = "etcd"
	containerd = "containerd"
	apiServer  = "kube-apiserver"
	kubelet    = "kubelet"
)

// components is the node, in the order in which it comes up.
func (l Layout) components() []component {
	const etcdURL = "http://127.0.0.1:2379"
	const peerURL = "http://127.0.0.1:2380"
	return []component{
		{name: etcd, args: []string{
			"--name=" + NodeName, "--data-dir=" + l.path("etcd"), "--unsafe-no-fsync", "--log-level=warn",
			"--listen-client-urls=" + etcdURL, "--advertise-client-urls=" + etcdURL,
			"--listen-peer-urls=" + peerURL, "--initial-advertise-peer-urls=" + peerURL,
			"--initial-cluster=" + NodeName + "=" + peerURL,
		}},
		{name: containerd, args: []string{"--config=" + l.config("containerd.toml")}},
		{name: apiServer, needs: etcd, args: []string{
			"--etcd-servers=" + etcdURL,
			"--advertise-address=" + Address, "--bind-address=0.0.0.0", "--secure-port=" + APIPort,
			"--service-cluster-ip-range=" + serviceCIDR,
			"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
			"--client-ca-file=" + l.pki("ca.crt"),
			"--tls-cert-file=" + l.pki("apiserver.crt"), "--tls-private-key-file=" + l.pki("apiserver.key"),
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
			"--service-account-key-file=" + l.pki("service-account.pub"),
			"--service-account-signing-key-file=" + l.pki("service-account.key"),
			"--kubelet-preferred-address-types=InternalIP",
			"--kubelet-certificate-authority=" + l.pki("ca.crt"),
			"--kubelet-client-certificate=" + l.pki("apiserver-kubelet-client.crt"),
			"--kubelet-client-key=" + l.pki("apiserver-kubelet-client.key"),
			"--requestheader-client-ca-file=" + l.pki("front-proxy-ca.crt"),
			"--requestheader-allowed-names=front-proxy-client",
			"--requestheader-username-headers=X-Remote-User",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--proxy-client-cert-file=" + l.pki("front-proxy-client.crt"),
			"--proxy-client-key-file=" + l.pki("front-proxy-client.key"),
			"--audit-policy-file=" + l.config("audit-policy.yaml"),
			"--audit-log-path=" + l.AuditLog(), "--audit-log-format=json", "--audit-log-maxsize=2000",
		}},
		{name: "kube-controller-manager", needs: apiServer, args: append(l.clientArgs("kube-controller-manager"),
			"--leader-elect=false", "--bind-address=127.0.0.1",
			"--use-service-account-credentials=true", "--cluster-cidr="+podRange,
			"--service-account-private-key-file="+l.pki("service-account.key"),
			"--root-ca-file="+l.pki("ca.crt"),
			"--cluster-signing-cert-file="+l.pki("ca.crt"), "--cluster-signing-key-file="+l.pki("ca.key"),
			"--requestheader-client-ca-file="+l.pki("front-proxy-ca.crt"),
		)},
		{name: "kube-scheduler", needs: apiServer, args: append(l.clientArgs("kube-scheduler"),
			"--leader-elect=false", "--bind-address=127.0.0.1",
		)},
		{name: kubelet, needs: apiServer, args: []string{
			"--config=" + l.config("kubelet.yaml"), "--kubeconfig=" + l.config("kubelet.kubeconfig"),
			"--hostname-override=" + NodeName, "--node-ip=" + Address,
		}},
		{name: "kube-proxy", needs: apiServer, args: []string{
			"--kubeconfig=" + l.config("kube-proxy.kubeconfig"), "--hostname-override=" + NodeName,
			"--proxy-mode=iptables", "--cluster-cidr=" + podRange, "--oom-score-adj=0",
			"--healthz-bind-address=127.0.0.1:10256", "--metrics-bind-address=127.0.0.1:10249",
			// The connection table belongs to the whole machine: leave its limits alone.
			"--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0",
		}},
	}
}

func (l Layout) clientArgs(name string) []string {
	kubeconfig := l.config(name + ".kubeconfig")
	return []string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
	}
}
