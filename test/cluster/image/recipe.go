package image

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	"github.com/c5c3/openstack-upgrade/test/cluster/archive"
)

// Recipe is everything that decides what is in an image of Debian's packages, and so all that its key is made of.
type Recipe struct {
	Name     string
	Suite    string
	Ref      string
	Packages []string
	Omit     []string // paths that dpkg leaves out
	Tweak    string   // shell, run inside the finished root file system
	Files    []archive.File
	Config   archive.Config
}

const (
	GlanceBookworm   = "glance-bookworm"
	GlanceTrixie     = "glance-trixie"
	KeystoneBookworm = "keystone-bookworm"
	KeystoneTrixie   = "keystone-trixie"
	MariaDB          = "mariadb"
)

var recipes = []Recipe{
	glance(GlanceBookworm, "bookworm"),
	glance(GlanceTrixie, "trixie"),
	keystone(KeystoneBookworm, "bookworm"),
	keystone(KeystoneTrixie, "trixie"),
	mariadb("bookworm"),
}

var (
	//go:embed recipes/openstack.sh
	openstackTweak string
	//go:embed recipes/keystone.sh
	keystoneTweak string
	//go:embed recipes/mariadb.sh
	mariadbTweak string
	//go:embed recipes/mariadb-entrypoint.sh
	mariadbEntrypoint []byte
)

// Names lists the images that Ensure can make.
func Names() []string {
	names := make([]string, len(recipes))
	for i, r := range recipes {
		names[i] = r.Name
	}
	return names
}

// Ref is the reference under which the image called name is imported.
func Ref(name string) (string, error) {
	r, err := find(name)
	return r.Ref, err
}

func find(name string) (Recipe, error) {
	for _, r := range recipes {
		if r.Name == name {
			return r, nil
		}
	}
	return Recipe{}, fmt.Errorf("no image is called %q; there are: %s", name, strings.Join(Names(), ", "))
}

func glance(name, suite string) Recipe {
	return openstack(name, suite, "glance", "", "glance-common")
}

// keystone takes the program without Debian's package of the running service, which would set up a database while it is installed.
func keystone(name, suite string) Recipe {
	return openstack(name, suite, "keystone", keystoneTweak, "python3-keystone")
}

// openstack is a service's commands and its API under uWSGI. The user is Debian's own fixed one for the service, but
// nothing depends on it: every file is readable by any user, and only what a pod mounts is written to.
func openstack(name, suite, service, tweak string, packages ...string) Recipe {
	return Recipe{
		Name:     name,
		Suite:    suite,
		Ref:      "localhost/" + service + ":" + suite,
		Packages: append(packages, "python3-pymysql", "uwsgi-core", "uwsgi-plugin-python3", "ca-certificates"),
		Omit:     append(neverRead, onlyForS3...),
		Tweak:    "service=" + service + "\n" + tweak + openstackTweak,
		Config: archive.Config{
			Env:        []string{pathEnv, "LANG=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1"},
			User:       userOf[service],
			WorkingDir: "/",
		},
	}
}

// userOf holds the fixed ids that Debian reserves, or free ones of that range where it reserves none; numeric, so that a
// kubelet can see that they are not root.
var userOf = map[string]string{"glance": "64062:64062", "keystone": "64101:64101"}

// mariadbUser is free in Debian's ranges; the tweak gives it a name, so that the client is let in over the socket.
const mariadbUser = "64100:64100"

func mariadb(suite string) Recipe {
	return Recipe{
		Name:     MariaDB,
		Suite:    suite,
		Ref:      "localhost/mariadb:" + suite,
		Packages: []string{"mariadb-server-core", "mariadb-client-core", "mariadb-common"},
		Omit:     neverRead,
		Tweak:    mariadbTweak,
		Files:    []archive.File{{Path: "/usr/local/bin/serve-databases", Mode: 0o755, Content: mariadbEntrypoint}},
		Config: archive.Config{
			Entrypoint: []string{"/usr/local/bin/serve-databases"},
			Env:        []string{pathEnv, "LANG=C.UTF-8"},
			User:       mariadbUser,
			WorkingDir: "/",
		},
	}
}

const pathEnv = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

var neverRead = []string{
	"/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/info/*", "/usr/share/lintian/*",
	"/usr/share/fonts/*", "/usr/share/X11/*", "/usr/share/perl/*/unicore/*.txt", "/usr/include/*",
	"/usr/lib/x86_64-linux-gnu/*.a", "/usr/lib/aarch64-linux-gnu/*.a", "/usr/lib/udev/hwdb.d/*", "/lib/udev/hwdb.d/*",
}

// onlyForS3 is what boto knows about each of Amazon's regions: a tenth of the image, for a store nobody has here.
var onlyForS3 = []string{"/usr/lib/python3/dist-packages/botocore/data/*"}

// Key names the recipe's content: another recipe, another key.
func (r Recipe) Key() string {
	type file struct {
		Path    string
		Mode    fs.FileMode
		Content []byte
	}
	var files []file
	for _, f := range r.Files {
		files = append(files, file{f.Path, f.Mode, f.Content})
	}
	said, err := json.Marshal(struct {
		Recipe
		Files []file
		Way   int // raise it when the way of bootstrapping changes what comes out
	}{r, files, 1})
	if err != nil {
		panic(err) // plain strings and numbers always encode
	}
	sum := sha256.Sum256(said)
	return r.Name + "-" + hex.EncodeToString(sum[:8])
}
