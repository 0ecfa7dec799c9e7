package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
)

// Names that sort before those that people give to files of their own, so that
// those are read later and win. What the spec asks for wins over sessionFile.
const (
	sessionFile = "00-api-sessions.conf"
	configFile  = "00-openstack-upgrade.conf"
)

// apiSessions bounds for how long an API can keep a schema change waiting.
// A statement that changes a table waits until the last transaction that has
// read it is over, and every later query of that table waits behind it. One
// transaction that a program forgot to end thus stops expand and the whole API
// with it. MariaDB ends it after ten seconds: a readiness probe bears no more,
// and less would end those of requests that a busy node holds up. MySQL cannot
// and reads a comment, but queries that wait give up before its default of a
// day, and what runs on collects what was forgotten.
//
// Jobs get none of this: a schema change that is cut off is not taken back.
const apiSessions = `[database]
connection_parameters = init_command=SET+lock_wait_timeout=30/*M!100300+,idle_transaction_timeout=10*/

`

// files are the configuration files of a component by name.
func (w Workload) files(component string) map[string]string {
	files := map[string]string{configFile: w.Config}
	if component == ComponentAPI {
		files[sessionFile] = apiSessions
	}
	return files
}

// INI writes sections and options in alphabetical order. A value of several
// lines is continued the way oslo.config reads it, which knows no empty ones.
func INI(sections map[string]v1alpha1.ConfigSection) string {
	var text strings.Builder
	for _, section := range slices.Sorted(maps.Keys(sections)) {
		fmt.Fprintf(&text, "[%s]\n", section)
		for _, option := range slices.Sorted(maps.Keys(sections[section])) {
			var lines []string
			for line := range strings.Lines(sections[section][option]) {
				if line = strings.TrimSpace(line); line != "" {
					lines = append(lines, line)
				}
			}
			fmt.Fprintf(&text, "%s = %s\n", option, strings.Join(lines, "\n    "))
		}
		text.WriteString("\n")
	}
	return text.String()
}
