package node

import (
	"os"
	"strings"
)

// Tail returns the last n lines of a log that say something.
func Tail(path string, n int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return "no log: " + err.Error()
	}
	var lines []string
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return "nothing logged"
	}
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
