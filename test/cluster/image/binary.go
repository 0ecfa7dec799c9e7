package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/c5c3/openstack-upgrade/test/cluster/archive"
)

// FromBinary packs the Go program of package pkg, built static, as the whole of an image that runs it as a user that is not root.
func FromBinary(ctx context.Context, log Log, ref, pkg string) (tarPath string, err error) {
	if ref == "" || pkg == "" {
		return "", fmt.Errorf("pack %q as %q: both a package and a reference are needed", pkg, ref)
	}
	if err := install(ctx, log, tool{certificates, "ca-certificates"}); err != nil {
		return "", fmt.Errorf("pack %s: %w", ref, err)
	}
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(dir, "making-binary-")
	if err != nil {
		return "", fmt.Errorf("pack %s: %w", ref, err)
	}
	defer os.RemoveAll(work)
	start, binary := time.Now(), filepath.Join(work, "program")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", binary, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if err := run(ctx, log, "compile "+pkg, "", cmd); err != nil {
		return "", err
	}

	img := staticImage()
	img.Ref = ref
	img.Config.Entrypoint = []string{"/program"}
	img.Layers = append(img.Layers, archive.Layer{Files: []archive.File{{Path: "/program", Mode: 0o755, Source: binary}}})
	whole := filepath.Join(work, "image.tar")
	if err := archive.WriteFile(whole, img); err != nil {
		return "", fmt.Errorf("pack %s: %w", ref, err)
	}
	content, err := os.ReadFile(whole)
	if err != nil {
		return "", fmt.Errorf("pack %s: %w", ref, err)
	}
	sum := sha256.Sum256(content)
	path := filepath.Join(dir, stem(ref)+"-"+hex.EncodeToString(sum[:8])+".tar")
	if err := os.Rename(whole, path); err != nil {
		return "", fmt.Errorf("pack %s: %w", ref, err)
	}
	dropOlder(dir, stem(ref), path)
	log("packed %s in %s", ref, since(start))
	return path, nil
}
