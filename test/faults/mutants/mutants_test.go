package mutants

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/test/faults/line"
	"github.com/c5c3/openstack-upgrade/test/faults/share"
)

func root(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	require.NoError(t, err)
	return dir
}

func TestEveryMutantFitsTheSourceAndSaysWhatItIsAbout(t *testing.T) {
	names := map[string]bool{}
	for _, m := range All() {
		_, err := m.Changed(root(t))
		assert.NoError(t, err)
		assert.False(t, names[m.Name], "two mutants are called %q", m.Name)
		names[m.Name] = true
		assert.NotEmpty(t, m.Why, m.Name)
		assert.NotEmpty(t, m.By, m.Name)
		assert.NotEqual(t, m.From, m.To, m.Name)
	}
	page, err := os.ReadFile(filepath.Join(root(t), "docs/faults.md"))
	require.NoError(t, err)
	assert.Contains(t, string(page), fmt.Sprintf("| Mutants | %d breaks of", len(names)))
}

func TestAMutantWhoseTextIsGoneIsAnErrorAndSoIsOneThatFitsTwice(t *testing.T) {
	for _, from := range []string{"no such text", "return"} {
		_, err := Mutant{Name: "m", File: "shared/release/release.go", From: from}.Changed(root(t))
		assert.ErrorContains(t, err, "must be found once")
	}
}

// Whoever judges mutants is judged by one that changes nothing, one that does not compile, and tests that do not exist.
func TestWhatTestsCannotTellSurvivesAndWhatTheyNeverSawIsNoVerdict(t *testing.T) {
	file := "shared/release/release.go"
	for want, m := range map[Verdict]Mutant{
		Survived: {Name: "nothing", File: file, From: "// Next is the release", To: "// The next release", By: "."},
		Broken:   {Name: "nonsense", File: file, From: "return Release{year: year,", To: "return Release{yare: year,", By: "."},
	} {
		assert.Equal(t, want, run(t, m).Verdict)
	}
	assert.Equal(t, Broken, run(t, Mutant{Name: "nobody looks", File: file, From: "half: 2}", To: "half: 1}", By: "NoSuchTest"}).Verdict)
}

func run(t testing.TB, m Mutant) Outcome {
	t.Helper()
	outcome, err := Run(t.Context(), root(t), t.TempDir(), m)
	require.NoError(t, err)
	return outcome
}

// few is how many mutants the share of `make test` has.
const few = 6

func TestMutantsAreKilled(t *testing.T) {
	mutants, began := chosen(t), time.Now()
	result := line.Result{Name: "mutants, " + extent()}
	for _, m := range mutants {
		if !share.Whole() && share.Plan() == "" && result.Plans == few {
			break
		}
		outcome := run(t, m)
		result.Plans++
		t.Log(outcome)
		if outcome.Good() {
			result.Passed++
			continue
		}
		t.Errorf("mutant %q of %s is %s: %s\nrun it alone: make mutants PLAN='%s'\n%s", m.Name, m.File, outcome.Verdict, m.Why, m.Name, end(outcome.Said))
	}
	result.Took = time.Since(began)
	result.Print()
	assert.NotZero(t, result.Plans)
}

// chosen are all mutants, the one that is asked for, or unit mutants by chance.
func chosen(t testing.TB) []Mutant {
	t.Helper()
	var found []Mutant
	for _, m := range All() {
		switch plan := share.Plan(); {
		case plan != "" && m.Name != plan:
		case plan == "" && !share.Whole() && !m.Unit():
		default:
			found = append(found, m)
		}
	}
	if len(found) == 0 {
		t.Fatalf("no mutant is called %q", share.Plan())
	}
	if !share.Whole() {
		random := rand.New(rand.NewPCG(share.Seed(t), 0))
		random.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	}
	return found
}

func extent() string {
	if share.Whole() {
		return "all"
	}
	return "a handful"
}

func end(text string) string {
	const enough = 3000
	return strings.TrimSpace(text[max(0, len(text)-enough):])
}
