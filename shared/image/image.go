// Package image knows container image references: what a tag, a digest and a
// registry port are, and which OpenStack release a tag names, if any.
//
// Only a tag YYYY.N or YYYY.N-suffix names a release. Everything else
// (latest, v2026.1, 2026.1.0, a digest alone) is not comparable: legal, and
// trusted, but never equal to any release.
package image

import (
	"fmt"
	"strings"

	"github.com/c5c3/openstack-upgrade/shared/release"
)

// MaxTag is the longest tag a registry accepts, in bytes.
const MaxTag = 128

// Reference is an image as a spec names it. A digest, when there is one,
// decides what runs; the tag beside it is a label for people.
type Reference struct {
	Repository string
	Tag        string
	Digest     string
}

// Parse reads repository[:tag][@digest]. A colon belongs to a tag only behind
// the last slash, so a registry port is never taken for one.
func Parse(text string) (Reference, error) {
	rest, digest, hasDigest := strings.Cut(text, "@")
	if hasDigest && !legalDigest(digest) {
		return Reference{}, fmt.Errorf("image %q: %q is not a digest: it must look like sha256:…", short(text), short(digest))
	}
	ref := Reference{Repository: rest, Digest: digest}
	if colon := strings.LastIndexByte(rest, ':'); colon > strings.LastIndexByte(rest, '/') {
		ref.Repository, ref.Tag = rest[:colon], rest[colon+1:]
		if !legalTag(ref.Tag) {
			return Reference{}, fmt.Errorf("image %q: %q is not a tag", short(text), short(ref.Tag))
		}
	}
	if ref.Repository == "" || strings.ContainsFunc(ref.Repository, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return Reference{}, fmt.Errorf("image %q has no repository", short(text))
	}
	return ref, nil
}

// String writes the reference the way a pod spec takes it.
func (r Reference) String() string {
	text := r.Repository
	if r.Tag != "" {
		text += ":" + r.Tag
	}
	if r.Digest != "" {
		text += "@" + r.Digest
	}
	return text
}

// Release is the release that the tag names; false when it names none.
func (r Reference) Release() (release.Release, bool) {
	return ReleaseOfTag(r.Tag)
}

// Same tells whether both references run the same image: the same digest
// where both have one, otherwise the same text.
func (r Reference) Same(other Reference) bool {
	if r.Digest != "" && other.Digest != "" {
		return r.Digest == other.Digest
	}
	return r == other
}

// ReleaseOfTag is the release that a tag names: YYYY.N, or YYYY.N-suffix with
// a suffix that is not empty.
func ReleaseOfTag(tag string) (release.Release, bool) {
	if !legalTag(tag) {
		return release.Release{}, false
	}
	name, suffix, hasSuffix := strings.Cut(tag, "-")
	if hasSuffix && suffix == "" {
		return release.Release{}, false
	}
	r, err := release.Parse(name)
	return r, err == nil
}

// Misnamed tells whether a tag looks like the name of a release and is none,
// as 2026.3, v2026.1 and 2026.1.0 do.
func Misnamed(tag string) bool {
	if _, names := ReleaseOfTag(tag); names {
		return false
	}
	year, _, dotted := strings.Cut(strings.TrimLeft(tag, "vV"), ".")
	return dotted && len(year) == 4 && strings.Trim(year, "0123456789") == ""
}

// legalTag follows the grammar of registries: a letter, digit or underscore,
// then up to 127 of these, dots and dashes.
func legalTag(tag string) bool {
	if tag == "" || len(tag) > MaxTag || tag[0] == '.' || tag[0] == '-' {
		return false
	}
	for i := range len(tag) {
		c := tag[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '.', c == '-':
		default:
			return false
		}
	}
	return true
}

// legalDigest follows the grammar of registries: an algorithm, a colon, and
// what it made.
func legalDigest(digest string) bool {
	algorithm, encoded, ok := strings.Cut(digest, ":")
	made := func(text, besides string) bool {
		return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
			return (r < '0' || r > '9') && (r < 'a' || r > 'z') && !strings.ContainsRune(besides, r)
		})
	}
	return ok && made(algorithm, "+._-") && made(encoded, "ABCDEFGHIJKLMNOPQRSTUVWXYZ=_-")
}

func short(text string) string {
	const enough = 80
	if len(text) > enough {
		return text[:enough] + "…"
	}
	return text
}
