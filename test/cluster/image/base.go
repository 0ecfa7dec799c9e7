package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/c5c3/openstack-upgrade/test/cluster/archive"
)

// Base holds the local images that stand in for those a Dockerfile names.
type Base struct {
	Build  string // has a shell; Go and its caches are this machine's, mounted for the time of a build
	Static string // users, certificates and /tmp: what a static binary needs
}

// toolchain is the machine's Go and how it reaches modules.
type toolchain struct {
	GOVERSION, GOROOT, GOMODCACHE, GOCACHE                     string
	GOPROXY, GOSUMDB, GONOSUMDB, GONOPROXY, GOPRIVATE, GOFLAGS string
}

// EnsureBase makes the base images and puts them where Build looks for them.
func EnsureBase(ctx context.Context, log Log) (Base, error) {
	if err := install(ctx, log, buildTools...); err != nil {
		return Base{}, fmt.Errorf("make the base images: %w", err)
	}
	tc, err := findToolchain(ctx)
	if err != nil {
		return Base{}, fmt.Errorf("make the base images: %w", err)
	}
	dir, err := cacheDir()
	if err != nil {
		return Base{}, err
	}
	busybox, err := ensureBusybox(ctx, log, dir)
	if err != nil {
		return Base{}, fmt.Errorf("make the base images: %w", err)
	}

	var base Base
	if base.Build, err = store(ctx, log, dir, "localhost/go", buildImage(tc, busybox)); err != nil {
		return Base{}, err
	}
	if base.Static, err = store(ctx, log, dir, "localhost/static", staticImage()); err != nil {
		return Base{}, err
	}
	return base, nil
}

func findToolchain(ctx context.Context) (toolchain, error) {
	var tc toolchain
	out, err := exec.CommandContext(ctx, "go", "env", "-json").Output()
	if errors.Is(err, exec.ErrNotFound) {
		return tc, errors.New("a build stage borrows this machine's Go and there is none; put go on the PATH")
	}
	if err != nil {
		return tc, fmt.Errorf("ask go for its settings: %w", err)
	}
	if err := json.Unmarshal(out, &tc); err != nil {
		return tc, fmt.Errorf("read go's settings: %w", err)
	}
	return tc, nil
}

// ensureBusybox fetches Debian's static one without installing it, since it cannot stand beside the dynamic one.
func ensureBusybox(ctx context.Context, log Log, dir string) (string, error) {
	path := filepath.Join(dir, "busybox")
	err := once(ctx, log, path, func() error {
		work := path + ".making"
		if err := makeEmpty(work); err != nil {
			return err
		}
		defer os.RemoveAll(work)
		fetch := func() error {
			cmd := aptGet(ctx, "-o", "APT::Sandbox::User=root", "download", "busybox-static")
			cmd.Dir = work
			return run(ctx, log, "fetch a static shell", "", cmd)
		}
		if err := fetch(); err != nil {
			if err := run(ctx, log, "update the package lists", "", aptGet(ctx, "update")); err != nil {
				return err
			}
			if err := fetch(); err != nil {
				return err
			}
		}
		found, err := filepath.Glob(filepath.Join(work, "*.deb"))
		if err != nil || len(found) != 1 {
			return fmt.Errorf("apt-get download left %d packages of busybox-static, not one", len(found))
		}
		if err := run(ctx, log, "unpack the static shell", "", exec.CommandContext(ctx, "dpkg-deb", "-x", found[0], work)); err != nil {
			return err
		}
		for _, place := range []string{"bin/busybox", "usr/bin/busybox"} {
			if err = os.Rename(filepath.Join(work, place), path); err == nil {
				return nil
			}
		}
		return err
	})
	return path, err
}

const (
	buildPath = "PATH=/usr/local/go/bin:/bin"
	nonroot   = "65532:65532"
)

// buildImage holds next to nothing, because its layers are copied for every build.
func buildImage(tc toolchain, busybox string) archive.Image {
	files := append(baseFiles(), archive.File{Path: "/bin/busybox", Mode: 0o755, Source: busybox})
	for _, applet := range []string{
		"sh", "cat", "chmod", "chown", "cp", "date", "echo", "env", "find", "grep", "id", "install", "ln", "ls", "mkdir", "mv",
		"printf", "pwd", "rm", "sed", "sort", "tar", "test", "touch", "tr", "true", "uname", "wc", "which", "xargs",
	} {
		files = append(files, archive.File{Path: "/bin/" + applet, Link: "busybox"})
	}
	for _, mounted := range []string{"/usr/local/go", "/go/pkg/mod", "/root/.cache/go-build"} {
		files = append(files, archive.File{Path: mounted, Mode: fs.ModeDir | 0o755})
	}
	return archive.Image{
		Config: archive.Config{
			Env: []string{
				buildPath, "HOME=/root", "GOPATH=/go", "GOTOOLCHAIN=local", "GOPROXY=" + tc.GOPROXY, "GOSUMDB=" + tc.GOSUMDB,
				"GONOSUMDB=" + tc.GONOSUMDB, "GONOPROXY=" + tc.GONOPROXY, "GOPRIVATE=" + tc.GOPRIVATE, "GOFLAGS=" + tc.GOFLAGS,
			},
			WorkingDir: "/",
		},
		Layers: []archive.Layer{{Files: files}},
	}
}

func staticImage() archive.Image {
	return archive.Image{
		Config: archive.Config{Env: []string{pathEnv, "SSL_CERT_FILE=" + certificates}, User: nonroot, WorkingDir: "/"},
		Layers: []archive.Layer{{Files: baseFiles()}},
	}
}

func baseFiles() []archive.File {
	return []archive.File{
		{Path: "/etc/passwd", Content: []byte("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n")},
		{Path: "/etc/group", Content: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{Path: "/etc/nsswitch.conf", Content: []byte("hosts: files dns\n")},
		{Path: certificates, Source: certificates, Mode: 0o644},
		{Path: "/home/nonroot", Mode: fs.ModeDir | 0o700, UID: 65532, GID: 65532},
		{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}
}

// store brings img into buildah's storage as name, tagged with the hash of what it holds.
func store(ctx context.Context, log Log, dir, name string, img archive.Image) (ref string, err error) {
	img.Ref = name + ":base"
	sum := sha256.New()
	if err := archive.Write(sum, img); err != nil {
		return "", fmt.Errorf("make base image %s: %w", name, err)
	}
	img.Ref = name + ":" + hex.EncodeToString(sum.Sum(nil)[:6])

	unlock, err := lock(ctx, log, filepath.Join(dir, stem(img.Ref)+".lock"), img.Ref)
	if err != nil {
		return "", err
	}
	defer unlock()
	if buildah(ctx, dir, "inspect", "--type", "image", img.Ref).Run() == nil {
		return img.Ref, nil
	}
	tarPath := filepath.Join(dir, stem(img.Ref)+".tar")
	defer os.Remove(tarPath)
	if err := archive.WriteFile(tarPath, img); err != nil {
		return "", fmt.Errorf("make base image %s: %w", name, err)
	}
	load := buildah(ctx, dir, "pull", "docker-archive:"+tarPath)
	if err := run(ctx, log, "load base image "+img.Ref, "", load); err != nil {
		return "", err
	}
	return img.Ref, nil
}

// buildah works in a storage of its own beside the images, so that the machine's stays as it is.
func buildah(ctx context.Context, dir string, args ...string) *exec.Cmd {
	storage := filepath.Join(filepath.Dir(dir), "buildah")
	args = append([]string{"--storage-driver", "vfs", "--root", filepath.Join(storage, "root"), "--runroot", filepath.Join(storage, "run")}, args...)
	cmd := exec.CommandContext(ctx, "buildah", args...)
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	// Settings of the machine's own storage, as in CI runners, must not reach ours.
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "STORAGE_") && !strings.HasPrefix(v, "BUILDAH_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd
}
