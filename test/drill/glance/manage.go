package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/c5c3/openstack-upgrade/test/drill/schema"
	"github.com/c5c3/openstack-upgrade/test/drill/settings"
)

const usage = "usage: glance-manage [--config-dir DIR] db expand|migrate|contract|sync|check|version|load_metadefs"

// ordered is an end with an exit code of its own.
type ordered struct {
	code int
	text string
}

func (o ordered) Error() string { return o.text }

// manage runs one command. Told to end, it ends in the middle of whatever it does: nothing is rolled back, and the
// server may go on with the statement that it has.
func (p *program) manage(words []string) (code int, err error) {
	if len(words) != 2 || words[0] != "db" {
		return misused, errors.New(usage)
	}
	command := words[1]
	how := p.how.Tasks[command]
	if how.IgnoreSigterm {
		signal.Stop(p.term)
		signal.Ignore(syscall.SIGTERM)
	}
	type end struct {
		code int
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		code, err := p.command(context.Background(), command, how)
		ended <- end{code, err}
	}()
	select {
	case e := <-ended:
		return e.code, e.err
	case <-p.term:
		return terminated, fmt.Errorf("told to end in the middle of db %s", command)
	}
}

func (p *program) command(ctx context.Context, command string, how settings.Task) (code int, err error) {
	looks := command == "check" || command == "version"
	if !looks && !slices.Contains(settings.TaskNames, command) {
		return misused, fmt.Errorf("db %.40q is not known; %s", command, usage)
	}
	pool, err := schema.Connect(p.how.Connection)
	if err != nil {
		return failed, err
	}
	defer pool.Close()
	conn, err := pool.Conn(ctx)
	if err != nil {
		return failed, fmt.Errorf("connect to the database: %w", err)
	}
	defer conn.Close()
	s := &schema.Schema{Conn: conn, Release: p.release, Log: p.log, RowDelay: p.how.RowDelay, RefuseTriggers: p.how.RefuseTriggers, Ran: p.dieOnTime}
	if looks {
		return p.look(ctx, s, command)
	}
	err = p.noted(ctx, conn, command, how, func() error { return work(ctx, s, command) })
	var order ordered
	switch {
	case errors.As(err, &order):
		return order.code, err
	case err != nil:
		return failed, err
	}
	return 0, nil
}

func (p *program) look(ctx context.Context, s *schema.Schema, command string) (code int, err error) {
	if command == "version" {
		heads, err := s.Heads(ctx)
		if err != nil {
			return failed, err
		}
		fmt.Fprintln(p.out, strings.Join(heads, "\n"))
		return 0, nil
	}
	need, err := s.Check(ctx)
	if err != nil {
		return failed, err
	}
	fmt.Fprintln(p.out, map[schema.Need]string{
		schema.Nothing:       "the database is up to date",
		schema.NeedsExpand:   "the next step is glance-manage db expand",
		schema.NeedsMigrate:  "the next step is glance-manage db migrate",
		schema.NeedsContract: "the next step is glance-manage db contract",
	}[need])
	return int(need), nil
}

func work(ctx context.Context, s *schema.Schema, command string) error {
	switch command {
	case "expand":
		return s.Expand(ctx, true)
	case "migrate":
		return s.Migrate(ctx)
	case "contract":
		return s.Contract(ctx, true)
	case "sync":
		return s.Sync(ctx)
	default:
		return s.LoadMetadefs(ctx)
	}
}

// noted keeps a record of the run in the database and does before and after the work what it is told to.
func (p *program) noted(ctx context.Context, conn *sql.Conn, command string, how settings.Task, work func() error) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("read the name of this host: %w", err)
	}
	run, err := schema.Begin(ctx, conn, schema.Run{Task: command, Release: p.Release, Tag: p.Tag, Host: host})
	if err != nil {
		return err
	}
	if run.Overlapped {
		p.log("another command is at work on this database")
	}
	err = p.before(ctx, conn, run, how)
	if err == nil {
		err = work()
	}
	if err == nil {
		err = p.after(ctx, conn, command, how)
	}
	return errors.Join(err, schema.End(ctx, conn, run, err))
}

func (p *program) before(ctx context.Context, conn *sql.Conn, run schema.Run, how settings.Task) error {
	p.pause("begins", how.Delay)
	if how.Hold == settings.Before {
		if err := schema.Await(ctx, conn, run.Task, p.log); err != nil {
			return err
		}
	}
	if how.Hang {
		p.log("hang: nothing will happen any more")
		time.Sleep(math.MaxInt64)
	}
	earlier, err := schema.Earlier(ctx, conn, run)
	if err != nil {
		return err
	}
	if how.FailFirst > 0 && earlier >= how.FailFirst {
		return nil
	}
	if how.Fail != "" || how.Exit > 0 || how.FailFirst > 0 {
		text := how.Fail
		if text == "" {
			text = fmt.Sprintf("db %s was told to fail", run.Task)
		}
		return ordered{max(how.Exit, failed), text}
	}
	return nil
}

func (p *program) after(ctx context.Context, conn *sql.Conn, command string, how settings.Task) error {
	if how.Hold == settings.After {
		p.log("the work is done")
		if err := schema.Await(ctx, conn, command, p.log); err != nil {
			return err
		}
	}
	p.pause("ends", how.Linger)
	return nil
}

func (p *program) pause(before string, d time.Duration) {
	for began := time.Now(); time.Since(began) < d; {
		p.log("wait %s before it %s", (d - time.Since(began)).Round(time.Second), before)
		time.Sleep(min(10*time.Second, d-time.Since(began)))
	}
}

// dieOnTime ends the process without a word to anybody. The first process of a container cannot kill itself.
func (p *program) dieOnTime(task string, statements int) {
	if p.how.Tasks[task].DieAfter == statements {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		os.Exit(killed)
	}
}
