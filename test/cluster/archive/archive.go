// Package archive writes a container image as one docker-archive tar: what `ctr images import`, `buildah from
// docker-archive:` and `docker load` read, and all that a node without a registry needs. The same image is the
// same bytes every time: no clock, no owner and no order of a map gets in.
package archive

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// Image is what the tar carries: a reference, how a container of it starts, and its file system from the bottom up.
type Image struct {
	Ref    string
	Config Config
	Layers []Layer
}

// Config is the part of an image's configuration that a pod inherits.
type Config struct {
	Entrypoint []string          `json:",omitempty"`
	Cmd        []string          `json:",omitempty"`
	Env        []string          `json:",omitempty"`
	User       string            `json:",omitempty"`
	WorkingDir string            `json:",omitempty"`
	Labels     map[string]string `json:",omitempty"`
}

// Layer is either an uncompressed tar that exists on disk, or files to make one of.
type Layer struct {
	Tar   string
	Files []File
}

type manifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

type configFile struct {
	Architecture string    `json:"architecture"`
	OS           string    `json:"os"`
	Created      time.Time `json:"created"`
	Config       Config    `json:"config"`
	RootFS       rootFS    `json:"rootfs"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

// Write writes img to w. Layers made of files are spooled to disk first, since a tar entry's size precedes its content.
func Write(w io.Writer, img Image) error {
	if img.Ref == "" {
		return errors.New("write image: Ref is empty; name it like registry.example/name:tag")
	}
	if len(img.Layers) == 0 {
		return fmt.Errorf("write image %s: it has no layer", img.Ref)
	}

	out := tar.NewWriter(w)
	fs := rootFS{Type: "layers"}
	var names []string
	for i, layer := range img.Layers {
		digest, err := writeLayer(out, layer)
		if err != nil {
			return fmt.Errorf("write image %s: layer %d: %w", img.Ref, i, err)
		}
		fs.DiffIDs = append(fs.DiffIDs, "sha256:"+digest)
		names = append(names, layerName(digest))
	}

	config, err := json.Marshal(configFile{
		Architecture: runtime.GOARCH, OS: "linux", Created: epoch, Config: img.Config, RootFS: fs,
	})
	if err != nil {
		return fmt.Errorf("write image %s: encode its config: %w", img.Ref, err)
	}
	sum := sha256.Sum256(config)
	configName := hex.EncodeToString(sum[:]) + ".json"
	list, err := json.Marshal([]manifest{{Config: configName, RepoTags: []string{img.Ref}, Layers: names}})
	if err != nil {
		return fmt.Errorf("write image %s: encode its manifest: %w", img.Ref, err)
	}
	for _, f := range []File{{Path: configName, Content: config}, {Path: "manifest.json", Content: list}} {
		if err := writeFile(out, f); err != nil {
			return fmt.Errorf("write image %s: %w", img.Ref, err)
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("write image %s: %w", img.Ref, err)
	}
	return nil
}

// WriteFile writes img to the file at path, which appears only when it is whole.
func WriteFile(path string, img Image) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".archive-*")
	if err != nil {
		return fmt.Errorf("write image %s: %w", img.Ref, err)
	}
	defer os.Remove(tmp.Name())
	defer tmp.Close()
	if err := Write(tmp, img); err != nil {
		return err
	}
	if err := tmp.Chmod(0o644); err != nil {
		return fmt.Errorf("write image %s: %w", img.Ref, err)
	}
	if err := tmp.Close(); err != nil {
		return fmt.Errorf("write image %s: %w", img.Ref, err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("write image %s: %w", img.Ref, err)
	}
	return nil
}

func layerName(digest string) string { return digest + "/layer.tar" }

func writeLayer(out *tar.Writer, layer Layer) (digest string, err error) {
	if (layer.Tar == "") == (len(layer.Files) == 0) {
		return "", errors.New("give either a tar or files, not both and not neither")
	}
	var src *os.File
	if layer.Tar != "" {
		src, err = os.Open(layer.Tar)
	} else {
		src, err = spool(layer.Files)
	}
	if err != nil {
		return "", err
	}
	defer src.Close()

	hash := sha256.New()
	size, err := io.Copy(hash, src)
	if err != nil {
		return "", err
	}
	if _, err := src.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	digest = hex.EncodeToString(hash.Sum(nil))
	if err := out.WriteHeader(header(layerName(digest), 0o644, size)); err != nil {
		return "", err
	}
	_, err = io.Copy(out, src)
	return digest, err
}

// spool makes the layer of files in a temporary file that vanishes when it is closed.
func spool(files []File) (*os.File, error) {
	tmp, err := os.CreateTemp("", "layer-*.tar")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(tmp.Name()); err != nil {
		return nil, err
	}
	out := tar.NewWriter(tmp)
	for _, f := range withParents(files) {
		if err := writeFile(out, f); err != nil {
			return nil, errors.Join(err, tmp.Close())
		}
	}
	if err := out.Close(); err != nil {
		return nil, errors.Join(err, tmp.Close())
	}
	if _, err := tmp.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, tmp.Close())
	}
	return tmp, nil
}
