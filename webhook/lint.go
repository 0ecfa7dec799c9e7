package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"

	"github.com/c5c3/openstack-upgrade/shared/image"
	"github.com/c5c3/openstack-upgrade/shared/release"
	"github.com/c5c3/openstack-upgrade/webhook/lint"
)

const lintUsage = `webhook lint judges manifests as the webhook would, without a cluster.

Usage:
  webhook lint [flags] FILE|DIRECTORY|- ...

A directory is searched for *.yaml, *.yml and *.json, hidden files and symlinks to directories left out; - is what is piped in. A place is told as
FILE:DOCUMENT, and [ITEM] within a List. The exit code is 0 when everything would be admitted, 1 when something would
be refused, 2 when something cannot be read.

Flags:
`

// Forms in which lint reports.
const (
	asText = "text"
	asJSON = "json"
)

// lintOptions are the flags and arguments of lint, checked.
type lintOptions struct {
	lint.Options
	output string
	paths  []string
}

func parseLint(args []string, out io.Writer) (lintOptions, error) {
	var o lintOptions
	var runs string
	flags := pflag.NewFlagSet("webhook lint", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Usage = func() { _, _ = fmt.Fprint(out, lintUsage, flags.FlagUsages()) }
	flags.StringVar(&o.Installed, "installed", "", "judge as the edit of objects that are at rest at this release, not as new ones")
	flags.StringVar(&runs, "installed-image", "", "image that they run, REPOSITORY:TAG or REPOSITORY@DIGEST; unset: the manifest's repository with that release as the tag")
	flags.StringVarP(&o.Namespace, "namespace", "n", "default", "namespace of objects that name none")
	flags.StringVarP(&o.output, "output", "o", asText, "form of the report: text, json")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.paths = flags.Args()
	switch {
	case len(o.paths) == 0:
		return o, errors.New("name a file, a directory, or - for what is piped in; webhook lint --help tells more")
	case o.output != asText && o.output != asJSON:
		return o, fmt.Errorf("--output %q: is neither text nor json", o.output)
	case o.Namespace == "":
		return o, errors.New(`--namespace "": name one`)
	case runs != "" && o.Installed == "":
		return o, errors.New("--installed-image: say with --installed which release it is")
	}
	if twice := slices.Index(o.paths, lint.Stdin); twice >= 0 && slices.Contains(o.paths[twice+1:], lint.Stdin) {
		return o, errors.New("- is given twice: what is piped in can be read once")
	}
	installed, named := image.ReleaseOfTag(o.Installed)
	if o.Installed != "" && !named {
		_, err := release.Parse(o.Installed)
		return o, fmt.Errorf("--installed: %w", err)
	}
	if runs != "" {
		var err error
		if o.InstalledImage, err = image.Parse(runs); err != nil {
			return o, fmt.Errorf("--installed-image: %w", err)
		}
		if tagged, ok := o.InstalledImage.Release(); ok && tagged != installed {
			return o, fmt.Errorf("--installed-image %q: its tag names %s, and --installed is %s", runs, tagged, o.Installed)
		}
		if o.InstalledImage.Tag == "" && o.InstalledImage.Digest == "" {
			return o, fmt.Errorf("--installed-image %q: name its tag or digest", runs)
		}
	}
	return o, nil
}

func runLint(args []string, in io.Reader, out, complaints io.Writer) int {
	o, err := parseLint(args, out)
	if errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	var linter *lint.Linter
	if err == nil {
		linter, err = lint.New(o.Options)
	}
	if err != nil {
		_, _ = fmt.Fprintf(complaints, "webhook lint: %v\n", err)
		return exitUsage
	}
	report := linter.Files(o.paths, in)
	write := report.Text
	if o.output == asJSON {
		write = report.JSON
	}
	if err := write(out); err != nil {
		_, _ = fmt.Fprintf(complaints, "webhook lint: %v\n", err)
		return exitUsage
	}
	switch {
	case len(report.Unreadable) > 0:
		return exitUsage
	case report.Refused() > 0:
		return exitFailed
	}
	return 0
}
