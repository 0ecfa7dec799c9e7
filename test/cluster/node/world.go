package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// kernelWishes is what the kubelet sets, for the whole machine, when it finds something else. The machine is not
// ours: it is shown files that already say what it wants.
var kernelWishes = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// furnish makes the private world a node: its own mounts, its own network, its own name.
func (l Layout) furnish(ctx context.Context) error {
	if err := l.mountWorld(); err != nil {
		return err
	}
	if err := syscall.Sethostname([]byte(NodeName)); err != nil {
		return fmt.Errorf("name the node: %w", err)
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		return fmt.Errorf("find runc: %w", err)
	}
	snapshotter := l.snapshotter()
	if err := os.WriteFile(l.config("snapshotter"), []byte(snapshotter), 0o600); err != nil {
		return fmt.Errorf("write containerd's configuration: %w", err)
	}
	config := l.containerdConfig(runc, snapshotter)
	if err := os.WriteFile(l.config("containerd.toml"), []byte(config), 0o600); err != nil {
		return fmt.Errorf("write containerd's configuration: %w", err)
	}
	return connect(ctx)
}

func (l Layout) mountWorld() error {
	type mount struct {
		source, target, kind string
		flags                uintptr
	}
	// Private first, so that nothing reaches the host; then shared again, since the kubelet hands mounts to containers.
	mounts := []mount{
		{target: "/", flags: syscall.MS_REC | syscall.MS_PRIVATE},
		{target: "/", flags: syscall.MS_REC | syscall.MS_SHARED},
		{source: "proc", target: "/proc", kind: "proc", flags: syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC},
		{source: "tmpfs", target: "/run", kind: "tmpfs", flags: syscall.MS_NOSUID | syscall.MS_NODEV},
		{source: l.path("var-log"), target: "/var/log", flags: syscall.MS_BIND},
		{source: l.path("var-lib"), target: "/var/lib", flags: syscall.MS_BIND},
	}
	for file, wish := range kernelWishes {
		standIn := filepath.Join(l.path("config"), strings.ReplaceAll("sysctl-"+file, "/", "-"))
		if err := os.WriteFile(standIn, []byte(wish+"\n"), 0o600); err != nil {
			return fmt.Errorf("write the stand-in of a kernel setting: %w", err)
		}
		mounts = append(mounts, mount{source: standIn, target: "/proc/sys/" + file, flags: syscall.MS_BIND})
	}
	for _, m := range mounts {
		if err := syscall.Mount(m.source, m.target, m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	return os.MkdirAll("/run/lock", 0o755)
}

// snapshotter is overlayfs wherever the state lies on a file system that overlays can use; copies otherwise.
func (l Layout) snapshotter() string {
	probe, err := os.MkdirTemp(l.State, "overlay-")
	if err != nil {
		return "native"
	}
	defer os.RemoveAll(probe)
	for _, dir := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(probe, dir), 0o755); err != nil {
			return "native"
		}
	}
	merged := filepath.Join(probe, "merged")
	options := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", probe)
	if err := syscall.Mount("overlay", merged, "overlay", 0, options); err != nil {
		return "native"
	}
	if err := syscall.Unmount(merged, 0); err != nil {
		return "native"
	}
	return "overlayfs"
}

// connect gives the node its address: a veth pair with both ends here. The default route leads nowhere, but without
// one no packet to a Service gets as far as the rules that turn it.
func connect(ctx context.Context) error {
	for _, args := range []string{
		"link set lo up",
		"link add node0 type veth peer name node1",
		"addr add " + Address + "/24 dev node0",
		"link set node0 up",
		"link set node1 up",
		"route add default via " + gateway + " dev node0",
	} {
		if out, err := exec.CommandContext(ctx, "ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", args, err, strings.TrimSpace(string(out)))
		}
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("forward packets: %w", err)
	}
	return nil
}
