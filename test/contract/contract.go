// Package contract lists what this product relies on in the tools of OpenStack: the exit codes of glance-manage and
// keystone-manage, what they do when they are repeated, and what is left of the old release on a schema that the new
// one has expanded. `make e2e` tries each on the real tools against a real MariaDB; docs/openstack-facts.md has the same table.
package contract

import (
	_ "embed"
	"fmt"
	"strings"
)

// Release is one of the two that take part in an upgrade.
type Release int

// The two.
const (
	Old Release = iota
	New
)

// Trial is one command in one situation, and the exit code that is relied on.
type Trial struct {
	// On says whose program runs.
	On Release
	// Command as it is typed. API is not typed: the API itself is asked.
	Command   string
	Situation string
	Exit      int
	// Before is SQL that makes the situation, where the trials before do not.
	Before string
	// Env is set for this trial alone.
	Env []string
}

// API is the command of a trial in which the API of the image answers requests.
const API = "the API, asked in its own process"

// Story is a number of trials in order, on a database that is empty at first.
type Story struct {
	Name    string
	Service string
	Trials  []Trial
}

// Tool is the name that rows go by.
func (s Story) Tool() string { return s.Service + "-manage" }

var (
	//go:embed ask_glance.py
	askGlance string
	//go:embed ask_keystone.py
	askKeystone string
)

// Words are what is executed for a trial.
func (s Story) Words(t Trial) []string {
	if t.Command != API {
		return strings.Fields(t.Command)
	}
	if s.Service == "glance" {
		return []string{"python3", "-c", askGlance}
	}
	return []string{"python3", "-c", askKeystone}
}

// Env is what every command of a service needs, beside the database. There is no Keystone beside this Glance, so
// everyone may do everything.
var Env = map[string][]string{
	"glance":   {"OS_OSLO_POLICY__ENFORCE_NEW_DEFAULTS=false", "OS_OSLO_POLICY__ENFORCE_SCOPE=false"},
	"keystone": {"OS_IDENTITY__PASSWORD_HASH_ROUNDS=4"},
}

// Versions name the programs, by service and release.
var Versions = map[string][2]string{
	"glance":   {"25.1 (bookworm)", "30.0 (trixie)"},
	"keystone": {"22.0 (bookworm)", "27.0 (trixie)"},
}

// Row is a trial as one row of a Markdown table.
func (s Story) Row(t Trial) string {
	command := "`" + strings.TrimPrefix(t.Command, s.Tool()+" ") + "`"
	if t.Command == API {
		command = t.Command
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %d |", s.Service, Versions[s.Service][t.On], command, t.Situation, t.Exit)
}
