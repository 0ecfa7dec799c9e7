package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestStateSurvivesBeingWrittenAndRead(t *testing.T) {
	l := Layout{Name: "dev", State: t.TempDir()}
	if _, found, err := l.ReadState(); err != nil || found {
		t.Fatalf("found %v, err %v where nothing was written", found, err)
	}
	want := State{Supervisor: Process{PID: 5, Started: "1", Boot: "b"}, Port: 4711, Since: now, Ready: true}
	if err := l.WriteState(want); err != nil {
		t.Fatal(err)
	}
	got, found, err := l.ReadState()
	if err != nil || !found || got != want {
		t.Errorf("got %+v, %v, %v", got, found, err)
	}
	if got.Running() {
		t.Error("processes that never were count as running")
	}
}

func TestDamagedStateSaysWhatToDo(t *testing.T) {
	l := Layout{Name: "dev", State: t.TempDir()}
	if err := os.WriteFile(l.path("state.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := l.ReadState()
	if err == nil || !strings.Contains(err.Error(), "down") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}

func TestCarriersAreFoundByTheirProgramWhenTheRecordIsLost(t *testing.T) {
	l := Layout{Name: "dev", State: t.TempDir()}
	sleep, err := os.ReadFile("/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.Self(), sleep, 0o755); err != nil {
		t.Fatal(err)
	}
	process, err := os.StartProcess(l.Self(), []string{"cluster", "60"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Kill(); _, _ = process.Wait() })
	var carriers []Process
	for deadline := time.Now().Add(5 * time.Second); len(carriers) == 0 && time.Now().Before(deadline); {
		if carriers, err = l.Carriers(); err != nil {
			t.Fatal(err)
		}
	}
	if len(carriers) != 1 || carriers[0].PID != process.Pid {
		t.Errorf("found %+v, want %d alone", carriers, process.Pid)
	}
}

func TestAProcessHasItsNumbersOutsideAndInside(t *testing.T) {
	outside, inside, ok := parseNSpid("Name:\tetcd\nNSpid:\t4242\t17\nPPid:\t1\n")
	if !ok || outside != 4242 || inside != 17 {
		t.Errorf("got %d %d %v", outside, inside, ok)
	}
	for _, bad := range []string{"", "NSpid:\t12\n", "NSpid:\ta\tb\n"} {
		if _, _, ok := parseNSpid(bad); ok {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestCgroupsAreRemovedFromTheBottom(t *testing.T) {
	root := filepath.Join(t.TempDir(), "ours")
	if err := os.MkdirAll(filepath.Join(root, "kubepods", "burstable", "pod1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := removeTree(root, now); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(root); !os.IsNotExist(err) {
		t.Errorf("still there: %v", err)
	}
	if err := removeTree(root, now); err != nil {
		t.Errorf("removing nothing: %v", err)
	}
}

func TestACgroupThatStaysIsSaid(t *testing.T) {
	root := filepath.Join(t.TempDir(), "ours")
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "held"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := removeTree(root, now); err == nil || !strings.Contains(err.Error(), root) {
		t.Errorf("got %v", err)
	}
}

func TestHierarchiesAreFoundInBothVersions(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	for _, dir := range []string{"cpu", "memory"} {
		if err := os.Mkdir(filepath.Join(one, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(two, "cgroup.controllers"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := cgroupParents(one); err != nil || len(got) != 2 {
		t.Errorf("version 1: %v %v", got, err)
	}
	if got, err := cgroupParents(two); err != nil || len(got) != 1 || got[0] != two {
		t.Errorf("version 2: %v %v", got, err)
	}
}

func TestTailGivesTheLastLinesThatSaySomething(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("one\n\ntwo\n  three \n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := Tail(path, 2); got != "two\nthree" {
		t.Errorf("got %q", got)
	}
	if got := Tail(filepath.Join(t.TempDir(), "none"), 2); !strings.HasPrefix(got, "no log") {
		t.Errorf("got %q", got)
	}
}
