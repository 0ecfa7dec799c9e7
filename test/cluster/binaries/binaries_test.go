package binaries

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// repository is a tiny clone: the marks by which it is known and one module whose program builds in a second.
func repository(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	files := map[string]string{
		"go.mod":                             "module " + projectModule + "\n",
		"test/cluster/modules/pause/go.mod":  "module pause\n\ngo 1.26\n",
		"test/cluster/modules/pause/main.go": "package main\n\nfunc main() { println(\"paused\") }\n",
	}
	for _, p := range programs {
		if p.module != "pause" {
			files[filepath.Join("test/cluster/modules", p.module, "go.mod")] = "module " + p.module + "\n"
		}
	}
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The go command would keep its cache there too, and compile the standard library anew.
	t.Setenv("GOCACHE", goCache(t))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return root
}

func goCache(t *testing.T) string {
	t.Helper()
	dir, err := goCommand(context.Background(), ".", "env", "GOCACHE")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(dir)
}

type said struct{ lines []string }

func (s *said) log(format string, _ ...any) { s.lines = append(s.lines, format) }

func buildPause(t *testing.T, root string) (dir string, built bool) {
	t.Helper()
	t.Chdir(root)
	var s said
	dir, err := Ensure(context.Background(), s.log, "pause")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "pause")); err != nil {
		t.Fatal(err)
	}
	return dir, slices.ContainsFunc(s.lines, func(line string) bool { return strings.HasPrefix(line, "built ") })
}

func TestWhatIsBuiltOnceIsKept(t *testing.T) {
	root := repository(t)
	first, built := buildPause(t, root)
	if !built {
		t.Error("nothing was built at first")
	}
	again, built := buildPause(t, filepath.Join(root, "test", "cluster"))
	if built || again != first {
		t.Errorf("built again: %v, in %s after %s", built, again, first)
	}
}

func TestAChangedModuleIsBuiltAgainAndOthersAreNot(t *testing.T) {
	root := repository(t)
	first, _ := buildPause(t, root)

	other := filepath.Join(root, "test/cluster/modules/etcd/go.mod")
	if err := os.WriteFile(other, []byte("module etcd\n\ngo 1.26\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	second, built := buildPause(t, root)
	if built || second == first {
		t.Errorf("after another module changed: built %v, directory changed %v; want false, true", built, second != first)
	}

	own := filepath.Join(root, "test/cluster/modules/pause/main.go")
	if err := os.WriteFile(own, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, built := buildPause(t, root); !built {
		t.Error("a changed module was not built again")
	}
}

func TestABuildThatFailsLeavesNothingAndSaysWhy(t *testing.T) {
	root := repository(t)
	t.Chdir(root)
	main := filepath.Join(root, "test/cluster/modules/pause/main.go")
	if err := os.WriteFile(main, []byte("package main\n\nfunc main() { undefined() }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var s said
	_, err := Ensure(context.Background(), s.log, "pause")
	if err == nil || !strings.Contains(err.Error(), "undefined") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
	store, err := storeDir()
	if err != nil {
		t.Fatal(err)
	}
	if found, _ := filepath.Glob(filepath.Join(store, "*", "pause")); len(found) > 0 {
		t.Errorf("left %v", found)
	}
}

func TestAnUnknownNameIsRefusedBeforeAnythingIsBuilt(t *testing.T) {
	_, err := Ensure(context.Background(), t.Logf, "etcd", "kube-api")
	if err == nil || !strings.Contains(err.Error(), `"kube-api"`) || !strings.Contains(err.Error(), "kube-apiserver") {
		t.Errorf("got %v", err)
	}
}

func TestOutsideTheRepositoryOneIsToldWhereToGo(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := Ensure(context.Background(), t.Logf, "pause"); err == nil || !strings.Contains(err.Error(), "root directory") {
		t.Errorf("got %v", err)
	}
}

func TestASecondBuildWaitsForTheFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(context.Background(), path, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	var s said
	if _, err := lock(ctx, path, s.log); err == nil || len(s.lines) != 1 {
		t.Errorf("err %v, said %v", err, s.lines)
	}
	unlock()
	second, err := lock(context.Background(), path, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	second()
}

func TestEverySetNamesKnownPrograms(t *testing.T) {
	for _, set := range [][]string{Cluster, Envtest} {
		if err := Check(set); err != nil {
			t.Error(err)
		}
	}
}
