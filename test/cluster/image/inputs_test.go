package image

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestADockerignoreIsReadAsABuildReadsIt(t *testing.T) {
	ignore, err := parseIgnored("# only sources\n*\n!go.mod\n!shared\n/!x\n**/*_test.go\n**/testdata\n")
	require.NoError(t, err)
	for path, out := range map[string]bool{
		"go.mod": false, "shared/release/release.go": false, "README.md": true, ".git/index": true, "sharedlike": true,
		"shared/release/release_test.go": true, "shared/testdata/a/b": true, "deploy/shared": true, "x": true,
	} {
		assert.Equal(t, out, ignore.leavesOut(path), path)
	}
	assert.False(t, ignore.mayTakeIn(".git"), ".git is skipped whole")

	ignore, err = parseIgnored("a?c\nbin/\nlogs/**/old\n!bin/keep\n!**/x.go\n")
	require.NoError(t, err)
	for path, out := range map[string]bool{
		"abc": true, "a/c": false, "abbc": false, "bin/tool": true, "bin/keep": false, "cabin/tool": false,
		"logs/old": true, "logs/a/b/old/f": true, "bin/sub/x.go": false,
	} {
		assert.Equal(t, out, ignore.leavesOut(path), path)
	}
	assert.True(t, ignore.mayTakeIn("bin"))

	_, err = parseIgnored("[ab].go")
	assert.EqualError(t, err, `.dockerignore: "[ab].go": write it with *, ** and ? alone, so that a change of the inputs is seen`)
}

func TestAnyInputOfABuildChangesItsKeyAndNothingElseDoes(t *testing.T) {
	dir := t.TempDir()
	put := func(name, content string, mode os.FileMode) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), mode))
		require.NoError(t, os.Chmod(path, mode))
	}
	ref, version, args := "localhost/a:b", "go1", map[string]string{"A": "1"}
	key := func() string {
		k, err := inputsKey(filepath.Join(dir, "Dockerfile"), dir, ref, version, args)
		require.NoError(t, err)
		return k
	}
	put("Dockerfile", "FROM scratch", 0o644)
	put(".dockerignore", "docs\n", 0o644)
	put("src/main.go", "package main", 0o644)
	first := key()
	assert.Equal(t, first, key())
	put("docs/page.md", "words", 0o644)
	assert.Equal(t, first, key(), "what the build does not see does not count")

	seen := map[string]string{first: "nothing"}
	for _, step := range []struct {
		what   string
		change func()
	}{
		{"a source", func() { put("src/main.go", "package main // changed", 0o644) }},
		{"a new source", func() { put("src/more.go", "package main", 0o644) }},
		{"a mode", func() { put("src/more.go", "package main", 0o755) }},
		{"a name", func() {
			require.NoError(t, os.Rename(filepath.Join(dir, "src/more.go"), filepath.Join(dir, "src/less.go")))
		}},
		{"a link", func() { require.NoError(t, os.Symlink("main.go", filepath.Join(dir, "src/link.go"))) }},
		{"the Dockerfile", func() { put("Dockerfile", "FROM scratch AS x", 0o644) }},
		{"an argument", func() { args = map[string]string{"A": "2"} }},
		{"the reference", func() { ref = "localhost/a:c" }},
		{"the toolchain", func() { version = "go2" }},
	} {
		step.change()
		k := key()
		assert.NotContains(t, seen, k, "%s does not change the key", step.what)
		seen[k] = step.what
	}
}

func TestABuildWithWrongArgumentsSaysWhichAndWhatToGive(t *testing.T) {
	dir := t.TempDir()
	dockerfile := filepath.Join(dir, "Dockerfile")
	_, err := Build(t.Context(), t.Logf, dockerfile, dir, "localhost/a:b", nil)
	assert.EqualError(t, err, "build localhost/a:b: "+dockerfile+" is not a file; give the Dockerfile's path")

	require.NoError(t, os.WriteFile(dockerfile, []byte("FROM scratch"), 0o644))
	_, err = Build(t.Context(), t.Logf, dockerfile, filepath.Join(dir, "none"), "localhost/a:b", nil)
	assert.ErrorContains(t, err, "is not a directory; give the build context's path")
	_, err = Build(t.Context(), t.Logf, dockerfile, dir, "", nil)
	assert.ErrorContains(t, err, "the reference is empty; name it like localhost/webhook:dev")
	_, err = FromBinary(t.Context(), t.Logf, "localhost/a:b", "")
	assert.ErrorContains(t, err, "both a package and a reference are needed")
}
