package lint

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// FuzzManifest lints anything. Whatever it is, there is no panic, each object has one of two verdicts, a refusal says
// why, and the report is one that programs can read.
func FuzzManifest(f *testing.F) {
	for _, text := range []string{good, "", "{}", "---\n---\n", "a: &a [*a]", "a: 1\na: 2", good + "---\n" + good, "- 1\n- 2",
		strings.Replace(good, "Glance", "GlanceList", 1), strings.Replace(good, `"2026.1"`, "2026.1", 1), strings.Replace(good, "name: images", "name: ", 1),
		`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"openstack.c5c3.io/v1alpha1","kind":"Keystone"},null,7]}`,
		good + "  extraConfig: {a: {b: null}}\n  unknown: {deep: [1, {}]}\n"} {
		f.Add([]byte(text))
	}
	var linters []*Linter
	for _, options := range []Options{{Namespace: "openstack"}, {Namespace: "openstack", Installed: "2026.1"}} {
		l, err := New(options)
		if err != nil {
			f.Fatal(err)
		}
		linters = append(linters, l)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, l := range linters {
			report := l.Files([]string{Stdin}, bytes.NewReader(text))
			for _, object := range report.Objects {
				if object.Verdict != Admitted && object.Verdict != Refused || (object.Verdict == Refused) != (len(object.Findings) > 0) {
					t.Fatalf("%+v", object)
				}
				for _, finding := range object.Findings {
					if finding.Message == "" || finding.Reason == "" {
						t.Fatalf("a refusal without words: %+v", object)
					}
				}
			}
			for _, u := range report.Unreadable {
				if u.Message == "" || strings.Contains(u.Message, "\n") {
					t.Fatalf("%q is no line", u.Message)
				}
			}
			var out bytes.Buffer
			if err := report.JSON(&out); err != nil || !json.Valid(out.Bytes()) {
				t.Fatalf("the report cannot be read: %v", err)
			}
		}
	})
}
