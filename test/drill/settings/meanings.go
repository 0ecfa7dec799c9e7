package settings

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// meaning puts the value of an option where it belongs.
type meaning func(value string) error

// draft is settings while their options are read.
type draft struct {
	settings Settings
	tasks    map[string]*Task
}

func newDraft() *draft {
	d := &draft{tasks: map[string]*Task{}}
	for _, name := range TaskNames {
		d.tasks[name] = &Task{}
	}
	return d
}

func understand(options map[string]string) (Settings, error) {
	d := newDraft()
	meanings := d.meanings()
	for _, name := range slices.Sorted(maps.Keys(options)) {
		put, known := meanings[name]
		if !known {
			return Settings{}, fmt.Errorf("[drill] has no option %s; it has %s", name, strings.Join(slices.Sorted(maps.Keys(meanings)), ", "))
		}
		if err := put(options[name]); err != nil {
			return Settings{}, fmt.Errorf("option %s of [drill]: %w", name, err)
		}
	}
	d.settings.Tasks = map[string]Task{}
	for name, task := range d.tasks {
		d.settings.Tasks[name] = *task
	}
	return d.settings, nil
}

func (d *draft) meanings() map[string]meaning {
	s := &d.settings
	all := map[string]meaning{
		"migrate_row_delay": duration(&s.RowDelay),
		"refuse_triggers":   boolean(&s.RefuseTriggers),
		"ignore_sigterm":    d.ignoreSigterm,
		"api_start_delay":   duration(&s.API.StartDelay),
		"api_request_delay": duration(&s.API.RequestDelay),
		"api_fail":          text(&s.API.Fail),
		"api_crash_after":   duration(&s.API.CrashAfter),
		"api_unready":       boolean(&s.API.Unready),
		"api_drain":         duration(&s.API.Drain),
		"api_linger":        duration(&s.API.Linger),
	}
	for name, task := range d.tasks {
		all[name+"_delay"] = duration(&task.Delay)
		all[name+"_linger"] = duration(&task.Linger)
		all[name+"_hold"] = task.hold
		all[name+"_hang"] = boolean(&task.Hang)
		all[name+"_fail"] = text(&task.Fail)
		all[name+"_exit"] = number(&task.Exit)
		all[name+"_fail_first"] = number(&task.FailFirst)
	}
	for _, name := range []string{"expand", "contract"} {
		all[name+"_die_after"] = number(&d.tasks[name].DieAfter)
	}
	return all
}

func (t *Task) hold(value string) error {
	switch moment := Moment(value); moment {
	case Before, After:
		t.Hold = moment
		return nil
	case Never:
		return nil
	}
	return fmt.Errorf("%q is neither %s nor %s", value, Before, After)
}

// ignoreSigterm takes a list of tasks, api and all among them; a task may be called as its Job is.
func (d *draft) ignoreSigterm(value string) error {
	for _, name := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' }) {
		name = strings.TrimPrefix(name, "db-")
		task, known := d.tasks[name]
		switch {
		case known:
			task.IgnoreSigterm = true
		case name == "api":
			d.settings.API.IgnoreSigterm = true
		case name == "all":
			d.settings.API.IgnoreSigterm = true
			for _, each := range d.tasks {
				each.IgnoreSigterm = true
			}
		default:
			return fmt.Errorf("%q is none of api, all, %s", name, strings.Join(TaskNames, ", "))
		}
	}
	return nil
}

func duration(into *time.Duration) meaning {
	return func(value string) (err error) {
		if *into, err = time.ParseDuration(value); err != nil || *into < 0 {
			return fmt.Errorf("%q is no duration like 30s", value)
		}
		return nil
	}
}

func number(into *int) meaning {
	return func(value string) (err error) {
		if *into, err = strconv.Atoi(value); err != nil || *into < 0 {
			return fmt.Errorf("%q is no number from 0 on", value)
		}
		return nil
	}
}

func boolean(into *bool) meaning {
	return func(value string) error {
		switch strings.ToLower(value) {
		case "true", "yes", "on", "1":
			*into = true
		case "false", "no", "off", "0", "":
			*into = false
		default:
			return fmt.Errorf("%q is neither true nor false", value)
		}
		return nil
	}
}

func text(into *string) meaning {
	return func(value string) error {
		*into = value
		return nil
	}
}
