package drill

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/test/cluster/archive"
)

func TestAnImageIsMadeOnceAndSaysWhichReleaseItIs(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	// What Go has compiled already need not be compiled again.
	home, err := os.UserHomeDir()
	require.NoError(t, err)
	t.Setenv("GOCACHE", filepath.Join(home, ".cache", "go-build"))
	var said []string
	log := func(format string, _ ...any) { said = append(said, format) }

	path, err := Ensure(t.Context(), log, "2026.1-p1")
	require.NoError(t, err)
	names, err := archive.Names(path)
	require.NoError(t, err)
	assert.Equal(t, []string{"localhost/drill/glance:2026.1-p1"}, names)
	config, entries := contents(t, path)
	assert.Equal(t, []string{"PATH=/usr/bin", "DRILL_RELEASE=2026.1", "DRILL_TAG=2026.1-p1"}, config.Env)
	assert.Equal(t, "65532:65532", config.User)
	for _, name := range []string{"glance-manage", "glance-api", "uwsgi"} {
		assert.Equal(t, "drill", entries["usr/bin/"+name])
	}
	assert.Contains(t, entries, "usr/bin/drill")

	again, err := Ensure(t.Context(), log, "2026.1-p1")
	require.NoError(t, err)
	assert.Equal(t, path, again)
	assert.Len(t, said, 1, "the second time nothing is made")
	other, err := Ensure(t.Context(), log, "2026.1")
	require.NoError(t, err)
	assert.NotEqual(t, path, other)
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	require.NoError(t, err)
	assert.Len(t, left, 2, "nothing else is left behind: %v", left)
}

func TestATagThatIsNoReleaseIsRefused(t *testing.T) {
	for tag, says := range map[string]string{"latest": "give a release", "2026.1-p1/x": "give a release", "2025.1": "none of 2026.1, 2026.2, 2027.1"} {
		_, err := Ensure(t.Context(), t.Logf, tag)
		require.ErrorContains(t, err, says)
	}
}

// contents reads the configuration of an image, and its files with where they link to.
func contents(t *testing.T, path string) (config archive.Config, entries map[string]string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	entries = map[string]string{}
	walk(t, raw, func(h *tar.Header, content []byte) {
		switch {
		case strings.HasSuffix(h.Name, "layer.tar"):
			walk(t, content, func(h *tar.Header, _ []byte) { entries[h.Name] = h.Linkname })
		case h.Name != "manifest.json":
			var whole struct{ Config archive.Config }
			require.NoError(t, json.Unmarshal(content, &whole))
			config = whole.Config
		}
	})
	return config, entries
}

func walk(t *testing.T, raw []byte, visit func(h *tar.Header, content []byte)) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(raw)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		visit(h, content)
	}
}
