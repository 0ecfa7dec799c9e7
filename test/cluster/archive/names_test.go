package archive

import (
	"archive/tar"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func tarOf(t *testing.T, entries map[string]string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.tar")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	out := tar.NewWriter(f)
	for name, content := range entries {
		if err := writeFile(out, File{Path: name, Content: []byte(content)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNamesAreReadFromBothKindsOfArchive(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own.tar")
	if err := WriteFile(own, sample(t)); err != nil {
		t.Fatal(err)
	}
	oci := tarOf(t, map[string]string{
		"index.json": `{"manifests":[{"annotations":{"org.opencontainers.image.ref.name":"1","io.containerd.image.name":"test.local/a:1"}}]}`,
	})
	for path, want := range map[string]string{own: "test.local/server:1", oci: "test.local/a:1"} {
		if got, err := Names(path); err != nil || !slices.Equal(got, []string{want}) {
			t.Errorf("got %v %v, want %s", got, err, want)
		}
	}
}

func TestWhatIsNoImageIsSaidInOneLine(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no tar\n", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/nowhere.tar":                           "no such file",
		text:                                     "give an uncompressed",
		tarOf(t, map[string]string{"other": ""}): "holds no image",
		tarOf(t, map[string]string{"manifest.json": "{"}):               "manifest.json",
		tarOf(t, map[string]string{"manifest.json": `[{"Layers":[]}]`}): "without a name",
	} {
		_, err := Names(path)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
