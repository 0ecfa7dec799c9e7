package ledger

import (
	"errors"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestWhatFailsIsCountedAndTheFirstOnesAreKept(t *testing.T) {
	l := Open(noon)
	for i := range 100 {
		var err error
		if i%4 == 0 {
			err = errors.New("connection refused")
		}
		l.Enter(noon, "get", time.Duration(i+1)*time.Millisecond, err)
	}
	s := l.Close(noon.Add(10*time.Second), 7)
	if s.Sent != 100 || s.Failed != 25 || s.Good() {
		t.Errorf("%d sent, %d failed, good %t; want 100, 25, false", s.Sent, s.Failed, s.Good())
	}
	if len(s.Failures) != keptFailures || s.Failures[0].What != "connection refused" {
		t.Errorf("kept %v", s.Failures)
	}
	if s.Total.P50 != 51 || s.Total.P99 != 100 || s.Total.Max != 100 {
		t.Errorf("latencies are %+v", s.Total)
	}
	if s.String() != "requests: 100 sent, 25 failed" {
		t.Errorf("it reads %q", s)
	}
}

func TestALostRowIsNoSuccess(t *testing.T) {
	l := Open(noon)
	l.Enter(noon, "get", time.Millisecond, nil)
	l.Lose(noon, "image 1 is gone")
	if s := l.Close(noon, 1); s.Good() || s.Failed != 0 || s.Lost != 1 {
		t.Errorf("%+v counts as good", s)
	}
}

func TestASecondHoldsItsOwnLatenciesAndTheCountsSoFar(t *testing.T) {
	l := Open(noon)
	l.Enter(noon, "get", 90*time.Millisecond, nil)
	if s := l.Second(noon.Add(time.Second)); s.Sent != 1 || s.Max != 90 || s.Second != 1 {
		t.Errorf("first second: %+v", s)
	}
	l.Enter(noon, "get", 5*time.Millisecond, nil)
	if s := l.Second(noon.Add(2 * time.Second)); s.Sent != 2 || s.Max != 5 {
		t.Errorf("second second: %+v", s)
	}
}
