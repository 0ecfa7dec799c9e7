package main

import (
	"context"
	"io"
	"strings"
	"testing"
)

func TestBadArgumentsAreAnsweredInOneLine(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for line, want := range map[string]string{
		"":                          "say what to do",
		"start":                     `unknown command "start"`,
		"up dev":                    "wants 0 argument(s)",
		"up --with vault":           "use cert-manager or none",
		"up --name ../x":            "cluster name",
		"up --fast":                 "flag provided but not defined",
		"down --name A":             "lower-case",
		"load":                      "wants 1 argument(s), got 0",
		"load a.tar b.tar":          "wants 1 argument(s), got 2",
		"load a.tar":                "not up",
		"exec":                      "which command to run",
		"exec -- true":              "not up",
		"status":                    "not up",
		"kubeconfig":                "not up",
		"binaries --only kubernete": `unknown binary "kubernete"`,
		"node-init":                 "started by up",
		"node-supervise a b c":      "started by up",
	} {
		err := run(context.Background(), strings.Fields(line), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: want %q, got %v", line, want, err)
		}
	}
}

func TestHelpNamesEveryCommand(t *testing.T) {
	var out strings.Builder
	if err := run(context.Background(), []string{"--help"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"up", "down", "status", "load", "kubeconfig", "exec", "binaries"} {
		if !strings.Contains(out.String(), "\n  "+command+" ") {
			t.Errorf("help does not name %s", command)
		}
	}
}
