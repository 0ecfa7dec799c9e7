// Package node is a whole Kubernetes of one node in private namespaces: etcd, the control plane, kubelet, kube-proxy
// and containerd, as processes.
//
// Three processes carry it. The supervisor stays in the host's namespaces, does nothing but wait, and takes the rest
// with it when it dies. Its only child is the first process of the private network, mount and process namespaces,
// which buries orphans. That one's child is the keeper: it makes the network and the mounts, and starts and restarts
// the components. So whatever ends the first two ends everything, and no mount, device or process outlives them;
// only cgroups do, which is why all of ours hang below one name.
//
// The API server is reached from the host through one socket: it is opened outside, where 127.0.0.1 is the host's,
// and handed to the keeper, which accepts on it inside, where the API server is.
package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// The private network of every node. Nothing of it is seen from outside, so two nodes may share the numbers.
const (
	Address     = "10.89.0.10"
	gateway     = "10.89.0.1"
	podRange    = "10.244.0.0/24"
	serviceCIDR = "10.96.0.0/16"
	APIService  = "10.96.0.1"
	DNSService  = "10.96.0.10"
	APIPort     = "6443"
	NodeName    = "node"
)

// SandboxImage is what holds a pod's namespaces: our own pause program, since there is no registry to have one from.
const SandboxImage = "test.local/pause:1"

// Layout is where everything of one cluster lies. State holds it all; Bin is shared and only read.
type Layout struct {
	Name  string
	State string
	Bin   string
}

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?$`)

// NewLayout places the cluster of that name under the user's cache directory.
func NewLayout(name string) (Layout, error) {
	if !validName.MatchString(name) {
		return Layout{}, fmt.Errorf("cluster name %q: use at most 30 lower-case letters, digits and dashes", name)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return Layout{}, errors.New("no cache directory for the cluster: set HOME or XDG_CACHE_HOME")
	}
	return Layout{Name: name, State: filepath.Join(cache, "openstack-upgrade", "cluster", name)}, nil
}

func (l Layout) path(parts ...string) string {
	return filepath.Join(append([]string{l.State}, parts...)...)
}

// Program is the path of a binary the cluster runs.
func (l Layout) Program(name string) string { return filepath.Join(l.Bin, name) }

// Self is the copy of this program that supervises: the original may be a temporary file of `go run`.
func (l Layout) Self() string { return l.path("cluster") }

// Kubeconfig is the administrator's, for use on the host.
func (l Layout) Kubeconfig() string { return l.path("kubeconfig") }

// AuditLog holds one JSON line for every request that the API server answered.
func (l Layout) AuditLog() string { return l.path("log", "audit.log") }

// Log is where a component's output goes.
func (l Layout) Log(component string) string { return l.path("log", component+".log") }

// Cgroup is the name below which all cgroups of the cluster hang, in every hierarchy.
func (l Layout) Cgroup() string { return "openstack-upgrade-" + l.Name }

func (l Layout) config(file string) string { return l.path("config", file) }
func (l Layout) pki(file string) string    { return l.path("pki", file) }
