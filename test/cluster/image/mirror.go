package image

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var suites = []string{
	"bullseye", "bookworm", "trixie", "forky", "sid", "oldoldstable", "oldstable", "stable", "testing", "unstable",
}

// machineMirror is where this machine takes Debian's packages from, or "" when its sources do not say.
func machineMirror() string {
	files := []string{"/etc/apt/sources.list"}
	for _, pattern := range []string{"*.sources", "*.list"} {
		more, _ := filepath.Glob(filepath.Join("/etc/apt/sources.list.d", pattern)) // the pattern is well-formed
		files = append(files, more...)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if found := mirrorIn(string(text)); found != "" {
			return found
		}
	}
	return ""
}

// mirrorIn finds the first address that serves a whole Debian suite, in either of the formats of apt's sources.
func mirrorIn(sources string) string {
	for _, stanza := range regexp.MustCompile(`\n\s*\n`).Split(withoutComments(sources), -1) {
		if found := mirrorInFields(stanza); found != "" {
			return found
		}
		for _, line := range strings.Split(stanza, "\n") {
			if found := mirrorInLine(line); found != "" {
				return found
			}
		}
	}
	return ""
}

func withoutComments(text string) string {
	return regexp.MustCompile(`(?m)^\s*#.*\n?`).ReplaceAllString(strings.ReplaceAll(text, "\r\n", "\n"), "")
}

func mirrorInFields(stanza string) string {
	field := func(name string) []string {
		found := regexp.MustCompile(`(?mi)^` + name + `:((?:.*)(?:\n[ \t].*)*)`).FindStringSubmatch(stanza)
		if found == nil {
			return nil
		}
		return strings.Fields(found[1])
	}
	if !slices.Contains(field("Types"), "deb") || slices.Contains(field("Enabled"), "no") {
		return ""
	}
	return usable(field("URIs"), field("Suites"))
}

var oneLine = regexp.MustCompile(`^\s*deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+(\S+)\s+\S`)

func mirrorInLine(line string) string {
	found := oneLine.FindStringSubmatch(line)
	if found == nil {
		return ""
	}
	return usable(found[1:2], found[2:3])
}

func usable(addresses, served []string) string {
	if !slices.ContainsFunc(served, func(s string) bool { return slices.Contains(suites, s) }) {
		return ""
	}
	for _, a := range addresses {
		if strings.HasPrefix(a, "http://") || strings.HasPrefix(a, "https://") || strings.HasPrefix(a, "file:") {
			return a
		}
	}
	return ""
}

var passedOn = regexp.MustCompile(`^Acquire::(Check-Valid-Until|Check-Date|Retries|https?::(Proxy|Timeout|CaInfo|Verify-Peer)(::.*)?) "`)

// aptSettings picks from `apt-config dump` what makes this machine's mirror reachable and its Release file valid:
// another apt, started for another root, knows none of it.
func aptSettings(dump string) []string {
	var settings []string
	for _, line := range strings.Split(dump, "\n") {
		if line = strings.TrimSpace(line); passedOn.MatchString(line) {
			settings = append(settings, strings.TrimSuffix(line, ";"))
		}
	}
	return settings
}
