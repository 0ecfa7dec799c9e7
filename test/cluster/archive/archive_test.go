package archive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func sample(t *testing.T) Image {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(binary, []byte("ELF"), 0o755); err != nil {
		t.Fatal(err)
	}
	return Image{
		Ref:    "test.local/server:1",
		Config: Config{Entrypoint: []string{"/bin/server"}, Env: []string{"A=b"}, User: "65532:65532", WorkingDir: "/data"},
		Layers: []Layer{
			{Files: []File{
				{Path: "/bin/server", Source: binary},
				{Path: "/data", Mode: fs.ModeDir | fs.ModeSticky | 0o777, UID: 65532},
				{Path: "bin/alias", Link: "server"},
			}},
			{Files: []File{{Path: "/etc/late", Content: []byte("x"), Mode: 0o600}}},
		},
	}
}

func read(t *testing.T, raw []byte) (names []string, headers map[string]*tar.Header, contents map[string][]byte) {
	t.Helper()
	headers, contents = map[string]*tar.Header{}, map[string][]byte{}
	r := tar.NewReader(bytes.NewReader(raw))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names, headers, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		headers[h.Name], contents[h.Name] = h, content
	}
}

func written(t *testing.T, img Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestManifestConfigAndLayersNameEachOtherByDigest(t *testing.T) {
	_, _, contents := read(t, written(t, sample(t)))
	var list []manifest
	if err := json.Unmarshal(contents["manifest.json"], &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || !slices.Equal(list[0].RepoTags, []string{"test.local/server:1"}) {
		t.Fatalf("manifest: %+v", list)
	}
	sum := sha256.Sum256(contents[list[0].Config])
	if want := hex.EncodeToString(sum[:]) + ".json"; list[0].Config != want {
		t.Errorf("config is named %s, its digest says %s", list[0].Config, want)
	}
	var config configFile
	if err := json.Unmarshal(contents[list[0].Config], &config); err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || config.Config.WorkingDir != "/data" || config.OS != "linux" {
		t.Errorf("config: %+v", config)
	}
	if len(list[0].Layers) != 2 || len(config.RootFS.DiffIDs) != 2 {
		t.Fatalf("want two layers: %v %v", list[0].Layers, config.RootFS.DiffIDs)
	}
	for i, name := range list[0].Layers {
		sum := sha256.Sum256(contents[name])
		if want := "sha256:" + hex.EncodeToString(sum[:]); config.RootFS.DiffIDs[i] != want {
			t.Errorf("layer %d: diff id %s, content %s", i, config.RootFS.DiffIDs[i], want)
		}
	}
}

func TestALayerOfFilesHasParentsModesAndLinks(t *testing.T) {
	_, _, contents := read(t, written(t, sample(t)))
	var list []manifest
	if err := json.Unmarshal(contents["manifest.json"], &list); err != nil {
		t.Fatal(err)
	}
	names, headers, files := read(t, contents[list[0].Layers[0]])
	if want := []string{"bin/", "bin/alias", "bin/server", "data/"}; !slices.Equal(names, want) {
		t.Fatalf("entries %v, want %v", names, want)
	}
	if h := headers["bin/server"]; h.Mode != 0o755 || string(files["bin/server"]) != "ELF" {
		t.Errorf("bin/server: mode %o content %q", h.Mode, files["bin/server"])
	}
	if h := headers["data/"]; h.Mode != 0o1777 || h.Uid != 65532 || h.Typeflag != tar.TypeDir {
		t.Errorf("data/: %+v", h)
	}
	if h := headers["bin/alias"]; h.Linkname != "server" || h.Typeflag != tar.TypeSymlink {
		t.Errorf("bin/alias: %+v", h)
	}
}

func TestTheSameImageIsTheSameBytes(t *testing.T) {
	if !bytes.Equal(written(t, sample(t)), written(t, sample(t))) {
		t.Error("two archives of one image differ")
	}
}

func TestAnExistingTarBecomesALayerUnchanged(t *testing.T) {
	layer := filepath.Join(t.TempDir(), "rootfs.tar")
	if err := os.WriteFile(layer, []byte("any bytes"), 0o600); err != nil {
		t.Fatal(err)
	}
	names, _, contents := read(t, written(t, Image{Ref: "a:b", Layers: []Layer{{Tar: layer}}}))
	if got := string(contents[names[0]]); got != "any bytes" {
		t.Errorf("layer holds %q", got)
	}
}

func TestAnImageThatCannotBeIsRefusedInOneLine(t *testing.T) {
	for wish, img := range map[string]Image{
		"Ref is empty":     {Layers: []Layer{{Tar: "x"}}},
		"no layer":         {Ref: "a:b"},
		"either a tar":     {Ref: "a:b", Layers: []Layer{{}}},
		"no such file":     {Ref: "a:b", Layers: []Layer{{Tar: "/nowhere/x.tar"}}},
		"add bin/missing:": {Ref: "a:b", Layers: []Layer{{Files: []File{{Path: "/bin/missing", Source: "/nowhere/x"}}}}},
	} {
		err := Write(io.Discard, img)
		if err == nil || !strings.Contains(err.Error(), wish) || strings.Contains(err.Error(), "\n") {
			t.Errorf("want %q, got %v", wish, err)
		}
	}
}

func TestAFileAppearsOnlyWhenItIsWhole(t *testing.T) {
	dir := t.TempDir()
	if err := WriteFile(filepath.Join(dir, "bad.tar"), Image{Ref: "a:b", Layers: []Layer{{}}}); err == nil {
		t.Error("an empty layer was accepted")
	}
	if err := WriteFile(filepath.Join(dir, "good.tar"), sample(t)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != "good.tar" {
		t.Errorf("left behind: %v", entries)
	}
}
