package release

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

func TestParseReadsExactlyTheCadence(t *testing.T) {
	pattern := regexp.MustCompile(Pattern)
	good := []string{"2026.1", "2026.2", "0000.1", "9999.2", "2010.1"}
	bad := []string{"", "2026", "2026.", "2026.0", "2026.3", "2025.9", "26.1", " 2026.1", "2026.1 ", "2026.1\n", "2026.01", "02026.1",
		"2026.10", "２０２６.１", "v2026.1", "2026.1.0", "2026-1", "2026,1", "2026.1-p1", "latest", "+026.1", "-026.1", "2026.\x00", "20\x0026.1"}
	for _, text := range good {
		got, err := Parse(text)
		if err != nil || got.String() != text {
			t.Errorf("Parse(%q) = %v, %v; want it back", text, got, err)
		}
		if !pattern.MatchString(text) {
			t.Errorf("the pattern refuses %q, Parse accepts it", text)
		}
	}
	for _, text := range bad {
		if got, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) = %v; want an error", text, got)
		}
		if pattern.MatchString(text) {
			t.Errorf("the pattern accepts %q, Parse refuses it", text)
		}
	}
}

func TestParseErrorsStayShort(t *testing.T) {
	_, err := Parse(string(make([]byte, 10_000)))
	if err == nil || len(err.Error()) > 400 {
		t.Fatalf("want a short error, got %d bytes", len(err.Error()))
	}
}

func TestNextIsAlwaysAtDistanceOne(t *testing.T) {
	for year := 2020; year < 2040; year++ {
		for half := 1; half <= 2; half++ {
			r, err := Parse(fmt.Sprintf("%d.%d", year, half))
			if err != nil {
				t.Fatal(err)
			}
			if d := Distance(r, r.Next()); d != 1 {
				t.Errorf("Distance(%v, %v) = %d", r, r.Next(), d)
			}
			if d := Distance(r.Next(), r); d != -1 {
				t.Errorf("Distance(%v, %v) = %d", r.Next(), r, d)
			}
			if d := Distance(r, r.Next().Next()); d != 2 {
				t.Errorf("a skip from %v measures %d", r, d)
			}
			if Distance(r, r) != 0 {
				t.Errorf("%v is not at distance 0 of itself", r)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	pattern := regexp.MustCompile(Pattern)
	for _, seed := range []string{"2026.1", "2026.3", "", "２０２６.１", "2026.1\n", "9999.2", "0000.1", "2026.1\x00", "+026.1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(text)
		if (err == nil) != pattern.MatchString(text) {
			t.Fatalf("Parse and the pattern disagree on %q", text)
		}
		if err != nil {
			if r != (Release{}) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 400 {
				t.Fatalf("%q is refused with %v and %q", text, r, err)
			}
			return
		}
		if r.String() != text {
			t.Fatalf("%q comes back as %q", text, r)
		}
		if Distance(r, r) != 0 || Distance(r, r.Next()) != 1 || Distance(r.Next(), r) != -1 {
			t.Fatalf("%q is not one step before %s", text, r.Next())
		}
	})
}
