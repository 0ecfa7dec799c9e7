package image

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/test/cluster/archive"
)

func TestEveryImageRunsAsANumericUserThatIsNotRoot(t *testing.T) {
	for _, r := range recipes {
		assert.Regexp(t, regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`), r.Config.User, r.Name)
		assert.True(t, strings.HasPrefix(r.Ref, "localhost/"), "%s must not look like an image of a registry: %s", r.Name, r.Ref)
	}
}

func TestNamesAndReferencesAreWhatTheClusterImports(t *testing.T) {
	assert.Equal(t, []string{"glance-bookworm", "glance-trixie", "keystone-bookworm", "keystone-trixie", "mariadb"}, Names())
	for name, want := range map[string]string{
		GlanceBookworm: "localhost/glance:bookworm", GlanceTrixie: "localhost/glance:trixie",
		KeystoneBookworm: "localhost/keystone:bookworm", KeystoneTrixie: "localhost/keystone:trixie",
		MariaDB: "localhost/mariadb:bookworm",
	} {
		ref, err := Ref(name)
		require.NoError(t, err)
		assert.Equal(t, want, ref)
	}
}

func TestAKeyChangesWithWhateverDecidesTheContent(t *testing.T) {
	base, err := find(MariaDB)
	require.NoError(t, err)
	again, err := find(MariaDB)
	require.NoError(t, err)
	assert.Equal(t, base.Key(), again.Key(), "the same recipe has the same key")
	assert.True(t, strings.HasPrefix(base.Key(), MariaDB+"-"))

	keys := map[string]string{base.Key(): "nothing"}
	for what, change := range map[string]func(*Recipe){
		"the suite":        func(r *Recipe) { r.Suite = "trixie" },
		"a package":        func(r *Recipe) { r.Packages = append([]string{"gdb"}, r.Packages...) },
		"an omitted path":  func(r *Recipe) { r.Omit = append([]string{"/x"}, r.Omit...) },
		"the tweak":        func(r *Recipe) { r.Tweak += "true\n" },
		"a file's content": func(r *Recipe) { r.Files = []archive.File{{Path: r.Files[0].Path, Mode: 0o755, Content: []byte("x")}} },
		"a file's mode": func(r *Recipe) {
			r.Files = []archive.File{{Path: r.Files[0].Path, Mode: 0o700, Content: r.Files[0].Content}}
		},
		"the user":      func(r *Recipe) { r.Config.User = "1:1" },
		"the reference": func(r *Recipe) { r.Ref = "localhost/other:x" },
	} {
		changed := base
		change(&changed)
		key := changed.Key()
		assert.NotContains(t, keys, key, "%s does not change the key", what)
		keys[key] = what
	}
}

func TestAnUnknownImageIsRefusedWithTheNamesThereAre(t *testing.T) {
	_, err := Ensure(t.Context(), t.Logf, "cinder")
	assert.EqualError(t, err, `no image is called "cinder"; there are: glance-bookworm, glance-trixie, keystone-bookworm, keystone-trixie, mariadb`)
}
