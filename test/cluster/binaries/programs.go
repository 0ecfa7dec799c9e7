package binaries

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	kubernetesVersion = "v1.37.2"
	containerdVersion = "v2.3.7"
	kwokVersion       = "v0.8.0"
)

// program is one file of the directory: how it is made, and from which module under test/cluster/modules.
type program struct {
	module string
	takes  string
	pkg    string
	tags   string
	stamp  []string
	gather string
}

var kubernetesStamp = []string{
	"k8s.io/component-base/version.gitVersion=" + kubernetesVersion,
	"k8s.io/component-base/version.gitMajor=1",
	"k8s.io/component-base/version.gitMinor=37",
}

func kubernetes(name, takes string) program {
	return program{module: "kubernetes", takes: takes, pkg: "k8s.io/kubernetes/cmd/" + name, stamp: kubernetesStamp}
}

func containerd(name, takes string) program {
	const module = "github.com/containerd/containerd/v2"
	return program{
		module: "containerd", takes: takes, pkg: module + "/cmd/" + name,
		tags:  "no_btrfs,no_aufs,no_zfs,no_devmapper",
		stamp: []string{module + "/version.Version=" + containerdVersion},
	}
}

var programs = map[string]program{
	"kube-apiserver":          kubernetes("kube-apiserver", "about 8 minutes on 2 cores the first time"),
	"kube-controller-manager": kubernetes("kube-controller-manager", "about 2 minutes"),
	"kube-scheduler":          kubernetes("kube-scheduler", "seconds after the others"),
	"kubelet":                 kubernetes("kubelet", "about 2 minutes"),
	"kube-proxy":              kubernetes("kube-proxy", "seconds after the others"),
	"kubectl":                 kubernetes("kubectl", "about a minute"),
	"etcd":                    {module: "etcd", takes: "about a minute", pkg: "."},
	"containerd":              containerd("containerd", "about 2 minutes"),
	"containerd-shim-runc-v2": containerd("containerd-shim-runc-v2", "seconds after containerd"),
	"ctr":                     containerd("ctr", "seconds after containerd"),
	"coredns":                 {module: "coredns", takes: "about 3 minutes", pkg: "."},
	"pause":                   {module: "pause", takes: "seconds", pkg: "."},
	"cert-manager":            {module: "cert-manager", takes: "about 3 minutes", pkg: "."},
	"kwok": {
		module: "kwok", takes: "about a minute", pkg: "sigs.k8s.io/kwok/cmd/kwok",
		stamp: []string{"sigs.k8s.io/kwok/pkg/consts.Version=" + kwokVersion},
	},
	"cert-manager-crds.yaml": {module: "cert-manager", takes: "a moment", gather: "github.com/cert-manager/cert-manager"},
	"controller-gen": {
		module: "controller-gen", takes: "about a minute", pkg: "sigs.k8s.io/controller-tools/cmd/controller-gen",
		stamp: []string{"sigs.k8s.io/controller-tools/pkg/version.version=v0.23.0"},
	},
	"golangci-lint": {
		module: "golangci-lint", takes: "about 4 minutes", pkg: "github.com/golangci/golangci-lint/v2/cmd/golangci-lint",
		stamp: []string{"main.version=v2.15.0"},
	},
}

// Known lists every name that Ensure can be asked for.
func Known() []string { return slices.Sorted(maps.Keys(programs)) }

func (p program) make(ctx context.Context, module, target string) error {
	if p.gather != "" {
		return gatherCRDs(ctx, module, p.gather, target)
	}
	_, err := goCommand(ctx, module, p.arguments(target)...)
	return err
}

func (p program) arguments(target string) []string {
	flags := []string{"-s", "-w"}
	for _, s := range p.stamp {
		flags = append(flags, "-X", s)
	}
	args := []string{"build", "-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags", strings.Join(flags, " ")}
	if p.tags != "" {
		args = append(args, "-tags", p.tags)
	}
	return append(args, "-o", target, p.pkg)
}

// gatherCRDs writes the CRDs that a module carries as one file, so that applying them needs no module cache.
func gatherCRDs(ctx context.Context, module, path, target string) error {
	if _, err := goCommand(ctx, module, "mod", "download", path); err != nil {
		return err
	}
	dir, err := goCommand(ctx, module, "list", "-m", "-f", "{{.Dir}}", path)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(dir), "deploy", "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("find CRDs in %s: none there", dir)
	}
	var all bytes.Buffer
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read a CRD: %w", err)
		}
		fmt.Fprintf(&all, "---\n%s\n", content)
	}
	return os.WriteFile(target, all.Bytes(), 0o644)
}

func goCommand(ctx context.Context, module string, args ...string) (output string, err error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOOS=linux", "PWD="+module)
	var out, failure bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failure
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if errors.Is(err, exec.ErrNotFound) {
			return "", errors.New("no go command in PATH; install Go 1.26 or newer")
		}
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, lastLines(&failure, 5))
	}
	return out.String(), nil
}

func lastLines(r io.Reader, n int) string {
	content, err := io.ReadAll(r)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "; ")
}
