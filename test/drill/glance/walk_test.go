package main

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheOldReleaseWorksUntilContractAndNeverAfter(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync", "load_metadefs")
	address, _ := w.serve(a)
	first := create(t, address, "first")

	crowd := gather(t, address, address).after(50)
	for _, command := range []string{"expand", "migrate"} {
		w.must(b, command)
		crowd.after(50)
	}
	summary := crowd.disperse()
	require.Zero(t, summary.Failed, summary.Failures)
	require.True(t, w.verify().Good())

	w.must(b, "contract")
	for _, request := range [][2]string{
		{http.MethodGet, "/v2/images"}, {http.MethodGet, "/v2/images/" + first}, {http.MethodPost, "/v2/images"},
	} {
		answer := answers(t, http.StatusInternalServerError, request[0], address+request[1], `{"name":"late"}`)
		assert.Contains(t, answer, "Unknown column 'value_2026_1'")
	}
	answers(t, http.StatusOK, http.MethodGet, address+"/healthcheck", "")
}

func TestTheNewReleaseWorksOnceEverythingIsMigrated(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync")
	old, _ := w.serve(a)
	first := create(t, old, "first")
	recent, _ := w.serve(b)
	answers(t, http.StatusInternalServerError, http.MethodGet, recent+"/v2/images/"+first, "")

	w.must(b, "expand")
	answer := answers(t, http.StatusInternalServerError, http.MethodGet, recent+"/v2/images/"+first, "")
	assert.Contains(t, answer, "value_2026_2 is empty", "before migrate the new release cannot read old rows")

	w.must(b, "migrate")
	found := decode(t, answers(t, http.StatusOK, http.MethodGet, recent+"/v2/images/"+first, ""))
	assert.Equal(t, "value of first", found["value"])

	w.must(b, "contract")
	found = decode(t, answers(t, http.StatusOK, http.MethodGet, recent+"/v2/images/"+first, ""))
	assert.Equal(t, "value of first", found["value"])
	create(t, recent, "last")
	report := w.verify()
	assert.True(t, report.Good(), report)
	assert.Equal(t, []string{"value_2026_2"}, report.Columns)
}

func TestBothReleasesKeepEveryRowRightBetweenExpandAndContract(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync")
	old, _ := w.serve(a)
	recent, _ := w.serve(b)
	for range 50 {
		create(t, old, "before")
	}
	w.must(b, "expand", "migrate")
	summary := gather(t, old, recent, old, recent).after(600).disperse()
	require.Zero(t, summary.Failed, summary.Failures)
	assert.Positive(t, summary.Kinds["change"].Sent)

	report := w.verify()
	assert.True(t, report.Good(), report.Faults)
	assert.Zero(t, report.Unmigrated)
	assert.Equal(t, 50+summary.Created, report.Checked)
	assert.Equal(t, []string{"value_2026_1", "value_2026_2"}, report.Columns, "each row was right in both")

	w.must(b, "contract")
	report = w.verify()
	assert.True(t, report.Good(), report.Faults)
	assert.Equal(t, 50+summary.Created, report.Checked)
}

func TestAWholeWalkUnderTrafficFailsNothing(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync")
	old, ending := w.serve(a)
	crowdOfOld := gather(t, old, old).after(50)
	w.must(b, "expand", "migrate")
	recent, _ := w.serve(b)
	crowdOfNew := gather(t, recent, recent).after(100)
	summary := crowdOfOld.disperse()
	require.Zero(t, summary.Failed, summary.Failures)
	require.NoError(t, ending.cmd.Process.Kill())
	w.must(b, "contract")
	summary = crowdOfNew.after(50).disperse()
	require.Zero(t, summary.Failed, summary.Failures)
	assert.True(t, w.verify().Good())
}

func TestOnePassUnderTheOldReleaseFailsItsRequests(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync")
	address, _ := w.serve(a)
	crowd := gather(t, address, address).after(50)
	for attempt := 1; ; attempt++ {
		// A row that comes between migrate and contract makes it fail, and a Job tries again.
		code, out := w.manage(b, "sync")
		if code == 0 {
			break
		}
		require.Contains(t, out, "must be migrated first")
		require.Less(t, attempt, 50, "it never came to its end: %s", out)
	}
	summary := crowd.after(20).disperse()
	require.Positive(t, summary.Failed)
	assert.Contains(t, summary.Failures[0].What, "value_2026_1")
}

func TestContractUnderTheOldReleaseFailsItsRequests(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync")
	old, _ := w.serve(a)
	recent, _ := w.serve(b)
	crowd := gather(t, old, recent)
	w.must(b, "expand", "migrate")
	crowd.after(50)
	w.must(b, "contract")
	summary := crowd.after(20).disperse()
	require.Positive(t, summary.Failed)
}

func TestOnePassInTheMiddleOfAnUpgradeLeavesTriggersThatBreakTheNewRelease(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync")
	w.must(b, "expand", "sync")
	recent, _ := w.serve(b)
	answer := answers(t, http.StatusInternalServerError, http.MethodPost, recent+"/v2/images", `{"name":"x"}`)
	assert.Contains(t, answer, "value_2026_1")
}

func TestAnUpgradeFollowsTheOneBefore(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync")
	old, _ := w.serve(a)
	first := create(t, old, "first")
	for _, release := range []string{"2026.2", "2027.1"} {
		w.must(release, "expand", "migrate", "contract", "sync", "load_metadefs")
	}
	last, _ := w.serve("2027.1")
	found := decode(t, answers(t, http.StatusOK, http.MethodGet, last+"/v2/images/"+first, ""))
	assert.Equal(t, "value of first", found["value"])
	assert.True(t, w.verify().Good())
}

func TestASkippedReleaseCannotBeMigrated(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync")
	old, _ := w.serve(a)
	create(t, old, "first")
	w.must("2027.1", "expand", "migrate")
	code, out := w.manage("2027.1", "contract")
	assert.Equal(t, 1, code)
	assert.Contains(t, out, "1 rows must be migrated first", "data migrations are those of the running release alone")
}
