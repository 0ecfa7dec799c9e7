package archive

import (
	"archive/tar"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// File is one entry of a layer. Its content is Content, or the file Source on disk; Link makes it a symbolic link;
// a Mode with fs.ModeDir makes it a directory. Directories above it need not be listed.
type File struct {
	Path     string
	Mode     fs.FileMode
	Content  []byte
	Source   string
	Link     string
	UID, GID int
}

// epoch is the time of everything written: a build today equals a build tomorrow.
var epoch = time.Unix(0, 0).UTC()

// withParents sorts files by path and adds every directory above them that is not listed.
func withParents(files []File) []File {
	all := map[string]File{}
	for _, f := range files {
		f.Path = clean(f.Path)
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			if _, listed := all[dir]; !listed {
				all[dir] = File{Path: dir, Mode: fs.ModeDir | 0o755}
			}
		}
		all[f.Path] = f
	}
	sorted := make([]File, 0, len(all))
	for _, f := range all {
		sorted = append(sorted, f)
	}
	slices.SortFunc(sorted, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return sorted
}

func clean(p string) string { return strings.TrimPrefix(path.Clean("/"+p), "/") }

func writeFile(out *tar.Writer, f File) error {
	if f.Mode.IsDir() {
		h := header(f.Path+"/", f.Mode, 0)
		h.Typeflag, h.Uid, h.Gid = tar.TypeDir, f.UID, f.GID
		return out.WriteHeader(h)
	}
	if f.Link != "" {
		h := header(f.Path, 0o777, 0)
		h.Typeflag, h.Linkname = tar.TypeSymlink, f.Link
		return out.WriteHeader(h)
	}

	content, size, mode := io.Reader(bytes.NewReader(f.Content)), int64(len(f.Content)), fs.FileMode(0o644)
	if f.Source != "" {
		src, err := os.Open(f.Source)
		if err != nil {
			return fmt.Errorf("add %s: %w", f.Path, err)
		}
		defer src.Close()
		info, err := src.Stat()
		if err != nil {
			return fmt.Errorf("add %s: %w", f.Path, err)
		}
		content, size, mode = src, info.Size(), info.Mode()
	}
	if f.Mode != 0 {
		mode = f.Mode
	}
	h := header(f.Path, mode, size)
	h.Uid, h.Gid = f.UID, f.GID
	if err := out.WriteHeader(h); err != nil {
		return fmt.Errorf("add %s: %w", f.Path, err)
	}
	if _, err := io.Copy(out, content); err != nil {
		return fmt.Errorf("add %s: %w", f.Path, err)
	}
	return nil
}

func header(name string, mode fs.FileMode, size int64) *tar.Header {
	bits := int64(mode.Perm())
	for bit, value := range map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if mode&bit != 0 {
			bits |= value
		}
	}
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: bits, Size: size, ModTime: epoch, Format: tar.FormatPAX}
}
