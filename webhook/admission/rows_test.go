package admission_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/webhook/admission"
)

var refresh = flag.Bool("update", false, "write the transcripts anew")

// row is one line of the decision table: a stored object (nil: a new one is
// created), what it is edited to, and the answer.
type row struct {
	number int
	what   string
	stored *v1alpha1.Glance
	wish   *v1alpha1.Glance
	// refused are the reason words in order, with their fields; none means
	// admitted, with as many warnings.
	refused  []string
	warnings int
	// noCommand is set where no command can be given, because only a person
	// knows what would be right.
	noCommand bool
	// policy is for the row that an option changes.
	policy admission.Policy
}

const (
	release = "spec.openStackRelease "
	tag     = "spec.image.tag "
	name    = "metadata.name "
)

func rows() []row {
	named := func(text string) func(*v1alpha1.Glance) { return func(g *v1alpha1.Glance) { g.Name = text } }
	labelled := func(g *v1alpha1.Glance) { g.Labels = map[string]string{"team": "images"} }
	scaled := func(g *v1alpha1.Glance) { g.Spec.Deployment.Replicas = new(int32(5)) }
	deleted := func(g *v1alpha1.Glance) {
		g.DeletionTimestamp, g.Finalizers = new(metav1.Now()), []string{"example.org/keep"}
	}
	unfinalized := func(g *v1alpha1.Glance) { deleted(g); g.Finalizers = nil }
	workers := func(g *v1alpha1.Glance) { g.Spec.APIServer.Workers = new(int32(4)) }
	elsewhere := func(g *v1alpha1.Glance) { g.Spec.Image.Repository = "mirror.example.org/glance" }
	broken := func(change func(*v1alpha1.GlanceStatus)) *v1alpha1.Glance {
		g := walking(glance("2026.2", "2026.2", ""), upgrade.Migrating, "2026.1", "2026.1")
		change(&g.Status)
		return g
	}
	at261 := func() *v1alpha1.Glance { return steady(glance("2026.1", "2026.1", ""), "2026.1") }
	at262 := func() *v1alpha1.Glance { return steady(glance("2026.2", "2026.2", ""), "2026.2") }
	digest261 := func() *v1alpha1.Glance { return steady(glance("2026.1", "", digestA), "2026.1") }
	latest261 := func() *v1alpha1.Glance { return steady(glance("2026.1", "latest", ""), "2026.1") }
	walk := func(phase upgrade.Phase) *v1alpha1.Glance {
		return walking(glance("2026.2", "2026.2", ""), phase, "2026.1", "2026.1")
	}
	all := []row{
		{number: 2, what: "tag of another release", wish: glance("2026.1", "2026.2", ""), refused: []string{tag + "ImageReleaseMismatch"}},
		{number: 2, what: "tag with a suffix is equal", wish: glance("2026.1", "2026.1-p1", "")},
		{number: 3, what: "digest alone", wish: glance("2026.1", "", digestA), warnings: 1},
		{number: 3, what: "tag latest", wish: glance("2026.1", "latest", ""), warnings: 1},
		{number: 3, what: "tag v2026.1", wish: glance("2026.1", "v2026.1", ""), warnings: 1},
		{number: 3, what: "tag 2026.1.0", wish: glance("2026.1", "2026.1.0", ""), warnings: 1},
		{number: 4, what: "tag that lies beside a digest", wish: glance("2026.1", "2026.2", digestA), refused: []string{tag + "ImageReleaseMismatch"}},
		{number: 4, what: "tag that agrees beside a digest", wish: glance("2026.1", "2026.1", digestA)},
		{number: 5, what: "name of 51 characters", wish: glance("2026.1", "2026.1", "", named(strings.Repeat("a", 51)))},
		{number: 5, what: "name of 52 characters", wish: glance("2026.1", "2026.1", "", named(strings.Repeat("a", 50)+"-b")), refused: []string{name + "NameTooLong"}},
		{number: 5, what: "long name and wrong tag", wish: glance("2026.1", "2026.2", "", named(strings.Repeat("a", 63))), refused: []string{name + "NameTooLong", tag + "ImageReleaseMismatch"}},
		{number: 5, what: "long name and a release that cannot be read", wish: glance("2026.3", "latest", "", named(strings.Repeat("a", 63))), refused: []string{name + "NameTooLong", release + "VersionParseError"}, noCommand: true},
		{number: 5, what: "stored long name stays editable", stored: steady(glance("2026.1", "2026.1", "", named(strings.Repeat("a", 63))), "2026.1"), wish: glance("2026.2", "2026.2", "", named(strings.Repeat("a", 63)))},
		{number: 6, what: "nothing installed, another release", stored: glance("2026.1", "2026.1", ""), wish: glance("2027.1", "2027.1", "")},
		{number: 6, what: "nothing installed, backwards", stored: glance("2026.2", "2026.2", ""), wish: glance("2026.1", "2026.1", ""), warnings: 1},
		{number: 6, what: "nothing installed, mismatch", stored: glance("2026.1", "2026.1", ""), wish: glance("2026.2", "2026.1", ""), refused: []string{tag + "ImageReleaseMismatch"}},
		{number: 6, what: "nothing installed, unreadable release", stored: glance("2026.1", "latest", ""), wish: glance("2026.3", "latest", ""), refused: []string{release + "VersionParseError"}},
		{number: 7, what: "patch tag", stored: at261(), wish: glance("2026.1", "2026.1-p1", "")},
		{number: 7, what: "digest beside the tag", stored: at261(), wish: glance("2026.1", "2026.1", digestB)},
		{number: 8, what: "release and tag in one edit", stored: at261(), wish: glance("2026.2", "2026.2", "")},
		{number: 9, what: "release without the tag", stored: at261(), wish: glance("2026.2", "2026.1", ""), refused: []string{tag + "ImageReleaseMismatch"}},
		{number: 9, what: "tag without the release", stored: at261(), wish: glance("2026.1", "2026.2", ""), refused: []string{tag + "ImageReleaseMismatch"}},
		{number: 9, what: "release without the tag, digest beside it", stored: steady(glance("2026.1", "2026.1", digestA), "2026.1"), wish: glance("2026.2", "2026.1", digestB), refused: []string{tag + "ImageReleaseMismatch"}},
		{number: 9, what: "release without the tag, from another registry", stored: at261(), wish: glance("2026.2", "2026.1", "", elsewhere), refused: []string{tag + "ImageReleaseMismatch"}},
		{number: 10, what: "digest unchanged", stored: digest261(), wish: glance("2026.2", "", digestA), refused: []string{tag + "ImageReleaseMismatch"}},
		{number: 10, what: "opaque tag unchanged", stored: latest261(), wish: glance("2026.2", "latest", ""), refused: []string{tag + "ImageReleaseMismatch"}},
		{number: 11, what: "digest changed, release not", stored: digest261(), wish: glance("2026.1", "", digestB), warnings: 1},
		{number: 11, what: "opaque tag changed, release not", stored: latest261(), wish: glance("2026.1", "edge", ""), warnings: 1},
		{number: 12, what: "downgrade", stored: at262(), wish: glance("2026.1", "2026.1", ""), refused: []string{release + "DowngradeNotSupported"}},
		{number: 12, what: "downgrade of a digest", stored: steady(glance("2026.2", "", digestB), "2026.2"), wish: glance("2026.1", "", digestA), refused: []string{release + "DowngradeNotSupported"}},
		{number: 13, what: "skip-level", stored: at261(), wish: glance("2027.1", "2027.1", ""), refused: []string{release + "UpgradePathInvalid"}},
		{number: 13, what: "skip-level and wrong tag", stored: at261(), wish: glance("2027.1", "2026.1", ""), refused: []string{release + "UpgradePathInvalid", tag + "ImageReleaseMismatch"}},
		{number: 13, what: "skip-level by digest", stored: digest261(), wish: glance("2027.1", "", digestB), refused: []string{release + "UpgradePathInvalid"}},
		{number: 14, what: "2026.2 to 2027.1", stored: at262(), wish: glance("2027.1", "2027.1", "")},
		{number: 16, what: "abort while contracting", stored: walk(upgrade.Contracting), wish: glance("2026.1", "2026.1", ""), warnings: 1},
		{number: 16, what: "abort while contracting, tag still the target", stored: walk(upgrade.Contracting), wish: glance("2026.1", "2026.2", ""), warnings: 2},
		{number: 16, what: "abort while contracting, refused by policy", stored: walk(upgrade.Contracting), wish: glance("2026.1", "2026.1", ""), refused: []string{release + "AbortWhileContracting"}, policy: admission.Policy{RejectAbortWhileContracting: true}},
		{number: 16, what: "abort asked for before, tag follows, policy set", stored: func() *v1alpha1.Glance {
			g := walk(upgrade.Contracting)
			g.Spec.OpenStackRelease = "2026.1"
			return g
		}(), wish: glance("2026.1", "2026.1", ""), warnings: 1, policy: admission.Policy{RejectAbortWhileContracting: true}},
		{number: 17, what: "third release", stored: walk(upgrade.Migrating), wish: glance("2027.1", "2027.1", ""), refused: []string{release + "UpgradeTargetChanged"}},
		{number: 17, what: "third release, older", stored: walk(upgrade.Contracting), wish: glance("2025.2", "2025.2", ""), refused: []string{release + "UpgradeTargetChanged"}},
		{number: 17, what: "third release that cannot be read", stored: walk(upgrade.Expanding), wish: glance("2026.9", "2026.2", ""), refused: []string{release + "VersionParseError"}},
		{number: 17, what: "third release, walk by digest", stored: walking(glance("2026.2", "", digestB), upgrade.Expanding, "2026.1", "2026.1"), wish: glance("2027.1", "", digestA), refused: []string{release + "UpgradeTargetChanged"}},
		{number: 18, what: "another build of the target", stored: walk(upgrade.Migrating), wish: glance("2026.2", "2026.2-p1", ""), warnings: 1},
		{number: 18, what: "back to the pinned build", stored: walk(upgrade.Migrating), wish: glance("2026.2", "2026.2", "")},
		{number: 19, what: "tag of another release than the target", stored: walk(upgrade.RollingUpdate), wish: glance("2026.2", "2026.1", ""), refused: []string{tag + "ImageReleaseMismatch"}},
		{number: 20, what: "labels on an object that breaks a rule", stored: steady(glance("2026.1", "2026.2", ""), "2026.1"), wish: glance("2026.1", "2026.2", "", labelled)},
		{number: 20, what: "replicas of an object with a release that cannot be read", stored: steady(glance("2026.3", "latest", ""), "2026.1"), wish: glance("2026.3", "latest", "", scaled)},
		{number: 20, what: "finalizer of an object being deleted, release changed too", stored: steady(glance("2026.1", "2026.1", "", deleted), "2026.1"), wish: glance("2027.1", "2026.1", "", unfinalized)},
		{number: 20, what: "a deprecated field begins to be used", stored: at261(), wish: glance("2026.1", "2026.1", "", workers), warnings: 1},
		{number: 20, what: "a deprecated field goes on being used", stored: steady(glance("2026.1", "2026.1", "", workers), "2026.1"), wish: glance("2026.1", "2026.1", "", workers, labelled)},
		{number: 20, what: "a deprecated field in a new object", wish: glance("2026.1", "2026.1", "", workers), warnings: 1},
		{number: 21, what: "phase unknown", stored: broken(func(s *v1alpha1.GlanceStatus) { s.UpgradePhase = "Pondering" }), wish: glance("2026.1", "2026.1", ""), refused: []string{release + "VersionParseError"}},
		{number: 21, what: "phase without a target", stored: broken(func(s *v1alpha1.GlanceStatus) { s.TargetRelease = "" }), wish: glance("2026.1", "2026.1", ""), refused: []string{release + "VersionParseError"}},
		{number: 21, what: "installed release cannot be read", stored: broken(func(s *v1alpha1.GlanceStatus) { s.InstalledRelease = "yoga" }), wish: glance("2026.1", "2026.1", ""), refused: []string{release + "VersionParseError"}},
		{number: 21, what: "phase unknown, the image alone", stored: broken(func(s *v1alpha1.GlanceStatus) { s.UpgradePhase = "Pondering" }), wish: glance("2026.2", "2026.2-p1", ""), warnings: 1},
		{number: 21, what: "phase unknown, labels", stored: broken(func(s *v1alpha1.GlanceStatus) { s.UpgradePhase = "Pondering" }), wish: glance("2026.2", "2026.2", "", labelled)},
	}
	for _, text := range []string{"2025.9", "2026.3", "26.1", " 2026.1", "2026.01", "２０２６.１", "", "2026.1\n", strings.Repeat("9", 10_000)} {
		all = append(all, row{number: 1, what: fmt.Sprintf("%.20q with a tag", text), wish: glance(text, "2026.1", ""), refused: []string{release + "VersionParseError"}})
	}
	all = append(all, row{number: 1, what: "2026.3 with a tag that names none", wish: glance("2026.3", "latest", ""), refused: []string{release + "VersionParseError"}, noCommand: true})
	for _, phase := range upgrade.Phases[:3] {
		all = append(all,
			row{number: 15, what: "abort in " + string(phase), stored: walk(phase), wish: glance("2026.1", "2026.1", "")},
			row{number: 15, what: "abort in " + string(phase) + ", tag still the target", stored: walk(phase), wish: glance("2026.1", "2026.2", ""), warnings: 1})
	}
	return all
}

func TestEveryRowOfTheTableIsAnsweredAsWritten(t *testing.T) {
	hooks := map[admission.Policy]hook{}
	transcripts := map[int]*strings.Builder{}
	for _, r := range rows() {
		h, running := hooks[r.policy]
		if !running {
			h = serve(t, r.policy, admission.Kinds...)
			hooks[r.policy] = h
		}
		t.Run(fmt.Sprintf("row %d/%s", r.number, r.what), func(t *testing.T) {
			request := creation(t, r.wish)
			if r.stored != nil {
				request = update(t, r.stored, r.wish)
			}
			answer := h.ask(t, request)
			assertAnswer(t, r, answer)
			if !answer.Allowed {
				assertCommandsPass(t, h, r, answer)
			}
			dry := request.DeepCopy()
			dry.DryRun = new(true)
			assert.Equal(t, answer, h.ask(t, dry), "a dry run is judged like the real thing")

			if transcripts[r.number] == nil {
				transcripts[r.number] = &strings.Builder{}
			}
			transcribe(transcripts[r.number], r, answer)
		})
	}
	var story strings.Builder
	for number := 1; number <= 22; number++ {
		if text := transcripts[number]; text != nil {
			story.WriteString(text.String())
		}
	}
	assertTranscript(t, "rows.txt", story.String())
}

func TestDeletionIsNeverInTheWay(t *testing.T) { // row 22
	h := serve(t, admission.Policy{}, admission.Kinds...)
	for what, old := range map[string]any{
		"as it should be": steady(glance("2026.1", "2026.1", ""), "2026.1"),
		"breaking rules":  glance("2026.3", "2026.2", ""),
		"unreadable":      map[string]any{"spec": 7},
	} {
		t.Run(what, func(t *testing.T) {
			answer := h.ask(t, requestFor(t, admissionv1.Delete, "openstack", "images", nil, old))
			assert.True(t, answer.Allowed)
		})
	}
}

func assertAnswer(t *testing.T, r row, answer *admissionv1.AdmissionResponse) {
	t.Helper()
	if len(r.refused) == 0 {
		require.True(t, answer.Allowed, "%+v", answer.Result)
		require.Len(t, answer.Warnings, r.warnings, "%q", answer.Warnings)
		for _, warning := range answer.Warnings {
			assert.LessOrEqual(t, len([]rune(warning)), 256)
			assert.NotContains(t, warning, "\n")
		}
		return
	}
	require.False(t, answer.Allowed)
	result := answer.Result
	assert.Equal(t, int32(http.StatusUnprocessableEntity), result.Code)
	assert.Equal(t, metav1.StatusReasonInvalid, result.Reason)
	assert.Equal(t, "Failure", result.Status)
	assert.Equal(t, metav1.StatusDetails{Name: r.wish.Name, Group: "openstack.c5c3.io", Kind: "Glance", Causes: result.Details.Causes}, *result.Details)
	var refused, messages []string
	for _, cause := range result.Details.Causes {
		reason, _, _ := strings.Cut(cause.Message, ":")
		refused = append(refused, cause.Field+" "+reason)
		messages = append(messages, cause.Message)
		assert.Equal(t, metav1.CauseTypeFieldValueInvalid, cause.Type)
	}
	assert.Equal(t, r.refused, refused)
	assert.Equal(t, strings.Join(messages, "\n"), result.Message, "clients that show the message alone see all of it")
	for _, message := range messages {
		said, _, _ := strings.Cut(message, "\n")
		if r.stored != nil && r.stored.Status.InstalledRelease != "" {
			assert.Contains(t, said, r.wish.Spec.OpenStackRelease, "the release asked for")
			assert.Contains(t, said, r.stored.Status.InstalledRelease, "the release installed")
		}
	}
}

// assertCommandsPass types every command that a refusal prints, and sees the
// edit admitted.
func assertCommandsPass(t *testing.T, h hook, r row, answer *admissionv1.AdmissionResponse) {
	t.Helper()
	commands := regexp.MustCompile(`(?m)^  (kubectl .*)$`).FindAllStringSubmatch(answer.Result.Message, -1)
	typed := 0
	for _, command := range commands {
		args := kubectlArguments(t, command[1])
		patch := after(args, "-p")
		if patch == "" {
			assert.Equal(t, []string{"edit", "glance", r.wish.Name, "-n", "openstack", "--subresource=status"}, args)
			continue
		}
		typed++
		assert.Contains(t, args, "--type=merge")
		if r.stored == nil {
			assert.Equal(t, []string{"patch", "-f", "FILE", "--local"}, args[:4])
			fixed := merged(t, r.wish, patch)
			again := h.ask(t, creation(t, fixed))
			assert.True(t, again.Allowed, "%s\n%+v", command[1], again.Result)
			continue
		}
		assert.Equal(t, []string{"patch", "glance", r.stored.Name, "-n", "openstack"}, args[:5])
		again := h.ask(t, update(t, r.stored, merged(t, r.stored, patch)))
		assert.True(t, again.Allowed, "%s\n%+v", command[1], again.Result)
	}
	if r.noCommand {
		assert.Zero(t, typed)
		return
	}
	assert.Positive(t, typed, "no command in %s", answer.Result.Message)
}

// kubectlArguments lets a real shell read the command, with a kubectl that
// only repeats what it was given.
func kubectlArguments(t *testing.T, command string) []string {
	t.Helper()
	heard := filepath.Join(t.TempDir(), "heard")
	script := `kubectl() { if [ "$1" != apply ]; then for word in "$@"; do printf '%s\0' "$word"; done > "$HEARD"; fi; }
` + command
	sh := exec.Command("sh", "-euc", script)
	sh.Env = append(os.Environ(), "HEARD="+heard)
	output, err := sh.CombinedOutput()
	require.NoError(t, err, "%s\n%s", command, output)
	text, err := os.ReadFile(heard)
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

func after(args []string, flag string) string {
	for i, arg := range args[:len(args)-1] {
		if arg == flag {
			return args[i+1]
		}
	}
	return ""
}

func merged(t *testing.T, g *v1alpha1.Glance, patch string) *v1alpha1.Glance {
	t.Helper()
	text, err := jsonpatch.MergePatch(raw(t, g), []byte(patch))
	require.NoError(t, err)
	var fixed v1alpha1.Glance
	require.NoError(t, json.Unmarshal(text, &fixed))
	return &fixed
}

// transcribe tells a row the way a person meets it.
func transcribe(to *strings.Builder, r row, answer *admissionv1.AdmissionResponse) {
	_, _ = fmt.Fprintf(to, "== row %d: %s\n", r.number, r.what)
	if r.stored != nil {
		state := r.stored.Status.State()
		_, _ = fmt.Fprintf(to, "stored:  %s %s", r.stored.Spec.OpenStackRelease, tail(r.stored))
		if state.Installed != "" {
			_, _ = fmt.Fprintf(to, ", installed %s", state.Installed)
		}
		if state.Walking() {
			_, _ = fmt.Fprintf(to, ", %s to %q", state.Phase, state.Target)
		}
		_, _ = fmt.Fprintln(to)
	}
	_, _ = fmt.Fprintf(to, "request: %.20q %s\n", r.wish.Spec.OpenStackRelease, tail(r.wish))
	if answer.Allowed {
		_, _ = fmt.Fprintln(to, "admitted")
		for _, warning := range answer.Warnings {
			_, _ = fmt.Fprintf(to, "Warning: %s\n", warning)
		}
	} else {
		_, _ = fmt.Fprintf(to, "refused %d %s\n", answer.Result.Code, answer.Result.Reason)
		for _, cause := range answer.Result.Details.Causes {
			_, _ = fmt.Fprintf(to, "%s: %s\n", cause.Field, cause.Message)
		}
	}
	_, _ = fmt.Fprintln(to)
}

func tail(g *v1alpha1.Glance) string {
	return strings.TrimPrefix(g.Spec.Image.Reference().String(), repository)
}

func assertTranscript(t *testing.T, file, story string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *refresh {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(story), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	expected, got := strings.Split(string(want), "\n"), strings.Split(story, "\n")
	for i := range min(len(expected), len(got)) {
		require.Equal(t, expected[i], got[i], "%s line %d: run with -update if the new text is better, and read it", path, i+1)
	}
	require.Len(t, got, len(expected), "lines of %s", path)
}
