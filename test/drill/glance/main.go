// Command glance is the one program of a drill. What it is depends on the name that it is called by:
//
//	glance-manage [--config-dir DIR]… db expand|migrate|contract|sync|check|version|load_metadefs
//	glance-api, uwsgi [--config-dir DIR]… [--http-socket [HOST]:PORT]
//	drill [--config-dir DIR]… verify|go WORD
//
// Which release it is lies in the image: DRILL_RELEASE and DRILL_TAG in its environment.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/c5c3/openstack-upgrade/test/drill/schema"
	"github.com/c5c3/openstack-upgrade/test/drill/settings"
)

// Exit codes beside those of db check.
const (
	failed     = 1
	misused    = 2
	killed     = 128 + int(syscall.SIGKILL)
	terminated = 128 + int(syscall.SIGTERM)
)

// program is the image that runs.
type program struct {
	settings.Program
	release *schema.Release
	how     settings.Settings
	out     io.Writer
	// term is told of SIGTERM, unless that is ignored.
	term chan os.Signal
}

func main() {
	p := &program{out: os.Stdout, term: make(chan os.Signal, 1)}
	signal.Notify(p.term, syscall.SIGTERM, os.Interrupt)
	code, err := p.run(filepath.Base(os.Args[0]), os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "ERROR:", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	os.Exit(code)
}

func (p *program) run(name string, args []string) (code int, err error) {
	line, err := understand(args)
	if err != nil {
		return misused, err
	}
	p.Program = settings.Program{Release: os.Getenv("DRILL_RELEASE"), Tag: os.Getenv("DRILL_TAG")}
	if p.release, err = schema.Find(p.Release); err != nil {
		return misused, fmt.Errorf("DRILL_RELEASE: %w", err)
	}
	if len(line.dirs)+len(line.files) == 0 {
		line.dirs = usualDirs()
	}
	if p.how, err = settings.Read(p.Program, os.Environ(), line.dirs, line.files); err != nil {
		return failed, err
	}
	switch name {
	case "glance-manage":
		return p.manage(line.words)
	case "glance-api", "uwsgi":
		return p.serve(line)
	case "drill":
		return p.inspect(line.words)
	}
	return misused, fmt.Errorf("called by the name %s; call it glance-manage, glance-api, uwsgi or drill", name)
}

// line is a command line. Options that the real programs have and a drill does not need are passed over.
type line struct {
	dirs, files, words []string
	socket             string
}

func understand(args []string) (line, error) {
	l := line{socket: ":9292"}
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		var into func(string)
		switch name {
		case "--config-dir":
			into = func(v string) { l.dirs = append(l.dirs, v) }
		case "--config-file":
			into = func(v string) { l.files = append(l.files, v) }
		case "--http-socket":
			into = func(v string) { l.socket = v }
		case "--processes", "--threads", "--hook-master-start", "--module", "--listen", "--path":
			into = func(string) {}
		default:
			if !strings.HasPrefix(name, "-") {
				l.words = append(l.words, args[i])
			}
			continue
		}
		if !joined {
			if i++; i == len(args) {
				return l, errors.New(name + " needs a value")
			}
			value = args[i]
		}
		into(value)
	}
	return l, nil
}

// usualDirs are where a program looks that is told nothing.
func usualDirs() (found []string) {
	for _, dir := range []string{"/etc/glance/glance.conf.d", "/etc/glance/glance-api.conf.d"} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			found = append(found, dir)
		}
	}
	return found
}

// log says a line of progress.
func (p *program) log(format string, args ...any) {
	fmt.Fprintf(p.out, "%s drill %s: %s\n", time.Now().UTC().Format("15:04:05.000"), p.Tag, fmt.Sprintf(format, args...))
}
