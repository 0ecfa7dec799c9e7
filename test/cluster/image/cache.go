package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// cacheDir is where images are kept, made if it is missing.
func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory (set HOME or XDG_CACHE_HOME): %w", err)
	}
	dir := filepath.Join(base, "openstack-upgrade", "images")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the image cache: %w", err)
	}
	return dir, nil
}

// once makes path by make unless it is there, one process at a time; make must leave path whole or not at all.
func once(ctx context.Context, log Log, path string, make func() error) error {
	if present(path) {
		return nil
	}
	unlock, err := lock(ctx, log, path+".lock", filepath.Base(path))
	if err != nil {
		return err
	}
	defer unlock()
	if present(path) {
		return nil
	}
	return make()
}

func present(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// lock waits until no other process holds the lock at path and works on what it guards.
func lock(ctx context.Context, log Log, path, what string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	start, said := time.Now(), time.Time{}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
		}
		if time.Since(said) >= every {
			log("waiting for another process that works on %s: %s", what, since(start))
			said = time.Now()
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, context.Cause(ctx)), file.Close())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// keepFor is how long a superseded build of a reference stays: another process may be importing it.
const keepFor = time.Hour

// dropOlder removes what was built for the same reference from other inputs.
func dropOlder(dir, stem, current string) {
	all, _ := filepath.Glob(filepath.Join(dir, stem+"-*.tar*")) // the stem holds no pattern
	for _, path := range all {
		info, err := os.Stat(path)
		if err != nil || strings.HasPrefix(path, current) || time.Since(info.ModTime()) < keepFor {
			continue
		}
		_ = os.Remove(path) // a leftover costs space and nothing else
	}
}

// stem turns a reference into the beginning of a file name.
func stem(ref string) string {
	return regexp.MustCompile(`[^A-Za-z0-9.]+`).ReplaceAllString(ref, "_")
}
