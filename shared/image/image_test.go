package image

import (
	"regexp"
	"strings"
	"testing"

	"github.com/c5c3/openstack-upgrade/shared/release"
)

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestOnlyACadenceTagNamesARelease(t *testing.T) {
	for tag, want := range map[string]string{
		"2026.1": "2026.1", "2026.1-p1": "2026.1", "2025.1-ubuntu_jammy": "2025.1", "2026.2-trixie": "2026.2",
		"0000.1": "0000.1", "9999.2-x-y": "9999.2",
		"v2026.1": "", "2026.1.0": "", "2026.10": "", "2026.1_foo": "", "02026.1": "", "latest": "", "": "", "2025.9": "",
		"2026.1 ": "", "２０２６.１": "", "2026.1\n": "", "2026.1-": "", "-2026.1": "", "bookworm": "", "2026.1-p 1": "",
		"2026.1-" + strings.Repeat("x", 10_000): "",
	} {
		got, ok := ReleaseOfTag(tag)
		if ok != (want != "") || (ok && got.String() != want) {
			t.Errorf("ReleaseOfTag(%.40q) = %v, %v; want %q", tag, got, ok, want)
		}
	}
}

func TestParseTellsPortTagAndDigestApart(t *testing.T) {
	for text, want := range map[string]Reference{
		"glance":                  {Repository: "glance"},
		"glance:2026.1":           {Repository: "glance", Tag: "2026.1"},
		"host:5000/glance":        {Repository: "host:5000/glance"},
		"host:5000/glance:2026.2": {Repository: "host:5000/glance", Tag: "2026.2"},
		"registry.example.org/x/glance@" + digest:        {Repository: "registry.example.org/x/glance", Digest: digest},
		"registry.example.org/x/glance:2026.2@" + digest: {Repository: "registry.example.org/x/glance", Tag: "2026.2", Digest: digest},
		"localhost/glance":                               {Repository: "localhost/glance"},
		"[::1]:5000/glance:2026.1":                       {Repository: "[::1]:5000/glance", Tag: "2026.1"},
		"host:5000/deep/er/glance:x@" + digest:           {Repository: "host:5000/deep/er/glance", Tag: "x", Digest: digest},
		"host:5000":                                      {Repository: "host", Tag: "5000"},
		"host:2026.1/glance":                             {Repository: "host:2026.1/glance"},
		"host:5000/glance:2026.1-p1":                     {Repository: "host:5000/glance", Tag: "2026.1-p1"},
		"2026.1/glance":                                  {Repository: "2026.1/glance"},
		"2026.1:2026.2":                                  {Repository: "2026.1", Tag: "2026.2"},
		"glance-2026.1:latest":                           {Repository: "glance-2026.1", Tag: "latest"},
		"10.0.0.1:5000/glance:v2026.1":                   {Repository: "10.0.0.1:5000/glance", Tag: "v2026.1"},
		"[fd00::1]/glance@" + digest:                     {Repository: "[fd00::1]/glance", Digest: digest},
		"glance:_":                                       {Repository: "glance", Tag: "_"},
		"glance:" + strings.Repeat("x", MaxTag):          {Repository: "glance", Tag: strings.Repeat("x", MaxTag)},
	} {
		got, err := Parse(text)
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", text, got, err, want)
		}
		if got.String() != text {
			t.Errorf("%q comes back as %q", text, got)
		}
	}
	for _, text := range []string{"", ":2026.1", "@" + digest, "glance@nothing", "glance:", "glance:a b", "gl ance:1", "glance:.x", "glance:" + strings.Repeat("x", MaxTag+1),
		"glance:-x", "glance:２０２６.１", "glance:2026.1\n", "glance:2026.1\x00", "glance:a:b@" + digest[:6], "gl\nance:1", "glance@", "@", ":", "glance:2026.1@", "glance:2026.1@" + digest + "@", "glance@" + digest + "\n", "glance@sha256:", "glance@:abc", "glance@SHA256:abc", "gl\x00ance:1", "\t:1",
		strings.Repeat("x", 5000) + ":" + strings.Repeat("y", 5000)} {
		if got, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) = %+v; want an error", text, got)
		}
	}
}

func TestADigestDecidesWhatIsTheSameImage(t *testing.T) {
	tagged := Reference{Repository: "r", Tag: "2026.1"}
	pinned := Reference{Repository: "r", Tag: "2026.1", Digest: digest}
	renamed := Reference{Repository: "mirror/r", Tag: "2026.2", Digest: digest}
	if !pinned.Same(renamed) {
		t.Error("two references with one digest run the same image")
	}
	if tagged.Same(pinned) {
		t.Error("a tag alone may run something else than the digest")
	}
	if !tagged.Same(tagged) {
		t.Error("a reference is the same as itself")
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"host:5000/glance:2026.2", "a@b:c", "[::1]:5000/x:y", "", "@", ":", "//::", "r:2026.1-p1@" + digest, "r@sha256:", "a:b:c", "h:5000/a\n:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ref, err := Parse(text)
		if err != nil {
			if ref != (Reference{}) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 1500 {
				t.Fatalf("%q is refused with %+v and %q", text, ref, err)
			}
			return
		}
		if ref.String() != text {
			t.Fatalf("%q comes back as %q", text, ref)
		}
		if again, err := Parse(ref.String()); err != nil || again != ref || !again.Same(ref) {
			t.Fatalf("%q → %+v → %+v, %v", text, ref, again, err)
		}
	})
}

// FuzzReleaseOfTag has another reader of tags: one that knows the shape alone.
func FuzzReleaseOfTag(f *testing.F) {
	shape := regexp.MustCompile(`^(\d{4}\.[12])(-[A-Za-z0-9_.-]+)?$`)
	for _, seed := range []string{"2026.1", "2026.1-p1", "2026.1-", "v2026.1", "2026.1.0", "２０２６.１", "2026.1\n", "-2026.1", "2026.1_p", "2026.1-" + strings.Repeat("x", 121)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, tag string) {
		got, ok := ReleaseOfTag(tag)
		want := shape.FindStringSubmatch(tag)
		if ok != (want != nil && len(tag) <= MaxTag) {
			t.Fatalf("%q names a release: %t, its shape says %q", tag, ok, want)
		}
		if !ok && got != (release.Release{}) {
			t.Fatalf("%q names none and yet %v", tag, got)
		}
		if ok && got.String() != want[1] {
			t.Fatalf("%q names %v, its shape says %s", tag, got, want[1])
		}
	})
}

func TestATagThatLooksLikeAReleaseAndIsNoneIsMisnamed(t *testing.T) {
	for _, tag := range []string{"2026.3", "2026.3-p1", "2026.01", "v2026.1", "V2026.1", "2026.1.0", "2026.1_p1", "2026.1rc1", "2026.", "2026.1-"} {
		if !Misnamed(tag) {
			t.Errorf("%q passes", tag)
		}
	}
	for _, tag := range []string{"2026.1", "2026.1-p1", "latest", "", "26.1", "20261", "bookworm", "20260.1", "v1.2", "sha-2026.1", "build.2026"} {
		if Misnamed(tag) {
			t.Errorf("%q is refused", tag)
		}
	}
}
