// Package test holds what is true of the tree as a whole: who imports whom, what source may not say, and that the
// manifests agree with the code.
package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	module   = "github.com/c5c3/openstack-upgrade"
	standard = "standard library"
	anything = "anything"
)

// layer says what the packages below a path may import directly, besides each other where tree is set. Paths without
// a dot are ours; the others are prefixes of modules.
type layer struct {
	path string
	tree bool
	may  []string
}

var (
	law   = []string{"shared/release", "shared/image", "shared/upgrade"}
	types = []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/utils"}

	layers = []layer{
		{path: "shared/release", may: []string{standard}},
		{path: "shared/image", may: []string{standard, "shared/release"}},
		{path: "shared/upgrade", may: []string{standard, "shared/release", "shared/image"}},
		{path: "shared/api", tree: true, may: slices.Concat([]string{standard}, law, types)},
		{path: "shared/logging", may: []string{standard, "go.uber.org/zap", "github.com/go-logr"}},
		{path: "certs/serving", may: []string{standard, "github.com/fsnotify/fsnotify", "github.com/go-logr/logr", "github.com/prometheus/client_golang"}},
		{path: "certs/issuing", tree: true, may: slices.Concat([]string{standard, "github.com/cert-manager/cert-manager", "sigs.k8s.io/yaml"}, types)},
		{path: "deploy/base/crds", may: []string{standard}},
		{path: "webhook", tree: true, may: []string{anything, "shared", "certs/serving", "deploy/base/crds"}},
		{path: "controller/render", may: slices.Concat([]string{standard, "shared/api", "sigs.k8s.io/yaml"}, law, types)},
		{path: "controller/service", may: slices.Concat([]string{standard, "shared/api", "controller/render"}, law, types)},
		{path: "controller", tree: true, may: []string{anything, "shared"}},
	}

	// never is what a package, or anything it pulls in, must not link.
	never = map[string][]string{
		"webhook":            {"github.com/cert-manager", "k8s.io/client-go/kubernetes", "k8s.io/client-go/tools/clientcmd", "k8s.io/client-go/rest", "sigs.k8s.io/controller-runtime/pkg/client"},
		"controller":         {"github.com/cert-manager"},
		"controller/render":  {"k8s.io/client-go", "sigs.k8s.io/controller-runtime"},
		"controller/service": {"k8s.io/client-go", "sigs.k8s.io/controller-runtime"},
		"shared/api":         {"k8s.io/client-go", "sigs.k8s.io/controller-runtime"},
	}

	// pure packages take time as an argument and wait for nobody.
	pure = append([]string{"controller/render", "controller/service"}, law...)

	house = append([]string{
		"shared/api/v1alpha1", "shared/logging", "certs/serving", "certs/issuing",
		"webhook", "webhook/admission", "webhook/lint", "webhook/server",
		"controller", "controller/reconcile", "controller/service", "controller/render", "controller/metrics",
	}, law...)

	shapeless = []string{"util", "utils", "common", "helper", "helpers", "types", "misc"}
)

type goPackage struct {
	ImportPath string
	Name       string
	Dir        string
	Standard   bool
	GoFiles    []string
	Imports    []string
}

type tree map[string]goPackage

func TestPackagesImportOnlyWhatTheirLayerMay(t *testing.T) {
	for _, violation := range listTree(t).violations() {
		t.Error(violation)
	}
}

func TestTheHouseIsComplete(t *testing.T) {
	packages := listTree(t)
	for _, name := range house {
		assert.Contains(t, packages, module+"/"+name)
	}
}

func TestTheRulesCatchWhatTheyAreFor(t *testing.T) {
	std := goPackage{ImportPath: "context", Standard: true}
	cases := map[string]struct {
		packages []goPackage
		says     string
	}{
		"the law imports a module":            {says: "shared/upgrade may not import k8s.io/api/core/v1", packages: ours("shared/upgrade", "k8s.io/api/core/v1")},
		"the law imports upwards":             {says: "shared/release may not import shared/upgrade", packages: ours("shared/release", module+"/shared/upgrade")},
		"one binary imports the other":        {says: "webhook/admission may not import controller/render", packages: ours("webhook/admission", module+"/controller/render")},
		"a binary imports the tests":          {says: "controller may not import test/build", packages: ours("controller", module+"/test/build")},
		"a binary links cert-manager":         {says: "controller links github.com/cert-manager/cert-manager/pkg/apis", packages: append(ours("controller", "example.org/x"), goPackage{ImportPath: "example.org/x", Imports: []string{"github.com/cert-manager/cert-manager/pkg/apis"}})},
		"rendering takes a context":           {says: "controller/render is pure and may not import context", packages: append(ours("controller/render", "context"), std)},
		"the webhook holds a client":          {says: "webhook/server links k8s.io/client-go/rest", packages: ours("webhook/server", "k8s.io/client-go/rest")},
		"a package stands outside":            {says: "other has no layer", packages: ours("other", "fmt")},
		"a package is a drawer for leftovers": {says: "shared/util is named after nothing", packages: ours("shared/util")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			packages := tree{}
			for _, p := range c.packages {
				packages[p.ImportPath] = p
			}
			assert.Contains(t, strings.Join(packages.violations(), "\n"), c.says)
		})
	}
}

func ours(name string, imports ...string) []goPackage {
	return []goPackage{{ImportPath: module + "/" + name, Imports: imports}}
}

// violations judges every package of ours that is not a test's.
func (packages tree) violations() []string {
	var found []string
	for importPath, p := range packages {
		name, own := ownName(importPath)
		if !own || under(name, "test") {
			continue
		}
		if slices.Contains(shapeless, path.Base(name)) {
			found = append(found, name+" is named after nothing it does")
		}
		l, ok := layerOf(name)
		if !ok {
			found = append(found, name+" has no layer; give it one in test/layering_test.go")
			continue
		}
		for _, imported := range p.Imports {
			if !packages.mayImport(l, imported) {
				found = append(found, fmt.Sprintf("%s may not import %s", name, strings.TrimPrefix(imported, module+"/")))
			}
			if slices.ContainsFunc(pure, func(root string) bool { return under(name, root) }) && slices.Contains([]string{"context", "math/rand", "math/rand/v2", "crypto/rand", "os"}, imported) {
				found = append(found, fmt.Sprintf("%s is pure and may not import %s", name, imported))
			}
		}
		for root, forbidden := range never {
			if !under(name, root) {
				continue
			}
			for linked := range packages.links(importPath) {
				if slices.ContainsFunc(forbidden, func(prefix string) bool { return under(linked, prefix) }) {
					found = append(found, fmt.Sprintf("%s links %s", name, linked))
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func (packages tree) mayImport(l layer, imported string) bool {
	name, own := ownName(imported)
	if own && l.tree && under(name, l.path) {
		return true
	}
	for _, allowed := range l.may {
		switch allowed {
		case standard:
			if p, known := packages[imported]; !own && (known && p.Standard || !known && !strings.Contains(imported, ".")) {
				return true
			}
		case anything:
			if !own {
				return true
			}
		default:
			if under(name, allowed) {
				return true
			}
		}
	}
	return false
}

// links is everything that a package pulls in, itself excluded.
func (packages tree) links(importPath string) map[string]bool {
	seen := map[string]bool{}
	queue := []string{importPath}
	for len(queue) > 0 {
		p := packages[queue[0]]
		queue = queue[1:]
		for _, imported := range p.Imports {
			if !seen[imported] {
				seen[imported] = true
				queue = append(queue, imported)
			}
		}
	}
	return seen
}

// layerOf finds the most specific layer.
func layerOf(name string) (layer, bool) {
	var best layer
	for _, l := range layers {
		if under(name, l.path) && len(l.path) > len(best.path) {
			best = l
		}
	}
	return best, best.path != ""
}

func under(name, root string) bool {
	return name == root || strings.HasPrefix(name, root+"/")
}

// ownName cuts the module off a path of ours and leaves others as they are.
func ownName(importPath string) (name string, own bool) {
	return strings.CutPrefix(importPath, module+"/")
}

func listTree(t *testing.T) tree {
	t.Helper()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", "-json=ImportPath,Name,Dir,Standard,GoFiles,Imports", "./...")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	packages := tree{}
	for decoder := json.NewDecoder(output); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			require.NoError(t, err, "read what go list says")
		}
		packages[p.ImportPath] = p
	}
	require.NoError(t, cmd.Wait())
	require.NotEmpty(t, packages)
	return packages
}
