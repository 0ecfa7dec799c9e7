package replay

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/test/faults/history"
	"github.com/c5c3/openstack-upgrade/test/faults/line"
	"github.com/c5c3/openstack-upgrade/test/faults/share"
	"github.com/c5c3/openstack-upgrade/test/faults/story"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// few is how many schedules the bounded share has.
const few = 2

// schedules are those that the model found for planners with a hole, by name, and some of ours: one that it found before
// the product had an answer to it that made it harmless, and one that differs from one of them in when the cache stops, for
// no hand is quick enough for the moment before the first pod.
func schedules(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../../shared/upgrade/testdata/holes/*.plan")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	ours, err := filepath.Glob("testdata/*.plan")
	require.NoError(t, err)
	require.NotEmpty(t, ours)
	files = append(files, ours...)
	all := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all[strings.TrimSuffix(filepath.Base(file), ".plan")] = strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "; ")
	}
	return all
}

func TestTheProductSurvivesWhatTheModelFoundForPlannersWithAHole(t *testing.T) {
	all := schedules(t)
	switch plan := share.Plan(); {
	case plan != "" && all[plan] != "":
		all = map[string]string{plan: all[plan]}
	case plan != "":
		all = map[string]string{"the plan that was given": plan}
	case !share.Whole():
		random := rand.New(rand.NewPCG(share.Seed(t), 0))
		names := slices.Sorted(maps.Keys(all))
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names[few:] {
			delete(all, name)
		}
	}
	env, began := harness.Shared(t), time.Now()
	told, as := history.Follow(t, env), env.ControllerConfig(t)
	result := line.Result{Name: "schedules of the model, replayed"}
	var run, passed atomic.Int32
	var idle idlers
	t.Run("schedules", func(t *testing.T) {
		for name, text := range all {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				plan, err := parse(text)
				require.NoError(t, err)
				schedule, in := of(t, text, plan)
				defer func() {
					switch {
					case t.Failed():
						run.Add(1)
					case in():
						run.Add(1)
						passed.Add(1)
					default:
						idle.add(name)
						t.Log("in no row: a cache that stood still had nothing to show")
					}
				}()
				lane := story.Open(t, env, told, as)
				outcome, _ := schedule.Live(t, lane, "i1x", nil)
				for _, broken := range outcome.Broken {
					t.Errorf("%s", broken)
				}
				time.Sleep(share.Stays())
				for _, woken := range lane.Woken() {
					t.Error(woken)
				}
				if t.Failed() {
					t.Logf("again: make faults RUN=TheModelFound PLAN='%s'\nthe whole history:\n%s", text, outcome.Told)
				}
			})
		}
	})
	result.Plans, result.Passed, result.Took = int(run.Load()), int(passed.Load()), time.Since(began)
	result.Print()
	if lack := idle.judge(len(all), share.Whole() && share.Plan() == ""); lack != "" {
		t.Error(lack)
	}
}

// idlers are the schedules in which a cache stood still and had nothing to show.
type idlers struct {
	mu    sync.Mutex
	names []string
}

func (i *idlers) add(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.names = append(i.names, name)
}

// judge says what is wrong with that: a share may have one, if it has another schedule; the whole shows what
// it is about.
func (i *idlers) judge(all int, whole bool) string {
	if len(i.names) == 0 || !whole && len(i.names) < all {
		return ""
	}
	return fmt.Sprintf("no cache stood still while there was something to show in %v", i.names)
}

func TestAScheduleThatHasShownNothingIsKnown(t *testing.T) {
	const frozen = "ask for 2026.2 with r:2026.2; write create jobs images-db-expand 1; job db-expand runs; freeze pods; job db-expand ends; job db-expand is complete; write create jobs images-db-migrate 1"
	for _, c := range []struct {
		text string
		came []bool
		says string
	}{
		{frozen, []bool{true, true, true, true, true, true, false}, ""},
		{frozen, []bool{true, true, true, true, true, false, false}, "nothing came about after the first disturbance"},
		{"freeze own; write update glances/status images 4; ask for 2026.1 with r:2026.1; write delete jobs images-db-sync 1", []bool{true, true, true, false}, "only 0 of 1"},
		{"job db-expand runs; freeze own; write update glances/status images 4; ask for 2026.1 with r:2026.1; write delete jobs images-db-sync 1", []bool{true, true, true, true, false}, ""},
		{frozen, []bool{true, false, false, true, true, true, false}, "only 1 of 4 statements came about"},
		{"pause; write create jobs images-db-sync 1", []bool{false, true}, "pause: this cannot be done from outside"},
		{"the configuration changes", []bool{false}, "the configuration changes: this cannot"},
		{"write create jobs images-db-sync 1; kill after: create jobs images-db-expand 1; job db-expand runs", []bool{true, false, true}, "the controller was not killed"},
	} {
		plan, err := parse(c.text)
		require.NoError(t, err)
		lacks := lacking(plan, c.came)
		if c.says == "" {
			assert.Empty(t, lacks)
			continue
		}
		require.Len(t, lacks, 1, c.says)
		assert.Contains(t, lacks[0], c.says)
	}
}

func TestACacheThatHadNothingToShowIsNotMadeUpForByAnother(t *testing.T) {
	judged := func(shows ...bool) (s stops) {
		for _, each := range shows {
			s.froze++
			s.judge(each)
		}
		s.judge(true) // once more, of no other
		return s
	}
	assert.True(t, judged().all())
	assert.True(t, judged(true, true).all())
	assert.False(t, judged(true, false).all())
	assert.False(t, judged(false, true).all())
}

func TestAScheduleWithoutItsStaleViewIsNotLostInTheWhole(t *testing.T) {
	one := &idlers{names: []string{"caches-are-believed"}}
	assert.Empty(t, one.judge(2, false))
	assert.NotEmpty(t, one.judge(1, false))
	assert.NotEmpty(t, one.judge(16, true))
	assert.Empty(t, (&idlers{}).judge(16, true))
}

func TestAPlanIsReadAndNonsenseIsNot(t *testing.T) {
	plan, err := parse("install; ask for 2026.2 with r:2026.2-p1; write create jobs images-db-expand 1, update glances/status images 2; kill after: create jobs images-db-migrate 1; job db-expand runs; freeze own; pod of r:2026.1 is gone; rollout")
	require.NoError(t, err)
	assert.Len(t, plan, 8)
	assert.Equal(t, "2026.2-p1", plan[1].tag())
	points, err := plan[2].points()
	require.NoError(t, err)
	assert.Equal(t, "[create jobs images-db-expand 1 update glances/status images 2]", fmt.Sprint(points))
	_, err = parse("install; dance")
	assert.ErrorContains(t, err, `"dance" is no statement: it must begin with one of`)
	_, err = statement{write, "create jobs"}.points()
	assert.Error(t, err)
}
