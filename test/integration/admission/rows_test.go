package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/test/harness"
	"github.com/c5c3/openstack-upgrade/test/rows"
	"github.com/c5c3/openstack-upgrade/webhook/admission"
)

// TestEveryRowIsAnsweredThroughKubectlAsTheTableSays asks every row in every way, first of the CRD alone, then with the
// webhook beside it, and types every command that an answer prints.
func TestEveryRowIsAnsweredThroughKubectlAsTheTableSays(t *testing.T) {
	env := harness.Shared(t)
	var scenes []*scene
	for i, r := range rows.All() {
		scenes = append(scenes, &scene{Row: r, env: env, ns: fmt.Sprintf("row-%d-%d", r.Number, i)})
	}
	setStage(t, env, scenes)

	t.Run("CRD alone", func(t *testing.T) { each(t, scenes, (*scene).askFloor) })
	for _, policy := range []admission.Policy{{}, {RejectAbortWhileContracting: true}} {
		h := serve(t, policy)
		withdraw := register(t, env, configuration(t, env, h.url, h.pair.Certificate))
		t.Run(fmt.Sprintf("with the webhook, %+v", policy), func(t *testing.T) {
			each(t, of(scenes, policy), func(s *scene, t *testing.T) { s.askBoth(t, h) })
		})
		withdraw()
	}
	if t.Failed() {
		return
	}
	var story strings.Builder
	slices.SortStableFunc(scenes, func(a, b *scene) int { return a.Number - b.Number })
	for _, s := range scenes {
		s.tell(&story)
	}
	assertStory(t, "rows.txt", story.String())
}

// scene is a row with its objects, one for each way.
type scene struct {
	rows.Row
	env *harness.Env
	ns  string
	// floor and both are what was seen, way by way.
	floor, both []seen
}

// seen is an answer, with the names of this run taken out.
type seen struct {
	way   string
	words string
}

func each(t *testing.T, scenes []*scene, ask func(*scene, *testing.T)) {
	for _, s := range scenes {
		t.Run(fmt.Sprintf("row %d/%s", s.Number, s.What), func(t *testing.T) {
			t.Parallel()
			ask(s, t)
		})
	}
}

func of(scenes []*scene, policy admission.Policy) []*scene {
	return slices.DeleteFunc(slices.Clone(scenes), func(s *scene) bool { return s.Policy != policy })
}

// of is an object of the scene, named for a way.
func (s *scene) of(g *v1alpha1.Glance, w way) *v1alpha1.Glance {
	g = g.DeepCopy()
	g.Namespace, g.Generation = s.ns, 0
	if g.Name == rows.Name {
		g.Name += "-" + strings.ToLower(strings.ReplaceAll(w.name, " ", "-"))
	} else if s.Stored != nil || len(s.Refused) == 0 {
		g.Name = w.letter() + g.Name[1:]
	}
	return g
}

// setStage stores what the rows begin with. Some of it breaks rules, so it is stored before there are any.
func setStage(t *testing.T, env *harness.Env, scenes []*scene) {
	t.Helper()
	restore := withoutRules(t, env)
	for _, s := range scenes {
		env.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns}})
		for _, w := range ways {
			if s.Stored == nil || !w.changes {
				continue
			}
			g := s.of(s.Stored, w)
			text := manifest(t, g)
			object := &unstructured.Unstructured{}
			require.NoError(t, json.Unmarshal(text, object))
			if w.name == "server-side apply" {
				require.NoError(t, env.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl")))
			} else {
				object.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: string(text)})
				env.Create(t, object)
			}
			stored := &v1alpha1.Glance{}
			require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(g), stored))
			stored.Status = g.Status
			require.NoError(t, env.Client.Status().Update(t.Context(), stored))
			if s.Stored.DeletionTimestamp != nil {
				require.NoError(t, env.Client.Delete(t.Context(), stored))
			}
		}
	}
	restore()
}

// withoutRules takes the rules out of the CRD until what is returned is called.
func withoutRules(t *testing.T, env *harness.Env) (restore func()) {
	t.Helper()
	key := client.ObjectKey{Name: "glances." + v1alpha1.GroupVersion.Group}
	write := func(change func(*apiextensionsv1.JSONSchemaProps)) apiextensionsv1.JSONSchemaProps {
		crd := &unstructured.Unstructured{}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		require.NoError(t, env.Client.Get(t.Context(), key, crd))
		var typed apiextensionsv1.CustomResourceDefinition
		convert(t, crd.Object, &typed)
		root := typed.Spec.Versions[0].Schema.OpenAPIV3Schema
		before := *root.DeepCopy()
		change(root)
		convert(t, typed, &crd.Object)
		require.NoError(t, env.Client.Update(t.Context(), crd))
		return before
	}
	shipped := write(func(root *apiextensionsv1.JSONSchemaProps) {
		root.XValidations = nil
		spec := root.Properties["spec"]
		field := spec.Properties["openStackRelease"]
		field.Pattern = ""
		spec.Properties["openStackRelease"] = field
	})
	try := func(holds bool) {
		probe := client.NewDryRunClient(env.Client)
		env.Eventually(t, harness.Patience, fmt.Sprintf("the rules of the CRD to be in force: %t", holds), func(ctx context.Context) string {
			wrong := rows.Glance("2026.3", "latest", "", func(g *v1alpha1.Glance) { g.Namespace, g.Name, g.Generation = "default", "probe", 0 })
			if err := probe.Create(ctx, wrong); (err != nil) != holds {
				return fmt.Sprintf("a wrong release is answered by %v", err)
			}
			return ""
		})
	}
	try(false)
	return func() {
		write(func(root *apiextensionsv1.JSONSchemaProps) { *root = shipped })
		try(true)
	}
}

func convert(t *testing.T, from, to any) {
	t.Helper()
	text, err := json.Marshal(from)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, to))
}

func (s *scene) ways() []way {
	var all []way
	for _, w := range ways {
		if s.Stored != nil && w.changes || s.Stored == nil && w.creates {
			all = append(all, w)
		}
	}
	return all
}

// askFloor writes nothing, so that the webhook is asked about the same objects later.
func (s *scene) askFloor(t *testing.T) {
	for _, w := range s.ways() {
		if !w.alone {
			continue
		}
		w = w.dryly()
		words, ok := s.ask(t, w, newShell(t, s.env, s.ns))
		assert.Equal(t, len(s.Floor) == 0, ok, "%s: %s", w.name, words)
		assert.Equal(t, s.Floor, refusals(words), "%s: %s", w.name, words)
		assert.Empty(t, warnings(words), "%s: %s", w.name, words)
		s.floor = append(s.floor, seen{w.name, s.plain(words, w)})
	}
}

func (s *scene) askBoth(t *testing.T, h *hook) {
	typed, printed := map[int]bool{}, 0
	for i, w := range s.ways() {
		sh := newShell(t, s.env, s.ns)
		words, ok := s.ask(t, w, sh)
		verdict := h.decided(s.ns, s.of(s.Wish, w).Name)
		expected := s.Refused
		switch {
		case len(s.Floor) > 0:
			expected = s.Floor
			assert.Empty(t, verdict, "%s: the webhook is not asked about what the CRD refuses", w.name)
		case len(s.Refused) > 0:
			assert.Equal(t, admission.Denied, verdict, w.name)
		default:
			assert.NotContains(t, []admission.Verdict{admission.Denied, admission.Failed}, verdict, w.name)
		}
		assert.Equal(t, len(expected) == 0, ok, "%s: %s", w.name, words)
		assert.Equal(t, expected, refusals(words), "%s: %s", w.name, words)
		assert.Equal(t, s.Warned, warnings(words), "%s: %s", w.name, words)
		s.both = append(s.both, seen{w.name, s.plain(words, w)})

		// Each way has an object of its own, so each can take another of the commands.
		commands := regexp.MustCompile(`kubectl (patch|edit) .*`).FindAllString(words, -1)
		printed = len(commands)
		if printed == 0 {
			continue
		}
		typed[i%printed] = true
		command := commands[i%printed]
		sh.write(t, "repair", repair)
		said, ok := sh.types(t, "export KUBE_EDITOR=./repair; "+command)
		assert.True(t, ok, "%s was told %s\nand typed %s\n%s", w.name, words, command, said)
		assert.Empty(t, refusals(said), "%s\n%s", command, said)
		if told := sentences(words); ok && len(told) == printed {
			assert.NotContains(t, said, told[i%printed], "the warning is heeded")
		}
	}
	if s.NoCommand {
		assert.Zero(t, printed)
	} else if len(s.Refused)+len(s.Warned) > 0 && s.commandExpected() {
		assert.Positive(t, printed, "no command was printed")
	}
	assert.Len(t, typed, printed, "every command was typed")
}

// sentences is what each warning says before its command.
func sentences(words string) []string {
	var all []string
	for _, line := range regexp.MustCompile(`(?m)^Warning: .*$`).FindAllString(words, -1) {
		said, _, _ := strings.Cut(line, ". To ")
		all = append(all, said)
	}
	return all
}

// commandExpected is whether one command can mend what the CRD finds: it cannot see a name and a release together, nor
// read a text that is far too long or has a line break in it.
func (s *scene) commandExpected() bool {
	release := s.Wish.Spec.OpenStackRelease
	return len(s.Floor) == 0 || len(s.Floor) == 1 && s.Floor[0] != "metadata NameInvalid" && len(release) <= 64 && !strings.Contains(release, "\n") && len(s.Refused) == 1
}

func (s *scene) ask(t *testing.T, w way, sh shell) (words string, ok bool) {
	t.Helper()
	var stored *v1alpha1.Glance
	if s.Stored != nil {
		stored = s.of(s.Stored, w)
	}
	return w.types(t, sh, stored, s.of(s.Wish, w))
}

// repair is how a person mends the broken records of the table.
const repair = `#!/bin/sh
sed -i -e '/^  targetRelease:/d' -e '/^  installedRelease:/d' \
  -e 's/^  upgradePhase:.*/  upgradePhase: Migrating\n  targetRelease: "2026.2"\n  installedRelease: "2026.1"/' "$1"
`

var (
	refusal = regexp.MustCompile(`(?m)(?:is invalid: |^\* |was not valid:\n\* )([A-Za-z.]+): (?:Invalid value: )?([A-Z][A-Za-z]+|Too long): `)
	warned  = regexp.MustCompile(`(?m)^Warning: (?:([a-z][A-Za-z.]+): ([A-Z][A-Za-z]+): )?`)
)

// refusals are field and reason word of everything that is refused.
func refusals(words string) []string { return pairs(refusal.FindAllStringSubmatch(words, -1)) }

// warnings are field and reason word of everything that is warned about. What kubectl itself says about an object that is
// being deleted does not count.
func warnings(words string) []string {
	own := regexp.MustCompile(`(?m)^Warning: Detected changes to resource \S+ which is currently being deleted\.$`)
	return pairs(warned.FindAllStringSubmatch(own.ReplaceAllString(words, ""), -1))
}

func pairs(matches [][]string) []string {
	var all []string
	for _, match := range matches {
		all = append(all, match[1]+" "+strings.ReplaceAll(match[2], "Too long", "TooLong"))
	}
	return all
}

var (
	nines = regexp.MustCompile(`9{40,}`)
	done  = regexp.MustCompile(`(?m)^glance\.openstack\.c5c3\.io/\S+ (?:created|configured|serverside-applied|patched|replaced|edited)$`)
)

// plain takes the names of this run out of what was seen.
func (s *scene) plain(words string, w way) string {
	wish := s.of(s.Wish, w)
	words = strings.ReplaceAll(words, wish.Name, s.Wish.Name)
	words = strings.ReplaceAll(words, s.ns, rows.Namespace)
	words = strings.ReplaceAll(words, " (server dry run)", "")
	return nines.ReplaceAllString(done.ReplaceAllString(words, "admitted"), "9…")
}

// tell is the row as people met it.
func (s *scene) tell(to *strings.Builder) {
	_, _ = fmt.Fprint(to, s.Row)
	for _, layer := range []struct {
		name string
		all  []seen
	}{{"CRD alone", s.floor}, {"CRD and webhook", s.both}} {
		var order []string
		by := map[string][]string{}
		for _, one := range layer.all {
			if by[one.words] == nil {
				order = append(order, one.words)
			}
			by[one.words] = append(by[one.words], one.way)
		}
		for _, words := range order {
			_, _ = fmt.Fprintf(to, "%s (%s):\n  %s\n", layer.name, strings.Join(by[words], ", "), strings.ReplaceAll(words, "\n", "\n  "))
		}
	}
	_, _ = fmt.Fprintln(to)
}

// kubectl patches strategically unless told otherwise, and no kind of a CRD knows that.
func TestAStrategicPatchIsRefusedByKubernetesInItsOwnWords(t *testing.T) {
	env := harness.Shared(t)
	ns := env.Namespace(t)
	in(t, env, ns, rows.Glance("2026.1", "2026.1", ""))
	seen, ok := newShell(t, env, ns).types(t, `kubectl patch glance images -p '{"spec":{"openStackRelease":"2026.2"}}'`)
	assert.False(t, ok)
	assert.Contains(t, seen, "application/strategic-merge-patch+json is not supported")
	assert.Contains(t, seen, "application/merge-patch+json", "what would be is said")
}

func assertStory(t *testing.T, file, story string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if harness.Updating() {
		require.NoError(t, os.WriteFile(path, []byte(story), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	expected, got := strings.Split(string(want), "\n"), strings.Split(story, "\n")
	for i := range min(len(expected), len(got)) {
		require.Equal(t, expected[i], got[i], "%s line %d: run with -update if the new text is better, and read it", path, i+1)
	}
	require.Len(t, got, len(expected), "lines of %s", path)
}
