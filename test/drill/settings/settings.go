// Package settings reads what a drill is told to do wrong. It looks where Glance looks: at the *.conf files of the
// configuration directories in alphabetical order, and at OS_<SECTION>__<OPTION> in the environment ahead of them.
//
// Options lie in the section [drill]. Old pods, new pods and Jobs are given the same files, so a section may be meant
// for one release, [drill:2026.2], or for one image tag, [drill:2026.2-p1]; the closer one wins.
package settings

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Program says which image this is.
type Program struct{ Release, Tag string }

// Settings is everything that the program is told.
type Settings struct {
	// Connection is an SQLAlchemy URL.
	Connection string
	Tasks      map[string]Task
	API        API
	// RowDelay is how long the migration of one row takes.
	RowDelay time.Duration
	// RefuseTriggers makes expand fail the way a server does that does not trust its users with triggers.
	RefuseTriggers bool
}

// Moment is when a task waits to be let go.
type Moment string

// Moments of a task.
const (
	Never  Moment = ""
	Before Moment = "before"
	After  Moment = "after"
)

// Task is how one command of glance-manage behaves.
type Task struct {
	// Delay comes before the work and Linger after it; Hold waits for a word at a moment, Hang for nothing.
	Delay, Linger time.Duration
	Hold          Moment
	Hang          bool
	// Fail ends the command with this message and Exit with this code before it has done anything; FailFirst does so
	// for that many runs.
	Fail      string
	Exit      int
	FailFirst int
	// DieAfter kills the process after that many statements.
	DieAfter      int
	IgnoreSigterm bool
}

// API is how the server behaves.
type API struct {
	// StartDelay passes before it listens, RequestDelay before each answer of the Image API.
	StartDelay, RequestDelay time.Duration
	// Fail ends it with this message at once, or after CrashAfter.
	Fail       string
	CrashAfter time.Duration
	Unready    bool
	// Drain cuts open requests that long after SIGTERM, never if it is zero; Linger keeps the process once they ended.
	Drain, Linger time.Duration
	IgnoreSigterm bool
}

// TaskNames are the commands of glance-manage that can be told to misbehave.
var TaskNames = []string{"expand", "migrate", "contract", "sync", "load_metadefs"}

// Read reads the files and the environment, given as KEY=value.
func Read(program Program, environ, dirs, files []string) (Settings, error) {
	for _, dir := range dirs {
		if _, err := os.ReadDir(dir); err != nil {
			return Settings{}, fmt.Errorf("read the configuration: %w; give a directory with --config-dir", err)
		}
		found, err := filepath.Glob(filepath.Join(dir, "*.conf"))
		if err != nil {
			return Settings{}, fmt.Errorf("read the configuration: %w", err)
		}
		files = append(files, found...)
	}
	sections := map[string]map[string]string{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return Settings{}, fmt.Errorf("read the configuration: %w", err)
		}
		if err := parse(string(raw), sections); err != nil {
			return Settings{}, fmt.Errorf("read %s: %w", file, err)
		}
	}
	options := map[string]string{}
	for _, section := range []string{"drill", "drill:" + program.Release, "drill:" + program.Tag} {
		maps.Copy(options, sections[section])
	}
	connection := sections["database"]["connection"]
	for _, pair := range environ {
		key, value, _ := strings.Cut(pair, "=")
		if option, ours := strings.CutPrefix(key, "OS_DRILL__"); ours {
			options[strings.ToLower(option)] = value
		}
		if key == "OS_DATABASE__CONNECTION" {
			connection = value
		}
	}
	s, err := understand(options)
	s.Connection = connection
	return s, err
}

func parse(text string, into map[string]map[string]string) error {
	section, option := "DEFAULT", ""
	for number, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, ";"):
		case option != "" && (line[0] == ' ' || line[0] == '\t'):
			into[section][option] += "\n" + trimmed
		case strings.HasPrefix(trimmed, "[") && strings.HasSuffix(trimmed, "]"):
			section, option = strings.TrimSpace(trimmed[1:len(trimmed)-1]), ""
		default:
			key, value, found := strings.Cut(trimmed, "=")
			if option = strings.TrimSpace(key); !found || option == "" {
				return fmt.Errorf("line %d is neither a [section] nor an option = value: %.60q", number+1, trimmed)
			}
			if into[section] == nil {
				into[section] = map[string]string{}
			}
			into[section][option] = strings.TrimSpace(value)
		}
	}
	return nil
}

// Options are the names of all options of the section [drill].
func Options() []string {
	return slices.Sorted(maps.Keys(newDraft().meanings()))
}
