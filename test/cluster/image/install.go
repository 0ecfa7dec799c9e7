package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tool is a file that must be there, and the package that brings it.
type tool struct{ path, pkg string }

var bootstrapTools = []tool{
	{"mmdebstrap", "mmdebstrap"},
	{"/usr/share/keyrings/debian-archive-keyring.gpg", "debian-archive-keyring"},
	{"/usr/share/keyrings/debian-archive-trixie-stable.gpg", "debian-archive-keyring"},
}

var buildTools = []tool{
	{"buildah", "buildah"},
	{"/etc/containers/policy.json", "golang-github-containers-common"},
	{certificates, "ca-certificates"},
}

const certificates = "/etc/ssl/certs/ca-certificates.crt"

// install brings the packages of those tools that are missing.
func install(ctx context.Context, log Log, tools ...tool) error {
	if os.Geteuid() != 0 {
		return errors.New("only root can make images of Debian packages; run it as root")
	}
	var packages []string
	for _, t := range tools {
		if !t.there() {
			packages = append(packages, t.pkg)
		}
	}
	if len(packages) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("%s missing and there is no apt-get to install it; install it by hand or use Debian", strings.Join(packages, ", "))
	}
	if err := run(ctx, log, "update the package lists", "", aptGet(ctx, "update")); err != nil {
		return err
	}
	args := append([]string{"install", "-y", "--no-install-recommends"}, packages...)
	return run(ctx, log, "install "+strings.Join(packages, " "), "", aptGet(ctx, args...))
}

func (t tool) there() bool {
	if filepath.IsAbs(t.path) {
		return present(t.path)
	}
	_, err := exec.LookPath(t.path)
	return err == nil
}

func aptGet(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-o", "DPkg::Lock::Timeout=300"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8")
	return cmd
}
