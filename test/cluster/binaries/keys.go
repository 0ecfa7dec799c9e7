package binaries

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

const projectModule = "github.com/c5c3/openstack-upgrade"

// keysOf tells for each module what it would be built from: its files, how its programs are built, and for what.
func keysOf(root string) (map[string]string, error) {
	keys := map[string]string{}
	for _, name := range Known() {
		p := programs[name]
		if _, done := keys[p.module]; done {
			continue
		}
		key, err := moduleKey(root, p.module)
		if err != nil {
			return nil, err
		}
		keys[p.module] = key
	}
	return keys, nil
}

func moduleKey(root, module string) (string, error) {
	hash := sha256.New()
	files, err := filepath.Glob(filepath.Join(root, module, "*"))
	if err != nil {
		return "", fmt.Errorf("find the files of module %s: %w", module, err)
	}
	if len(files) == 0 {
		return "", fmt.Errorf("module %s has no files in %s", module, root)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read module %s: %w", module, err)
		}
		fmt.Fprintf(hash, "%s %d\n%s", filepath.Base(file), len(content), content)
	}
	for _, name := range Known() {
		if p := programs[name]; p.module == module {
			fmt.Fprintf(hash, "%s %s %s\n", name, p.gather, strings.Join(p.arguments(""), " "))
		}
	}
	fmt.Fprintf(hash, "linux/%s", runtime.GOARCH)
	return hex.EncodeToString(hash.Sum(nil))[:12], nil
}

func setKey(keys map[string]string) string {
	hash := sha256.New()
	for _, module := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintln(hash, module, keys[module])
	}
	return hex.EncodeToString(hash.Sum(nil))[:12]
}

// Root finds the repository above the working directory: a command runs at the root, a test in its package.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(content), "module "+projectModule+"\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("not inside the repository; run this from its root directory")
		}
		dir = parent
	}
}

// storeDir is where binaries are kept from one clone to the next.
func storeDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory (set XDG_CACHE_HOME or HOME): %w", err)
	}
	return filepath.Join(cache, "openstack-upgrade", "bin"), nil
}
