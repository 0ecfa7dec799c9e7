package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/c5c3/openstack-upgrade/test/stage"
)

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// headline opens a section with a few words on what will be seen.
func (d *demo) headline(title string, words ...string) {
	d.act++
	d.say("\n== %d. %s", d.act, title)
	for _, line := range words {
		d.say("   %s", line)
	}
	d.say("")
}

// block prints a text of several lines, set off from the rest.
func (d *demo) block(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		d.say("    %s", strings.TrimRight(line, "\n"))
	}
	d.say("")
}

// kubectl shows a command, runs it, and shows what it says.
func (d *demo) kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	d.say("$ %s", stage.CommandLine(args...))
	out, err := d.stage.Kubectl(ctx, stdin, args...)
	if err != nil {
		return out, err
	}
	d.block(out)
	return out, nil
}

func directory(path string) string { return filepath.Dir(path) }
