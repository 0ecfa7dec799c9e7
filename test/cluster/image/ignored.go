package image

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// ignored is a .dockerignore: the last line that matches a path, or a directory above it, says whether it is left out.
type ignored []ignoreLine

type ignoreLine struct {
	pattern string
	match   *regexp.Regexp
	takesIn bool
}

func readIgnored(contextDir string) (ignored, error) {
	text, err := os.ReadFile(filepath.Join(contextDir, ".dockerignore"))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseIgnored(string(text))
}

func parseIgnored(text string) (ignored, error) {
	var lines ignored
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, takesIn := strings.CutPrefix(line, "!")
		pattern = strings.TrimPrefix(path.Clean("/"+strings.TrimSpace(pattern)), "/")
		if strings.ContainsAny(pattern, `[\`) {
			return nil, fmt.Errorf(".dockerignore: %q: write it with *, ** and ? alone, so that a change of the inputs is seen", line)
		}
		lines = append(lines, ignoreLine{pattern, asRegexp(pattern), takesIn})
	}
	return lines, nil
}

// asRegexp matches the path that the pattern names and all below it.
func asRegexp(pattern string) *regexp.Regexp {
	said := regexp.QuoteMeta(pattern)
	for _, r := range []struct{ from, to string }{
		{`\*\*/`, `(|.*/)`}, {`\*\*`, "\x00"}, {`\*`, `[^/]*`}, {"\x00", `.*`}, {`\?`, `[^/]`},
	} {
		said = strings.ReplaceAll(said, r.from, r.to)
	}
	return regexp.MustCompile("^" + said + "(/.*)?$")
}

func (i ignored) leavesOut(name string) bool {
	out := false
	for _, line := range i {
		if line.match.MatchString(name) {
			out = !line.takesIn
		}
	}
	return out
}

// mayTakeIn tells whether something below dir could be taken in again.
func (i ignored) mayTakeIn(dir string) bool {
	for _, line := range i {
		if line.takesIn && (strings.ContainsAny(line.pattern, "*?") || strings.HasPrefix(line.pattern, dir+"/")) {
			return true
		}
	}
	return false
}
