package main

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestACommandWaitsForAWordBeforeOrAfterItsWork(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync")
	before := w.start(w.told("expand_hold = before").program(b, "glance-manage", "db", "expand"))
	w.says(before, "for the word expand")
	assert.Equal(t, "2026_1_contract01", w.heads())
	code, out := w.end(w.program(b, "drill", "go", "expand"))
	require.Zero(t, code, out)
	assert.Zero(t, w.exits(before))

	w.must(b, "migrate")
	after := w.start(w.told("contract_hold = after").program(b, "glance-manage", "db", "contract"))
	w.says(after, "for the word contract")
	assert.Equal(t, "2026_2_contract01", w.heads(), "the work is done, the command is not")
	w.sql("INSERT INTO drill_go VALUES ('contract')")
	assert.Zero(t, w.exits(after))
	assert.Zero(t, w.verify().Overlapping)
}

func TestACommandThatHangsEndsOnSigtermUnlessItIgnoresIt(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync")
	hanging := w.start(w.told("expand_hang = true").program(b, "glance-manage", "db", "expand"))
	w.says(hanging, "hang")
	require.NoError(t, hanging.cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, 143, w.exits(hanging))
	assert.Contains(t, hanging.last.String(), "told to end in the middle of db expand")

	deaf := w.start(w.told("expand_hang = true", "ignore_sigterm = api, db-expand").program(b, "glance-manage", "db", "expand"))
	w.says(deaf, "hang")
	require.NoError(t, deaf.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-deaf.ended:
		t.Error("it ended")
	case <-time.After(300 * time.Millisecond):
	}
}

func TestACommandFailsAsItIsTold(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync")
	code, out := w.told("expand_fail = the moon is full", "expand_exit = 7").manage(b, "expand")
	assert.Equal(t, 7, code)
	assert.Contains(t, out, "ERROR: the moon is full\n")
	code, _ = w.told("sync_fail = no").manage(b, "expand")
	assert.Zero(t, code, "what is meant for one command leaves others alone")

	twice := w.told("migrate_fail_first = 2", "migrate_fail = not yet")
	for _, want := range []int{1, 1, 0} {
		code, out = twice.manage(b, "migrate")
		assert.Equal(t, want, code, out)
	}
}

func TestWhatIsMeantForOneReleaseOrTagLeavesOthersAlone(t *testing.T) {
	w := newWorld(t).told("[drill:2026.2]", "sync_fail = for the release", "[drill:2026.2-p1]", "sync_fail = for the patch")
	w.must(a, "sync")
	_, out := w.manage(b, "sync")
	assert.Contains(t, out, "ERROR: for the release")
	_, out = w.manage(b+"-p1", "sync")
	assert.Contains(t, out, "ERROR: for the patch")
	w.told("[drill:2026.2]", "expand_fail = broken", "[drill:2026.2-p1]", "expand_fail =").must(b+"-p1", "expand")
}

func TestDelaysAreKept(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync")
	address, _ := w.serve(a)
	for range 5 {
		create(t, address, "row")
	}
	began := time.Now()
	w.told("expand_delay = 200ms", "expand_linger = 100ms").must(b, "expand")
	assert.Greater(t, time.Since(began), 300*time.Millisecond)
	began = time.Now()
	w.told("migrate_row_delay = 60ms").must(b, "migrate")
	assert.Greater(t, time.Since(began), 300*time.Millisecond)
}

func TestCommandsThatWorkAtOnceAreSeen(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync")
	held := w.told("expand_hold = before")
	first := w.start(held.program(b, "glance-manage", "db", "expand"))
	w.says(first, "for the word")
	assert.Zero(t, w.verify().Overlapping)
	second := w.start(held.program(b, "glance-manage", "db", "expand"))
	w.says(second, "another command is at work")
	assert.Equal(t, 1, w.verify().Overlapping)
	require.NoError(t, first.cmd.Process.Kill())
	w.exits(first)
	third := w.start(held.program(b, "glance-manage", "db", "expand"))
	w.says(third, "another command is at work")
	report := w.verify()
	assert.Equal(t, 2, report.Overlapping)
	assert.False(t, report.Good())
	code, out := w.end(w.program(b, "drill", "verify"))
	assert.Equal(t, 1, code)
	assert.Contains(t, out, "runs 4, overlapping 2")
}

func TestVerifyFindsEveryKindOfWrongRow(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync")
	address, _ := w.serve(a)
	var ids []string
	for range 6 {
		ids = append(ids, create(t, address, "row"))
	}
	w.must(b, "expand", "migrate")
	code, out := w.end(w.program(b, "drill", "verify"))
	require.Zero(t, code, out)
	require.Contains(t, out, "rows checked 6, wrong 0, unmigrated 0, through value_2026_1 and value_2026_2")

	for _, trigger := range []string{"images_insert_2026_2", "images_update_2026_2"} {
		w.sql("DROP TRIGGER " + trigger)
	}
	w.sql("UPDATE images SET value_2026_2 = value_2026_1 WHERE id = ?", ids[0])
	w.sql("UPDATE images SET value_2026_2 = '2026.2:other' WHERE id = ?", ids[1])
	w.sql("UPDATE images SET value_2026_1 = NULL WHERE id = ?", ids[2])
	w.sql("UPDATE images SET name = 'other' WHERE id = ?", ids[3])
	w.sql("UPDATE images SET value_2026_2 = NULL WHERE id = ?", ids[4])
	report := w.verify()
	assert.Equal(t, 4, report.Wrong, report.Faults)
	assert.Equal(t, 1, report.Unmigrated, "the old column has it still")
	assert.Equal(t, 6, report.Checked)
	code, _ = w.end(w.program(b, "drill", "verify"))
	assert.Equal(t, 1, code)
}
