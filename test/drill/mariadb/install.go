package mariadb

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// install brings Debian's package of the server alone: nothing that would start one by itself.
func install(ctx context.Context, log func(format string, args ...any)) error {
	if found() {
		return nil
	}
	byHand := fmt.Sprintf("%s is missing; install it with: apt-get install %s", server, pkg)
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return fmt.Errorf("%s", byHand)
	}
	log("%s is missing: install %s", server, pkg)
	for _, args := range [][]string{{"update"}, {"install", "-y", "--no-install-recommends", pkg}} {
		cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-o", "DPkg::Lock::Timeout=300"}, args...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s (apt-get %s: %w: %s)", byHand, args[0], err, last(strings.TrimSpace(string(out))))
		}
	}
	if !found() {
		return fmt.Errorf("%s was installed and %s is still missing", pkg, server)
	}
	return nil
}

func found() bool {
	_, err := os.Stat(server)
	return err == nil
}
