package image

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The ARGs by which a Dockerfile lets its base images be replaced; Build fills them with local ones.
const (
	buildArg = "BUILD_IMAGE"
	baseArg  = "BASE_IMAGE"
)

// Build builds dockerfile in contextDir under ref and returns the image's tar; at once if no input changed since.
// BUILD_IMAGE and BASE_IMAGE are local images unless buildArgs say otherwise.
func Build(ctx context.Context, log Log, dockerfile, contextDir, ref string, buildArgs map[string]string) (tarPath string, err error) {
	if err := checkBuild(dockerfile, contextDir, ref); err != nil {
		return "", err
	}
	base, err := EnsureBase(ctx, log)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", ref, err)
	}
	tc, err := findToolchain(ctx)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", ref, err)
	}
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	args := map[string]string{buildArg: base.Build, baseArg: base.Static}
	maps.Copy(args, buildArgs)

	key, err := inputsKey(dockerfile, contextDir, ref, tc.GOVERSION, args)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", ref, err)
	}
	path := filepath.Join(dir, stem(ref)+"-"+key+".tar")
	err = once(ctx, log, path, func() error {
		start := time.Now()
		if err := bud(ctx, log, dir, path, dockerfile, contextDir, ref, tc, args); err != nil {
			return err
		}
		log("built %s in %s", ref, since(start))
		return nil
	})
	if err != nil {
		return "", err
	}
	dropOlder(dir, stem(ref), path)
	return path, nil
}

// quiet is the log of what takes no time.
func quiet(string, ...any) {}

func checkBuild(dockerfile, contextDir, ref string) error {
	if ref == "" {
		return fmt.Errorf("build %s: the reference is empty; name it like localhost/webhook:dev", dockerfile)
	}
	if info, err := os.Stat(dockerfile); err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("build %s: %s is not a file; give the Dockerfile's path", ref, dockerfile)
	}
	if info, err := os.Stat(contextDir); err != nil || !info.IsDir() {
		return fmt.Errorf("build %s: %s is not a directory; give the build context's path", ref, contextDir)
	}
	return nil
}

// bud runs the Dockerfile and exports what comes out; nothing of it stays in the storage, where each copy costs its size.
func bud(ctx context.Context, log Log, dir, path, dockerfile, contextDir, ref string, tc toolchain, args map[string]string) error {
	line := []string{
		"bud", "--isolation", "chroot", "--pull-never", "--format", "docker", "--timestamp", "0", "--tag", ref, "--file", dockerfile,
		"--volume", tc.GOROOT + ":/usr/local/go:ro", "--volume", tc.GOMODCACHE + ":/go/pkg/mod", "--volume", tc.GOCACHE + ":/root/.cache/go-build",
	}
	for _, cache := range []string{tc.GOMODCACHE, tc.GOCACHE} {
		if err := os.MkdirAll(cache, 0o755); err != nil {
			return fmt.Errorf("build %s: %w", ref, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		line = append(line, "--build-arg", name+"="+args[name])
	}
	// One build at a time: they would only share the machine's few cores, and alone one knows whose leftovers are whose.
	unlock, err := lock(ctx, log, filepath.Join(dir, "build.lock"), "another Dockerfile")
	if err != nil {
		return err
	}
	defer unlock()
	for _, leftover := range [][]string{{"rm", "--all"}, {"rmi", "--prune"}} {
		if err := run(ctx, quiet, "clear the build storage", "", buildah(ctx, dir, leftover...)); err != nil {
			return err
		}
	}
	transcript := filepath.Join(dir, stem(ref)+".log")
	if err := run(ctx, log, "build "+ref, transcript, buildah(ctx, dir, append(line, contextDir)...)); err != nil {
		return err
	}
	defer func() { _ = buildah(context.WithoutCancel(ctx), dir, "rmi", ref).Run() }() // left over, it is only space

	partial := path + ".partial"
	defer os.Remove(partial)
	_ = os.Remove(partial) // the exporter refuses a file that a killed run left
	if err := run(ctx, log, "export "+ref, "", buildah(ctx, dir, "push", ref, "docker-archive:"+partial+":"+ref)); err != nil {
		return err
	}
	if err := os.Rename(partial, path); err != nil {
		return fmt.Errorf("build %s: %w", ref, err)
	}
	return nil
}
