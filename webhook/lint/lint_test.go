package lint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/c5c3/openstack-upgrade/shared/image"
	"github.com/c5c3/openstack-upgrade/webhook/admission"
)

const good = `apiVersion: openstack.c5c3.io/v1alpha1
kind: Glance
metadata: {name: images, namespace: openstack}
spec:
  openStackRelease: "2026.1"
  image: {repository: registry.example.org/glance, tag: "2026.1"}
  database: {secretRef: {name: images-database}}
`

func edited(changes ...string) string { return strings.NewReplacer(changes...).Replace(good) }

// byTag is a manifest of the kind whose tag names the release.
func byTag(tag string) string {
	return strings.NewReplacer("kind: Glance", "kind: Keystone", `  openStackRelease: "2026.1"`+"\n", "  fernetKeysSecretRef: {name: keys}\n", `tag: "2026.1"`, `tag: "`+tag+`"`).Replace(good)
}

func piped(t *testing.T, o Options, text string) *Report {
	t.Helper()
	if o.Namespace == "" {
		o.Namespace = "default"
	}
	l, err := New(o)
	require.NoError(t, err)
	return l.Files([]string{Stdin}, strings.NewReader(text))
}

// only is the one object of a report, in which all could be read.
func only(t *testing.T, r *Report) Object {
	t.Helper()
	require.Empty(t, r.Unreadable)
	require.Len(t, r.Objects, 1)
	return r.Objects[0]
}

func TestALawfulManifestIsAdmittedAndALawlessOneIsToldTheCommand(t *testing.T) {
	assert.Equal(t, Admitted, only(t, piped(t, Options{}, good)).Verdict)

	refused := only(t, piped(t, Options{}, edited(`tag: "2026.1"`, `tag: "2026.2"`)))
	assert.Equal(t, Refused, refused.Verdict)
	require.Len(t, refused.Findings, 1)
	assert.Equal(t, "spec.image.tag", refused.Findings[0].Field)
	assert.Equal(t, admission.Reason("ImageReleaseMismatch"), refused.Findings[0].Reason)
	require.NotEmpty(t, refused.Findings[0].Commands)
	assert.Contains(t, strings.Join(refused.Findings[0].Commands, "\n"), `"openStackRelease":"2026.2"`)

	warned := only(t, piped(t, Options{}, edited(`tag: "2026.1"`, `tag: latest`)))
	assert.Equal(t, Admitted, warned.Verdict)
	assert.Len(t, warned.Warnings, 1)
}

func TestAnInstalledReleaseMakesTheManifestAnEdit(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	for what, c := range map[string]struct {
		options  Options
		manifest string
		refused  string
		warnings int
	}{
		"the same":           {Options{Installed: "2026.1"}, good, "", 0},
		"the next":           {Options{Installed: "2025.2"}, good, "", 0},
		"a skip":             {Options{Installed: "2025.1"}, good, "UpgradePathInvalid", 0},
		"backwards":          {Options{Installed: "2026.2"}, good, "DowngradeNotSupported", 0},
		"the tag alone":      {Options{Installed: "2026.1"}, edited(`tag: "2026.1"`, `tag: "2026.2"`), "ImageReleaseMismatch", 0},
		"a longer name":      {Options{Installed: "2026.1"}, edited(`name: images,`, `name: `+strings.Repeat("a", 60)+`,`), "", 0},
		"a name with a dot":  {Options{Installed: "2025.2"}, edited(`name: images,`, `name: a.b,`), "", 0},
		"an image unchanged": {Options{Installed: "2025.2", InstalledImage: image.Reference{Repository: "registry.example.org/glance", Digest: digest}}, edited(`tag: "2026.1"`, `digest: "`+digest+`"`), "ImageReleaseMismatch", 0},
		"another digest":     {Options{Installed: "2025.2", InstalledImage: image.Reference{Repository: "registry.example.org/glance", Digest: strings.ReplaceAll(digest, "a", "b")}}, edited(`tag: "2026.1"`, `digest: "`+digest+`"`), "", 1},
		"no release":         {Options{Installed: "2026.1"}, edited(`openStackRelease: "2026.1"`, `openStackRelease: "2026.3"`), "VersionParseError", 0},
		"a tag in its place": {Options{Installed: "2025.2-jammy"}, good, "", 0},
		"by tag, the next":   {Options{Installed: "2025.2-jammy"}, byTag("2026.1-noble"), "", 0},
		"by tag, a skip":     {Options{Installed: "2025.1"}, byTag("2026.1"), "UpgradePathInvalid", 0},
		"by tag, opaque":     {Options{Installed: "2026.1"}, byTag("latest"), "", 1},
		"by tag, a typo":     {Options{Installed: "2026.1"}, byTag("2026.3"), "VersionParseError", 0},
		"by tag, a v":        {Options{Installed: "2026.1"}, byTag("v2026.2"), "VersionParseError", 0},
		"workers":            {Options{Installed: "2025.2"}, good + "  apiServer: {workers: 3}\n", "", 1},
	} {
		t.Run(what, func(t *testing.T) {
			got := only(t, piped(t, c.options, c.manifest))
			var reasons []string
			for _, finding := range got.Findings {
				reasons = append(reasons, string(finding.Reason))
			}
			assert.Equal(t, c.refused, strings.Join(reasons, " "))
			assert.Len(t, got.Warnings, c.warnings)
		})
	}
}

// The words are the webhook's, because they are its answer.
func TestTheWordsAreTheWebhooks(t *testing.T) {
	for _, manifest := range []string{
		edited(`tag: "2026.1"`, `tag: "2026.2"`), edited(`tag: "2026.1"`, `tag: latest`),
		edited(`name: images,`, `name: `+strings.Repeat("a", 60)+`,`, `tag: "2026.1"`, `tag: "2026.2"`),
	} {
		object, err := yaml.YAMLToJSON([]byte(manifest))
		require.NoError(t, err)
		body := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":"openstack",
			"kind":{"group":"openstack.c5c3.io","version":"v1alpha1","kind":"Glance"},"resource":{"group":"openstack.c5c3.io","version":"v1alpha1","resource":"glances"},"object":%s}}`, object)
		answer, _, err := admission.New(admission.Policy{}, admission.Kinds...).Review([]byte(body))
		require.NoError(t, err)
		got := only(t, piped(t, Options{}, manifest))
		assert.Equal(t, answer.Response.Warnings, got.Warnings)
		var causes []metav1.StatusCause
		if answer.Response.Result != nil {
			causes = answer.Response.Result.Details.Causes
		}
		require.Len(t, got.Findings, len(causes))
		for i, cause := range causes {
			assert.Equal(t, cause.Message, got.Findings[i].Message)
			assert.Equal(t, cause.Field, got.Findings[i].Field)
		}
	}
}

func TestTheFloorIsJudgedToo(t *testing.T) {
	for what, c := range map[string]struct{ manifest, field, says string }{
		"a field nobody knows":       {edited("database:", "databases: {}\n  database:"), "spec.databases", "UnknownField: there is no field spec.databases"},
		"a field deep inside":        {good + "  apiServer: {uwsgi: {proceses: 2}}\n", "spec.apiServer.uwsgi.proceses", "UnknownField"},
		"a field of metadata":        {edited("name: images,", "name: images, lables: {},"), "metadata.lables", "UnknownField"},
		"a label that is a number":   {edited("name: images,", "name: images, labels: {a: 1},"), "metadata", "InvalidField: metadata cannot be read: "},
		"no name":                    {edited("name: images, ", ""), "metadata.name", "metadata.name is required"},
		"a release without quotes":   {edited(`openStackRelease: "2026.1"`, `openStackRelease: 2026.1`), "spec.openStackRelease", "put it in quotes"},
		"no database":                {edited("  database: {secretRef: {name: images-database}}\n", ""), "spec.database", "spec.database in body is required"},
		"half a digest":              {edited(`tag: "2026.1"`, `digest: "sha256:abc"`), "spec.image.digest", "should match"},
		"a name that no Service has": {edited("name: images,", "name: img.a,"), "metadata.name", "must begin with a letter"},
		"a rollout that cannot move": {good + "  deployment: {strategy: {maxSurge: 0%, maxUnavailable: 0}}\n", "spec.deployment.strategy", "maxSurge and maxUnavailable cannot both be 0"},
		"a section with a bracket":   {good + "  extraConfig: {\"a]\": {b: c}}\n", "spec.extraConfig", "single words"},
		"neither tag nor digest":     {edited(`, tag: "2026.1"`, ""), "spec.image.tag", "neither a tag nor a digest"},
		"a release that is none":     {edited(`openStackRelease: "2026.1"`, `openStackRelease: "2026.3"`), "spec.openStackRelease", "VersionParseError"},
		"another version":            {edited("v1alpha1", "v1beta1"), "apiVersion", `UnknownVersion: Glance has no version "v1beta1": write openstack.c5c3.io/v1alpha1`},
		"an image that is a text":    {edited(`{repository: registry.example.org/glance, tag: "2026.1"}`, "glance:2026.1"), "spec.image", "must be of type object"},
	} {
		t.Run(what, func(t *testing.T) {
			got := only(t, piped(t, Options{}, c.manifest))
			assert.Equal(t, Refused, got.Verdict)
			var fields, messages []string
			for _, finding := range got.Findings {
				fields, messages = append(fields, finding.Field), append(messages, finding.Message)
			}
			assert.Equal(t, []string{c.field}, fields, "said once: %v", messages)
			assert.Contains(t, strings.Join(messages, "\n"), c.says)
		})
	}
}

func TestEveryDocumentAndEveryItemOfAListIsJudged(t *testing.T) {
	item := func(text string) string { return strings.ReplaceAll("- "+strings.TrimSpace(text), "\n", "\n  ") + "\n" }
	bad := edited(`tag: "2026.1"`, `tag: "2026.2"`)
	r := piped(t, Options{}, "# licence\n---\n"+good+"---\n\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n--- # note\n"+bad+
		"---\napiVersion: v1\nkind: List\nitems:\n"+item(good)+item("apiVersion: v1\nkind: ConfigMap")+item(bad)+
		"---\n- just\n- a list\n---\njust a text\n---\nreplicas: 3\n")
	require.Empty(t, r.Unreadable)
	var places []string
	for _, object := range r.Objects {
		places = append(places, object.Place.String()+" "+string(object.Verdict))
	}
	assert.Equal(t, []string{"-:1 admitted", "-:3 refused", "-:4[1] admitted", "-:4[3] refused"}, places)
	assert.Equal(t, 5, r.Ignored)

	asJSON, err := yaml.YAMLToJSON([]byte(good))
	require.NoError(t, err)
	r = piped(t, Options{}, string(asJSON)+"\n"+string(asJSON))
	require.Empty(t, r.Unreadable)
	assert.Len(t, r.Objects, 2)
}

func TestWhatCannotBeReadIsSaidInOneLineAndTheRestIsJudged(t *testing.T) {
	for what, c := range map[string]struct{ text, says string }{
		"no YAML":               {"{{ if .Values.on }}\n---\n" + good, "yaml: "},
		"a field twice":         {edited("database:", "openStackRelease: \"2026.2\"\n  database:") + "---\n" + good, `key "openStackRelease" already set in map`},
		"a document after dots": {"a: 1\n...\nb: 2\n---\n" + good, "yaml: line 2: did not find expected <document start>"},
		"bare carriage returns": {"a: 1\r---\rb: 2\n---\n" + good, "another document begins within this one"},
	} {
		t.Run(what, func(t *testing.T) {
			r := piped(t, Options{}, c.text)
			require.Len(t, r.Unreadable, 1)
			assert.Contains(t, r.Unreadable[0].Message, c.says)
			assert.NotContains(t, r.Unreadable[0].Message, "\n")
			assert.Len(t, r.Objects, 1)
		})
	}
	r := piped(t, Options{}, `{"kind":"Glance","kind":"Glance","apiVersion":"openstack.c5c3.io/v1alpha1"}`)
	require.Len(t, r.Unreadable, 1)
	assert.Contains(t, r.Unreadable[0].Message, "duplicate")
	r = piped(t, Options{}, `{"kind":`)
	require.Len(t, r.Unreadable, 1)
	assert.Contains(t, r.Unreadable[0].Message, "read JSON: unexpected EOF")
	r = piped(t, Options{}, `{"kind": Any, "spec": {a: b}}`)
	assert.Empty(t, r.Unreadable, "YAML may begin like JSON")
	assert.Equal(t, 1, r.Ignored)
	r = piped(t, Options{}, "a: b\n--- {c: d}\n")
	require.Len(t, r.Unreadable, 1)
	assert.Contains(t, r.Unreadable[0].Message, "read YAML: invalid Yaml document separator")
	r = piped(t, Options{}, "kind: Any\na: &x {b: 1, c: 2}\nd: {<<: *x, b: 3}\n")
	assert.Empty(t, r.Unreadable, "others may override what they merge")
	assert.Equal(t, 1, r.Ignored)
}

func TestWhatKubectlReadsIsRead(t *testing.T) {
	asJSON, err := yaml.YAMLToJSON([]byte(good))
	require.NoError(t, err)
	assert.Len(t, piped(t, Options{}, string(asJSON)+"\n---\n"+string(asJSON)+"\n").Objects, 2, "JSON between dashes")

	items := "kind: GlanceList\napiVersion: openstack.c5c3.io/v1alpha1\nitems:\n- metadata: {name: images}\n  spec: {openStackRelease: \"2026.1\", image: {repository: a/b, tag: \"2026.2\"}, database: {secretRef: {name: c}}}\n"
	object := only(t, piped(t, Options{}, items))
	assert.Equal(t, Refused, object.Verdict, "an item is of its list's kind")
	assert.Equal(t, "spec.image.tag", object.Findings[0].Field)
	r := piped(t, Options{}, "kind: List\napiVersion: v1\nitems:\n- metadata: {name: images}\n- 5\n- null\n")
	assert.Equal(t, 3, r.Ignored)
	assert.Empty(t, r.Unreadable)
}

func TestAKindInAnotherCaseIsNoKind(t *testing.T) {
	object := only(t, piped(t, Options{}, edited("kind: Glance", "kind: glance")))
	assert.Equal(t, Refused, object.Verdict)
	assert.Equal(t, `UnknownKind: there is no kind "glance": write Glance`, object.Findings[0].Message)
}

func TestAKindThatOurGroupDoesNotHaveIsRefused(t *testing.T) {
	refused := only(t, piped(t, Options{}, edited("kind: Glance", "kind: Glanze")))
	assert.Equal(t, Refused, refused.Verdict)
	require.Len(t, refused.Findings, 1)
	assert.Equal(t, `UnknownKind: there is no kind "Glanze" in openstack.c5c3.io: write Glance or Keystone`, refused.Findings[0].Message)
	assert.Empty(t, piped(t, Options{}, "apiVersion: v1\nkind: Glanze\n").Objects, "other groups are not judged")
}

func TestANameThatIsYetToBeMadeIsJudged(t *testing.T) {
	named := func(from string) string { return edited("name: images,", "generateName: "+from+",") }
	assert.Equal(t, Admitted, only(t, piped(t, Options{}, named("images-"))).Verdict)
	for from, reason := range map[string]admission.Reason{"9-": admission.NameInvalid, "a.b-": admission.NameInvalid, strings.Repeat("a", 47): admission.NameTooLong} {
		object := only(t, piped(t, Options{}, named(from)))
		assert.Equal(t, Refused, object.Verdict, from)
		require.NotEmpty(t, object.Findings, from)
		assert.Equal(t, reason, object.Findings[0].Reason, from)
	}
	assert.Equal(t, Admitted, only(t, piped(t, Options{}, named(strings.Repeat("a", 46)))).Verdict)
}

func TestADirectoryIsSearchedAndHiddenFilesAreNot(t *testing.T) {
	dir := t.TempDir()
	asJSON, err := yaml.YAMLToJSON([]byte(good))
	require.NoError(t, err)
	for name, text := range map[string]string{"a.yaml": good, "deep/er/b.yml": good, "c.json": string(asJSON), "d.txt": "{{", ".git/e.yaml": "{{", ".f.yaml": "{{"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	l, err := New(Options{Namespace: "default"})
	require.NoError(t, err)
	r := l.Files([]string{dir, filepath.Join(dir, "gone"), filepath.Join(dir, ".f.yaml")}, nil)
	var files []string
	for _, object := range r.Objects {
		files = append(files, strings.TrimPrefix(object.File, dir+"/"))
	}
	assert.Equal(t, []string{"a.yaml", "c.json", "deep/er/b.yml"}, files)
	require.Len(t, r.Unreadable, 2)
	assert.Contains(t, r.Unreadable[0].Message, "no such file or directory")
	assert.Equal(t, filepath.Join(dir, ".f.yaml")+":1", r.Unreadable[1].Place.String(), "a file that is named is read")
}

func TestADirectoryIsSearchedToItsEndWhateverLiesInIt(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(elsewhere, "far.yaml"), []byte(good), 0o600))
	for _, name := range []string{"a.yaml", "z.yaml"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(good), 0o600))
	}
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o600))
	for name, to := range map[string]string{"b.yaml": filepath.Join(elsewhere, "far.yaml"), "directory.yaml": elsewhere, "gone.yaml": "nowhere", "round": "."} {
		require.NoError(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	r := files(t, dir)
	assert.Equal(t, []string{"a.yaml", "b.yaml", "z.yaml"}, placesIn(dir, r))
	require.Len(t, r.Unreadable, 1)
	assert.Equal(t, filepath.Join(dir, "gone.yaml"), r.Unreadable[0].File)

	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(elsewhere, link))
	assert.Equal(t, []string{"far.yaml"}, placesIn(link, files(t, link)), "a symlink that is named is followed")
}

func files(t *testing.T, path string) *Report {
	t.Helper()
	l, err := New(Options{Namespace: "default"})
	require.NoError(t, err)
	return l.Files([]string{path}, nil)
}

func placesIn(dir string, r *Report) []string {
	var places []string
	for _, object := range r.Objects {
		places = append(places, strings.TrimPrefix(object.File, dir+"/"))
	}
	return places
}

func TestBothFormsOfTheReportSayTheSame(t *testing.T) {
	r := piped(t, Options{Namespace: "here"}, edited(`tag: "2026.1"`, `tag: "2026.2"`, ", namespace: openstack", "")+"---\n"+edited(`tag: "2026.1"`, `tag: latest`)+"---\n"+good+"---\nkind: Pod\n---\n}\n")
	var text, machine bytes.Buffer
	require.NoError(t, r.Text(&text))
	assert.Contains(t, text.String(), "-:1: Glance here/images: refused\n  spec.image.tag: ImageReleaseMismatch: ")
	assert.Contains(t, text.String(), "\n-:2: Glance openstack/images: admitted with a warning\n  Warning: "+r.Objects[1].Warnings[0]+"\n")
	assert.NotContains(t, text.String(), "-:3")
	assert.True(t, strings.HasSuffix(text.String(), "3 judged, 1 refused, 1 with a warning; 1 of other kinds; 1 unreadable\n"), text.String())

	require.NoError(t, r.JSON(&machine))
	var again Report
	require.NoError(t, json.Unmarshal(machine.Bytes(), &again))
	assert.Equal(t, *r, again)
	for _, command := range again.Objects[0].Findings[0].Commands {
		assert.Contains(t, text.String(), command)
		assert.Contains(t, command, "-n here")
	}
}
