package image

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/c5c3/openstack-upgrade/test/cluster/archive"
)

// Ensure returns the tar of the image called name, bootstrapping it from Debian's packages the first time.
func Ensure(ctx context.Context, log Log, name string) (tarPath string, err error) {
	recipe, err := find(name)
	if err != nil {
		return "", err
	}
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, recipe.Key()+".tar")
	err = once(ctx, log, path, func() error {
		start := time.Now()
		if err := install(ctx, log, bootstrapTools...); err != nil {
			return fmt.Errorf("make image %s: %w", name, err)
		}
		if err := bootstrap(ctx, log, recipe, path); err != nil {
			return err
		}
		log("made image %s in %s", recipe.Ref, since(start))
		return nil
	})
	if err != nil {
		return "", err
	}
	return path, nil
}

// bootstrap makes the root file system aside and the image from it; path appears when it is whole.
func bootstrap(ctx context.Context, log Log, r Recipe, path string) error {
	work := strings.TrimSuffix(path, ".tar") + ".making"
	if err := makeEmpty(work); err != nil {
		return fmt.Errorf("make image %s: %w", r.Name, err)
	}
	defer os.RemoveAll(work)
	root := filepath.Join(work, "root.tar")
	args, err := bootstrapArgs(r, work, root)
	if err != nil {
		return fmt.Errorf("make image %s: %w", r.Name, err)
	}

	cmd := exec.CommandContext(ctx, "mmdebstrap", args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+work, "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8")
	deed := fmt.Sprintf("bootstrap %s from Debian %s (minutes, once)", r.Name, r.Suite)
	if err := run(ctx, log, deed, strings.TrimSuffix(path, ".tar")+".log", cmd); err != nil {
		return err
	}

	layers := []archive.Layer{{Tar: root}}
	if len(r.Files) > 0 {
		layers = append(layers, archive.Layer{Files: r.Files})
	}
	return archive.WriteFile(path, archive.Image{Ref: r.Ref, Config: r.Config, Layers: layers})
}

// bootstrapArgs is the command line for the recipe; its hooks are written under work.
func bootstrapArgs(r Recipe, work, root string) ([]string, error) {
	essential, customize := filepath.Join(work, "essential"), filepath.Join(work, "customize")
	for path, script := range map[string]string{essential: deferCompiling, customize: insideRoot(compileOnce + r.Tweak)} {
		if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
			return nil, err
		}
	}
	args := []string{
		"--mode=root", "--format=tar", "--variant=essential",
		"--include=" + strings.Join(r.Packages, ","),
		"--aptopt=Apt::Install-Recommends \"false\"",
		"--dpkgopt=force-unsafe-io",
		"--essential-hook=" + essential,
		"--customize-hook=" + customize,
	}
	for _, omit := range r.Omit {
		args = append(args, "--dpkgopt=path-exclude="+omit)
	}
	dump, err := exec.Command("apt-config", "dump", "Acquire").Output()
	if err != nil {
		return nil, fmt.Errorf("read the settings of apt: %w", err)
	}
	for _, setting := range aptSettings(string(dump)) {
		args = append(args, "--aptopt="+setting)
	}
	args = append(args, r.Suite, root)
	if mirror := machineMirror(); mirror != "" {
		args = append(args, mirror)
	}
	return args, nil
}

// makeEmpty makes dir empty; what a killed run left in it goes.
func makeEmpty(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o755)
}

// deferCompiling keeps every Python package from compiling itself: a start of the interpreter for each of some two
// hundred packages takes longer than compiling them all at once.
const deferCompiling = `#!/bin/sh
set -eu
chroot "$1" dpkg-divert --quiet --local --rename --divert /usr/bin/py3compile.real --add /usr/bin/py3compile
ln -s /bin/true "$1/usr/bin/py3compile"
`

// compileOnce does it; some packages ship templates that end in .py and are no Python, which is no failure.
const compileOnce = `
rm /usr/bin/py3compile
dpkg-divert --quiet --local --rename --remove /usr/bin/py3compile
if [ -x /usr/bin/python3 ]; then python3 -m compileall -q -j 2 /usr/lib/python3/dist-packages >/dev/null 2>&1 || true; fi
`

func insideRoot(script string) string {
	return "#!/bin/sh\nset -eu\nchroot \"$1\" /bin/sh -eu <<'END-OF-SCRIPT'\n" + script + "\nEND-OF-SCRIPT\n"
}
