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
	"github.com/c5c3/openstack-upgrade/test/rows"
	"github.com/c5c3/openstack-upgrade/webhook/admission"
)

var refresh = flag.Bool("update", false, "write the transcripts anew")

func TestEveryRowOfTheTableIsAnsweredAsWritten(t *testing.T) {
	hooks := map[admission.Policy]hook{}
	transcripts := map[int]*strings.Builder{}
	for _, r := range rows.All() {
		h, running := hooks[r.Policy]
		if !running {
			h = serve(t, r.Policy, admission.Kinds...)
			hooks[r.Policy] = h
		}
		t.Run(fmt.Sprintf("row %d/%s", r.Number, r.What), func(t *testing.T) {
			request := creation(t, r.Wish)
			if r.Stored != nil {
				request = update(t, r.Stored, r.Wish)
			}
			answer := h.ask(t, request)
			assertAnswer(t, r, answer)
			if answer.Allowed {
				assertWarnedCommandsPass(t, h, r, answer.Warnings)
			} else {
				assertCommandsPass(t, h, r, answer)
			}
			dry := request.DeepCopy()
			dry.DryRun = new(true)
			assert.Equal(t, answer, h.ask(t, dry), "a dry run is judged like the real thing")

			if transcripts[r.Number] == nil {
				transcripts[r.Number] = &strings.Builder{}
			}
			transcribe(transcripts[r.Number], r, answer)
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

func assertAnswer(t *testing.T, r rows.Row, answer *admissionv1.AdmissionResponse) {
	t.Helper()
	if len(r.Refused) == 0 {
		require.True(t, answer.Allowed, "%+v", answer.Result)
		var warned []string
		total := 0
		for _, warning := range answer.Warnings {
			path, rest, _ := strings.Cut(warning, ": ")
			reason, _, _ := strings.Cut(rest, ": ")
			warned = append(warned, path+" "+reason)
			said, command, _ := strings.Cut(warning, ": kubectl ")
			assert.NotEmpty(t, command, warning)
			assert.LessOrEqual(t, len([]rune(said)), 300, "what is said before the command is short")
			assert.NotContains(t, warning, "\n")
			total += len([]rune(warning))
		}
		assert.Equal(t, r.Warned, warned)
		assert.Less(t, total, 2048, "half of what the API server passes on uncut")
		return
	}
	require.False(t, answer.Allowed)
	result := answer.Result
	assert.Equal(t, int32(http.StatusUnprocessableEntity), result.Code)
	assert.Equal(t, metav1.StatusReasonInvalid, result.Reason)
	assert.Equal(t, "Failure", result.Status)
	assert.Equal(t, metav1.StatusDetails{Name: r.Wish.Name, Group: "openstack.c5c3.io", Kind: "Glance", Causes: result.Details.Causes}, *result.Details)
	var refused, messages []string
	for _, cause := range result.Details.Causes {
		reason, _, _ := strings.Cut(cause.Message, ":")
		refused = append(refused, cause.Field+" "+reason)
		messages = append(messages, cause.Message)
		assert.Equal(t, metav1.CauseTypeFieldValueInvalid, cause.Type)
	}
	assert.Equal(t, r.Refused, refused)
	assert.Equal(t, strings.Join(messages, "\n"), result.Message, "clients that show the message alone see all of it")
	for _, message := range messages {
		said, _, _ := strings.Cut(message, "\n")
		if r.Stored != nil && r.Stored.Status.InstalledRelease != "" {
			assert.Contains(t, said, r.Wish.Spec.OpenStackRelease, "the release asked for")
			assert.Contains(t, said, r.Stored.Status.InstalledRelease, "the release installed")
		}
	}
}

// assertCommandsPass types every command that a refusal prints, and sees the
// edit admitted.
func assertCommandsPass(t *testing.T, h hook, r rows.Row, answer *admissionv1.AdmissionResponse) {
	t.Helper()
	commands := regexp.MustCompile(`(?m)^  (kubectl .*)$`).FindAllStringSubmatch(answer.Result.Message, -1)
	typed := 0
	for _, command := range commands {
		args := kubectlArguments(t, command[1])
		patch := after(args, "-p")
		if patch == "" {
			assert.Equal(t, []string{"edit", "glance", r.Wish.Name, "-n", "openstack", "--subresource=status"}, args)
			continue
		}
		typed++
		assert.Contains(t, args, "--type=merge")
		if r.Stored == nil {
			assert.Equal(t, []string{"patch", "-f", "FILE", "--local"}, args[:4])
			fixed := merged(t, r.Wish, patch)
			again := h.ask(t, creation(t, fixed))
			assert.True(t, again.Allowed, "%s\n%+v", command[1], again.Result)
			continue
		}
		assert.Equal(t, []string{"patch", "glance", r.Stored.Name, "-n", "openstack"}, args[:5])
		again := h.ask(t, update(t, r.Stored, merged(t, r.Stored, patch)))
		assert.True(t, again.Allowed, "%s\n%+v", command[1], again.Result)
	}
	if r.NoCommand {
		assert.Zero(t, typed)
		return
	}
	assert.Positive(t, typed, "no command in %s", answer.Result.Message)
}

// assertWarnedCommandsPass types the command of every warning, after the edit and, as after a dry run, instead of it.
func assertWarnedCommandsPass(t *testing.T, h hook, r rows.Row, warnings []string) {
	t.Helper()
	for _, warning := range warnings {
		_, command, _ := strings.Cut(warning, ": kubectl ")
		args := kubectlArguments(t, "kubectl "+command)
		patch := after(args, "-p")
		if patch == "" {
			assert.Equal(t, []string{"edit", "glance", r.Wish.Name, "-n", "openstack", "--subresource=status"}, args)
			continue
		}
		if r.Stored == nil {
			assert.Equal(t, []string{"patch", "-f", "FILE", "--local"}, args[:4])
			again := h.ask(t, creation(t, merged(t, r.Wish, patch)))
			assert.True(t, again.Allowed, "%s\n%+v", command, again.Result)
			assert.NotContains(t, again.Warnings, warning)
			continue
		}
		assert.Equal(t, []string{"patch", "glance", r.Stored.Name, "-n", "openstack"}, args[:5])
		edited := r.Wish.DeepCopy()
		edited.Status = r.Stored.Status
		for _, before := range []*v1alpha1.Glance{edited, r.Stored} {
			again := h.ask(t, update(t, before, merged(t, before, patch)))
			assert.True(t, again.Allowed, "%s\n%+v", command, again.Result)
			assert.NotContains(t, again.Warnings, warning)
		}
	}
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
func transcribe(to *strings.Builder, r rows.Row, answer *admissionv1.AdmissionResponse) {
	_, _ = fmt.Fprint(to, r)
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
