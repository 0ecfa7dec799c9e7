// Command demo shows the whole of it to a newcomer: on a real one-node Kubernetes, a real Glance goes from one release
// to the next while clients create, read and list images without a pause. Edits that could never be walked are refused
// where they are typed, and an upgrade that is under way is aborted. Then stands what was counted. If it is asked for, a
// real Keystone follows, with its own count. The command fails when any of it is not as promised.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/c5c3/openstack-upgrade/test/stage"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	name := flags.String("name", "dev", "")
	services := flags.String("services", onlyGlance, "")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return errors.New("it takes two flags: --name of the cluster (default dev) and --services (glance, or glance,keystone)")
	}
	if *services != onlyGlance && *services != withKeystone {
		return fmt.Errorf("--services=%s: say %s or %s", *services, onlyGlance, withKeystone)
	}
	d := &demo{out: out, glance: stage.Glance{Namespace: "openstack", Name: "images",
		Release: stage.ReleaseBefore, Tag: stage.TagBefore, Replicas: 3}}
	d.headline("A real Kubernetes with cert-manager, a MariaDB and the product on it",
		"Everything is built from source; the first time that takes a while, later it is kept.",
		"The production overlay is what users apply: two webhooks and two controllers.")
	var err error
	if d.stage, err = stage.Up(ctx, d.say, *name); err != nil {
		d.say("\nWhat there is of the cluster stays; `%s` removes it.", ending(*name))
		return err
	}
	defer d.lookAround()
	acts := []func(context.Context) error{d.install, d.startTraffic, d.refusals, d.upgrade, d.abort, d.conclude}
	if *services == withKeystone {
		acts = append(acts, d.keystone, d.concludeKeystone)
	}
	for _, act := range acts {
		if err := act(ctx); err != nil {
			if ctx.Err() != nil {
				return errors.New("stopped")
			}
			return err
		}
	}
	return nil
}

// What --services takes.
const (
	onlyGlance   = "glance"
	withKeystone = "glance,keystone"
)

// demo is what the acts share, and what they found out for the summary.
type demo struct {
	out    io.Writer
	stage  *stage.Stage
	glance stage.Glance
	act    int

	traffic *stage.Traffic
	results results
	// walked is nil until there is a Keystone.
	walked *walked
}

// install begins at the beginning: an empty database and a Glance of the older release.
func (d *demo) install(ctx context.Context) error {
	d.headline(fmt.Sprintf("A Glance on %s", d.glance.Release),
		"Two Debian suites stand in for two neighbouring releases: bookworm's Glance 25.1 is called 2026.1 here, trixie's",
		"Glance 30.0 is called 2026.2. The programs, their schema and its migrations are real, the two names are not.",
		"The namespace enforces Pod Security \"restricted\".")
	d.say("make namespace, database and Secret anew")
	if err := d.stage.Namespace(ctx, d.glance.Namespace); err != nil {
		return err
	}
	url, err := d.stage.Database(ctx, database)
	if err != nil {
		return err
	}
	if err := d.stage.PutConnection(ctx, d.glance.Namespace, url); err != nil {
		return err
	}
	d.block(d.glance.Manifest())
	if _, err := d.kubectl(ctx, d.glance.Manifest(), "apply", "-f", "-"); err != nil {
		return err
	}
	if err := d.stage.AwaitReady(ctx, d.glance.Key(), 10*time.Minute); err != nil {
		return err
	}
	if _, err := d.kubectl(ctx, "", "-n", d.glance.Namespace, "get", "glance", d.glance.Name); err != nil {
		return err
	}
	d.results.headsBefore, err = d.stage.Heads(ctx, database)
	return err
}

func (d *demo) startTraffic(ctx context.Context) error {
	d.headline("Clients that never stop asking",
		"From now on a pod creates, reads and lists images through the Service, over kept connections and over fresh ones.",
		"It repeats nothing: whatever goes wrong counts as failed.")
	g, err := d.stage.Get(ctx, d.glance.Key())
	if err != nil {
		return err
	}
	if d.traffic, err = d.stage.StartTraffic(ctx, "clients", g.Record().Endpoint, turnsPerSecond); err != nil {
		return err
	}
	return d.stage.Await(ctx, "the first hundred requests", time.Minute, func(ctx context.Context) (bool, string, error) {
		now, err := d.traffic.Now(ctx)
		return err == nil && now.Sent >= 100, fmt.Sprintf("%d sent, %d failed", now.Sent, now.Failed), nil
	})
}
