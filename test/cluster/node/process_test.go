package node

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func sleeper(t *testing.T) (Process, *exec.Cmd) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	p, err := Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return p, cmd
}

func TestAProcessIsItselfAndIsEnded(t *testing.T) {
	p, cmd := sleeper(t)
	if !p.Alive() {
		t.Fatal("a running process is not alive")
	}
	if err := p.End(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it ended by itself, not by SIGKILL")
	}
	if p.Alive() {
		t.Error("an ended process is alive")
	}
	if err := p.End(time.Second); err != nil {
		t.Errorf("ending it again: %v", err)
	}
}

func TestAReusedNumberIsNeverSignalled(t *testing.T) {
	p, _ := sleeper(t)
	for what, other := range map[string]Process{
		"started at another time": {PID: p.PID, Started: p.Started + "0", Boot: p.Boot},
		"of another boot":         {PID: p.PID, Started: p.Started, Boot: "another"},
	} {
		if other.Alive() {
			t.Errorf("a process %s counts as alive", what)
		}
		if err := other.End(time.Second); err != nil {
			t.Errorf("ending a process %s: %v", what, err)
		}
	}
	if !p.Alive() {
		t.Error("the bystander was killed")
	}
}

func TestNoRecordIsNoProcess(t *testing.T) {
	for _, p := range []Process{{}, {PID: 1}, {PID: -1}} {
		if p.Alive() {
			t.Errorf("%+v counts as alive", p)
		}
		if err := p.End(time.Second); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func TestStatIsReadBehindTheCommandsName(t *testing.T) {
	fields := " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20"
	for _, name := range []string{"(sleep)", "(a b) c)", "(()"} {
		started, state, err := parseStat("7 " + name + fields)
		if err != nil || started != "4242" || state != "S" {
			t.Errorf("%s: started %q state %q err %v", name, started, state, err)
		}
	}
	for _, bad := range []string{"", "7 (x", "7 (x) S 1", "7 (x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 soon"} {
		if _, _, err := parseStat(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestAnEndedProcessCannotBeIdentified(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := Identify(cmd.Process.Pid); err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a zombie counts as alive")
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := Identify(os.Getpid()); err != nil {
		t.Error(err)
	}
}
