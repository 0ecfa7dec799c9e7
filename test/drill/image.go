package drill

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/c5c3/openstack-upgrade/test/cluster/archive"
	"github.com/c5c3/openstack-upgrade/test/drill/schema"
)

// Repository is what all images of a drill are called.
const Repository = "localhost/drill/glance"

// Package is the program in them.
const Package = "github.com/c5c3/openstack-upgrade/test/drill/glance"

// Ref is the reference of the image with that tag.
func Ref(tag string) string { return Repository + ":" + tag }

var tagForm = regexp.MustCompile(`^(\d{4}\.[12])(-[a-z0-9][a-z0-9.-]{0,40})?$`)

// Ensure returns the tar of the image with that tag: a release that the drill knows, or one of its patches, such as
// 2026.2 or 2026.2-p1. All tags of a release are the same program; they differ in what [drill:TAG] may tell them.
func Ensure(ctx context.Context, log func(format string, args ...any), tag string) (tar string, err error) {
	parts := tagForm.FindStringSubmatch(tag)
	if parts == nil {
		return "", fmt.Errorf("make an image with the tag %.40q: give a release, or a patch of one like 2026.1-p1", tag)
	}
	if _, err := schema.Find(parts[1]); err != nil {
		return "", fmt.Errorf("make an image with the tag %s: %w", tag, err)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory (set HOME or XDG_CACHE_HOME): %w", err)
	}
	dir := filepath.Join(base, "openstack-upgrade", "drill")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the cache of images: %w", err)
	}
	work, err := os.MkdirTemp(dir, "making-")
	if err != nil {
		return "", fmt.Errorf("make image %s: %w", Ref(tag), err)
	}
	defer os.RemoveAll(work)
	program := filepath.Join(work, "drill")
	if err := Compile(ctx, program); err != nil {
		return "", err
	}
	img := image(parts[1], tag, program)
	key, err := fingerprint(img, program)
	if err != nil {
		return "", fmt.Errorf("make image %s: %w", img.Ref, err)
	}
	tar = filepath.Join(dir, "glance-"+tag+"_"+key+".tar")
	if _, err := os.Stat(tar); !errors.Is(err, os.ErrNotExist) {
		return tar, err
	}
	if err := archive.WriteFile(tar, img); err != nil {
		return "", err
	}
	dropOlder(dir, tag, tar)
	log("made image %s", img.Ref)
	return tar, nil
}

// Compile builds the program, static, to be put at path. It is quick from the second time on: Go keeps its parts.
func Compile(ctx context.Context, path string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", path, Package)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile %s: %w: %s", Package, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// image holds the program once, and by all its names.
func image(release, tag, program string) archive.Image {
	files := []archive.File{{Path: "/usr/bin/drill", Mode: 0o755, Source: program}}
	for _, name := range []string{"glance-manage", "glance-api", "uwsgi"} {
		files = append(files, archive.File{Path: "/usr/bin/" + name, Link: "drill"})
	}
	return archive.Image{
		Ref: Ref(tag),
		Config: archive.Config{
			Entrypoint: []string{"glance-api"},
			Env:        []string{"PATH=/usr/bin", "DRILL_RELEASE=" + release, "DRILL_TAG=" + tag},
			User:       "65532:65532",
		},
		Layers: []archive.Layer{{Files: files}},
	}
}

func fingerprint(img archive.Image, program string) (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q\n", fmt.Sprintf("%+v", img.Config))
	for _, file := range img.Layers[0].Files {
		fmt.Fprintf(sum, "%q %q %v\n", file.Path, file.Link, file.Mode)
	}
	file, err := os.Open(program)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// keepFor is how long an image that was made anew stays: another process may be loading it.
const keepFor = time.Hour

func dropOlder(dir, tag, current string) {
	all, _ := filepath.Glob(filepath.Join(dir, "glance-"+tag+"_*.tar")) // a tag holds no pattern
	for _, path := range all {
		if info, err := os.Stat(path); err == nil && path != current && time.Since(info.ModTime()) > keepFor {
			_ = os.Remove(path) // a leftover costs space and nothing else
		}
	}
}
