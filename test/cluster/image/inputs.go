package image

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// inputsKey is the hash of all that a build reads.
func inputsKey(dockerfile, contextDir, ref, goVersion string, args map[string]string) (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q\n", ref, goVersion)
	for _, name := range slices.Sorted(maps.Keys(args)) {
		fmt.Fprintf(sum, "%q=%q\n", name, args[name])
	}
	if err := hashFile(sum, dockerfile); err != nil {
		return "", err
	}
	ignored, err := readIgnored(contextDir)
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
		switch {
		case name == ".":
			return nil
		case ignored.leavesOut(name) && entry.IsDir() && !ignored.mayTakeIn(name):
			return filepath.SkipDir
		case ignored.leavesOut(name), entry.IsDir():
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
