package image

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// inputsKey is the hash of all that a build reads. It may take in a file that the build leaves out, never the reverse.
func inputsKey(dockerfile, contextDir, ref, goVersion string, args map[string]string) (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q\n", ref, goVersion)
	for _, name := range slices.Sorted(maps.Keys(args)) {
		fmt.Fprintf(sum, "%q=%q\n", name, args[name])
	}
	if err := hashFile(sum, dockerfile); err != nil {
		return "", err
	}
	left, err := leftOut(contextDir)
	if err != nil {
		return "", err
	}
	err = filepath.WalkDir(contextDir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(contextDir, path)
		if err != nil {
			return err
		}
		if left[name] {
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%q %v\n", name, info.Mode())
		switch {
		case info.Mode().IsRegular():
			return hashFile(sum, path)
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			fmt.Fprintf(sum, "%q\n", to)
			return err
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("read the build context: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

func hashFile(to io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	size, err := io.Copy(to, file)
	fmt.Fprintf(to, "\n%d\n", size)
	return err
}

// leftOut reads the plain paths of .dockerignore. Patterns, and files that take something back in, are not told apart
// here: then more is hashed, which costs a build too many and never one too few.
func leftOut(contextDir string) (map[string]bool, error) {
	left := map[string]bool{}
	file, err := os.Open(filepath.Join(contextDir, ".dockerignore"))
	if os.IsNotExist(err) {
		return left, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "!"):
			return map[string]bool{}, nil
		case !strings.ContainsAny(line, `*?[\`):
			left[strings.TrimPrefix(filepath.Clean("/"+line), "/")] = true
		}
	}
	return left, lines.Err()
}
