package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	// mainOnly is what a package below main gets as an argument instead.
	mainOnly = map[string][]string{
		"os":      {"Exit", "Getenv", "LookupEnv", "Environ", "ExpandEnv", "Args"},
		"flag":    nil,
		"log":     {"Fatal", "Fatalf", "Fatalln"},
		"syscall": {"Exit", "Getenv"},
	}
	// clock is what a pure package gets as an argument instead.
	clock = map[string][]string{"time": {"Now", "Since", "Until", "After", "Sleep", "Tick", "NewTimer", "NewTicker"}}

	services = []string{"glance", "keystone", "cinder", "nova", "neutron"}

	// machine must walk any service, so it names none.
	machine = append([]string{"controller/reconcile", "controller/metrics", "controller/render", "webhook/server", "webhook/admission", "webhook/lint"}, law...)
	// tables are where each service has its own file, or its own entry.
	tables = map[string][]string{"webhook/admission": {"kind.go"}}
)

func TestOnlyMainReadsFlagsAndEnvironmentOrExits(t *testing.T) {
	eachFile(t, func(p goPackage, _, _ string, file *ast.File) []string {
		if p.Name == "main" {
			return nil
		}
		return uses(file, mainOnly)
	})
}

func TestPurePackagesKnowNoClock(t *testing.T) {
	eachFile(t, func(_ goPackage, name, _ string, file *ast.File) []string {
		if !slices.ContainsFunc(pure, func(root string) bool { return under(name, root) }) {
			return nil
		}
		return uses(file, clock)
	})
}

func TestNothingBranchesOnAServiceAndTheMachineNamesNone(t *testing.T) {
	eachFile(t, func(_ goPackage, name, base string, file *ast.File) []string {
		found := branches(file)
		if slices.ContainsFunc(machine, func(root string) bool { return under(name, root) }) && !slices.Contains(tables[name], base) {
			found = append(found, names(file)...)
		}
		return found
	})
}

func TestTheScansCatchWhatTheyAreFor(t *testing.T) {
	const source = `package p
import ("os"; clock "time")
func f(service string) {
	os.Exit(1)
	_ = clock.Now()
	if service == "glance" {}
	switch service { case "keystone": }
	if service != kindNova {}
	switch any(service).(type) { case *api.Cinder: }
	var glances []string
	_ = glances
}`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, 0)
	require.NoError(t, err)
	assert.Equal(t, []string{"os.Exit"}, uses(file, mainOnly))
	assert.Equal(t, []string{"time.Now"}, uses(file, clock))
	assert.Equal(t, []string{`branches on "glance"`, `branches on "keystone"`, "branches on kindNova", "branches on Cinder"}, branches(file))
	assert.Equal(t, []string{`names "glance"`, `names "keystone"`, "names kindNova", "names Cinder", "names glances", "names glances"}, names(file))
}

// uses lists the selectors of packages that are called by their name or by an alias; nil stands for the whole package.
func uses(file *ast.File, forbidden map[string][]string) []string {
	imported := map[string]string{}
	for _, spec := range file.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if _, watched := forbidden[importPath]; err != nil || !watched {
			continue
		}
		alias := importPath
		if spec.Name != nil {
			alias = spec.Name.Name
		}
		imported[alias] = importPath
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		left, ok := selector.X.(*ast.Ident)
		if !ok {
			return true
		}
		if importPath, watched := imported[left.Name]; watched {
			if list := forbidden[importPath]; list == nil || slices.Contains(list, selector.Sel.Name) {
				found = append(found, importPath+"."+selector.Sel.Name)
			}
		}
		return true
	})
	return found
}

// branches lists comparisons and cases against a service's name.
func branches(file *ast.File) []string {
	var found []string
	judge := func(operands ...ast.Expr) {
		for _, operand := range operands {
			if word := wordOf(operand); namesService(word) {
				found = append(found, "branches on "+word)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				judge(n.X, n.Y)
			}
		case *ast.CaseClause:
			judge(n.List...)
		}
		return true
	})
	return found
}

// wordOf is what an operand or the case of a type switch is called: a literal, a
// constant, a type.
func wordOf(operand ast.Expr) string {
	switch operand := operand.(type) {
	case *ast.BasicLit:
		return operand.Value
	case *ast.Ident:
		return operand.Name
	case *ast.SelectorExpr:
		return operand.Sel.Name
	case *ast.StarExpr:
		return wordOf(operand.X)
	}
	return ""
}

// names lists identifiers and strings that hold a service's name.
func names(file *ast.File) []string {
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if namesService(n.Name) {
				found = append(found, "names "+n.Name)
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING && namesService(n.Value) {
				found = append(found, "names "+n.Value)
			}
		}
		return true
	})
	return found
}

func namesService(text string) bool {
	return slices.ContainsFunc(services, func(service string) bool {
		return strings.Contains(strings.ToLower(text), service)
	})
}

// eachFile shows every source file of ours that is not a test's to judge, and reports what it finds.
func eachFile(t *testing.T, judge func(p goPackage, name, base string, file *ast.File) []string) {
	t.Helper()
	for importPath, p := range listTree(t) {
		name, own := ownName(importPath)
		if !own || under(name, "test") {
			continue
		}
		for _, base := range p.GoFiles {
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, filepath.Join(p.Dir, base), nil, 0)
			require.NoError(t, err)
			for _, found := range judge(p, name, base, file) {
				t.Errorf("%s/%s: %s", name, base, found)
			}
		}
	}
}
