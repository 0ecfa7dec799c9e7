package node

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CommandProbe is the hidden command that looks from inside the node whether Services and DNS work.
const CommandProbe = "node-probe"

// KubectlCache keeps kubectl from leaving a cache in the user's home.
func (l Layout) KubectlCache() string { return l.path("kubectl-cache") }

// Environment is what a command inside the node finds: our binaries first, containerd and the API server at hand.
func (l Layout) Environment() []string {
	environment := []string{
		"PATH=" + l.searchPath(), "HOME=/root", "LANG=C.UTF-8",
		"KUBECONFIG=" + l.config("admin.kubeconfig"),
		"CONTAINERD_ADDRESS=/run/containerd/containerd.sock", "CONTAINERD_NAMESPACE=k8s.io",
	}
	if snapshotter, err := os.ReadFile(l.config("snapshotter")); err == nil {
		environment = append(environment, "CONTAINERD_SNAPSHOTTER="+string(snapshotter))
	}
	return environment
}

// Admin is what a client on the host needs to ask the API server as its administrator.
func (l Layout) Admin() (url string, ca []byte, pair tls.Certificate, err error) {
	state, found, err := l.ReadState()
	if err != nil {
		return "", nil, tls.Certificate{}, err
	}
	if !found {
		return "", nil, tls.Certificate{}, fmt.Errorf("cluster %s has no state", l.Name)
	}
	if ca, err = os.ReadFile(l.pki("ca.crt")); err != nil {
		return "", nil, tls.Certificate{}, fmt.Errorf("read the cluster's authority: %w", err)
	}
	if pair, err = tls.LoadX509KeyPair(l.pki("admin.crt"), l.pki("admin.key")); err != nil {
		return "", nil, tls.Certificate{}, fmt.Errorf("read the administrator's certificate: %w", err)
	}
	return fmt.Sprintf("https://127.0.0.1:%d", state.Port), ca, pair, nil
}

// Probe fails unless the API server answers at its Service's address and CoreDNS knows its name.
func Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(APIService, "443"))
	if err != nil {
		return fmt.Errorf("reach the API server's Service: %w", err)
	}
	if err := conn.Close(); err != nil {
		return fmt.Errorf("reach the API server's Service: %w", err)
	}
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(DNSService, "53"))
	}}
	addresses, err := resolver.LookupHost(ctx, "kubernetes.default.svc.cluster.local.")
	if err != nil {
		return fmt.Errorf("ask the cluster's DNS: %w", err)
	}
	if !slices.Contains(addresses, APIService) {
		return fmt.Errorf("the cluster's DNS says that the API server's Service is at %v, not %s", addresses, APIService)
	}
	return nil
}

// Carriers finds the living processes that hold the cluster. Where the record of them is lost or damaged they are
// still known by the program they run: the copy that lies in this cluster's state.
func (l Layout) Carriers() ([]Process, error) {
	state, found, err := l.ReadState()
	if err == nil && found {
		return slices.DeleteFunc([]Process{state.Init, state.Supervisor}, func(p Process) bool { return !p.Alive() }), nil
	}
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return nil, fmt.Errorf("look for the cluster's processes: %w", err)
	}
	var carriers []Process
	for _, link := range links {
		if program, err := os.Readlink(link); err != nil || program != l.Self() {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err != nil {
			continue
		}
		if process, err := Identify(pid); err == nil {
			carriers = append(carriers, process)
		}
	}
	return carriers, nil
}

// HostPIDs maps the process numbers of the private world to the host's.
func HostPIDs(first Process) (map[int]int, error) {
	world, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", first.PID))
	if err != nil {
		return nil, fmt.Errorf("look into the node: %w", err)
	}
	links, err := filepath.Glob("/proc/[0-9]*/ns/pid")
	if err != nil {
		return nil, fmt.Errorf("look into the node: %w", err)
	}
	pids := map[int]int{}
	for _, link := range links {
		if there, err := os.Readlink(link); err != nil || there != world {
			continue
		}
		status, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(link)), "status"))
		if err != nil {
			continue
		}
		if outside, inside, ok := parseNSpid(string(status)); ok {
			pids[inside] = outside
		}
	}
	return pids, nil
}

// parseNSpid reads a process's number outside and inside from its status: the first and the last of a list.
func parseNSpid(status string) (outside, inside int, ok bool) {
	for line := range strings.Lines(status) {
		list, is := strings.CutPrefix(line, "NSpid:")
		if !is {
			continue
		}
		numbers := strings.Fields(list)
		if len(numbers) < 2 {
			return 0, 0, false
		}
		outside, errOut := strconv.Atoi(numbers[0])
		inside, errIn := strconv.Atoi(numbers[len(numbers)-1])
		return outside, inside, errOut == nil && errIn == nil
	}
	return 0, 0, false
}
