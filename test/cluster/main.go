// Command cluster runs a real one-node Kubernetes for tests and the demo, built from Go modules, in namespaces of its
// own. See README.md beside it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/c5c3/openstack-upgrade/test/cluster/addons"
	"github.com/c5c3/openstack-upgrade/test/cluster/binaries"
	"github.com/c5c3/openstack-upgrade/test/cluster/lifecycle"
	"github.com/c5c3/openstack-upgrade/test/cluster/node"
)

const usage = `usage: go run ./test/cluster COMMAND [flags]

  up [--with cert-manager|none]  start the cluster, or say that it is up
  down                           end it and remove all of it
  status                         what runs, and how to reach it
  load FILE.tar                  put the images of a docker-archive or OCI tar into the node
  kubeconfig                     print the path of the administrator's kubeconfig
  exec -- COMMAND [ARG...]       run a command inside the node
  binaries [--only NAME,...]     build what is missing, print the directory

Every command but binaries takes --name (default dev).
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	interrupted := err != nil && ctx.Err() != nil
	stop()
	if interrupted {
		err = errors.New("interrupted; the same command goes on from here")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, diagnostics io.Writer) error {
	if len(args) == 0 {
		return errors.New("say what to do: up, down, status, load, kubeconfig, exec or binaries (--help tells more)")
	}
	log := func(format string, args ...any) { fmt.Fprintf(diagnostics, format+"\n", args...) }
	switch command, rest := args[0], args[1:]; command {
	case "up":
		with := "cert-manager"
		name, _, err := parse(command, rest, 0, func(f *flag.FlagSet) { f.StringVar(&with, "with", with, "") })
		if err != nil {
			return err
		}
		extra, err := chosen(with)
		if err != nil {
			return err
		}
		if err := lifecycle.Up(ctx, log, name, extra...); err != nil {
			return err
		}
		return lifecycle.Status(ctx, out, name, time.Now())
	case "down":
		name, _, err := parse(command, rest, 0)
		if err != nil {
			return err
		}
		return lifecycle.Down(ctx, log, name)
	case "status":
		name, _, err := parse(command, rest, 0)
		if err != nil {
			return err
		}
		return lifecycle.Status(ctx, out, name, time.Now())
	case "load":
		name, files, err := parse(command, rest, 1)
		if err != nil {
			return err
		}
		images, err := lifecycle.Load(ctx, name, files[0])
		if err != nil {
			return err
		}
		fmt.Fprintln(out, strings.Join(images, "\n"))
		return nil
	case "kubeconfig":
		name, _, err := parse(command, rest, 0)
		if err != nil {
			return err
		}
		path, err := lifecycle.Kubeconfig(name)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, path)
		return nil
	case "exec":
		name, line, err := parse(command, rest, -1)
		if err != nil {
			return err
		}
		return lifecycle.Exec(name, os.Getenv("TERM"), line)
	case "binaries":
		return build(ctx, rest, out, log)
	case node.CommandSupervise, node.CommandInit, node.CommandKeep, node.CommandProbe:
		return carry(ctx, command, rest)
	case "help", "-h", "--help", "-help":
		fmt.Fprint(out, usage)
		return nil
	default:
		return fmt.Errorf("unknown command %q; try --help", command)
	}
}

// parse reads the flags of a command and its arguments, of which it wants a number; less than none means at least one.
func parse(command string, args []string, want int, more ...func(*flag.FlagSet)) (name string, rest []string, err error) {
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&name, "name", "dev", "")
	for _, add := range more {
		add(flags)
	}
	if err := flags.Parse(args); err != nil {
		return "", nil, fmt.Errorf("%s: %w; --help of the whole command tells more", command, err)
	}
	rest = flags.Args()
	switch {
	case want < 0 && len(rest) == 0:
		return "", nil, fmt.Errorf("%s: say which command to run: %s -- COMMAND", command, command)
	case want >= 0 && len(rest) != want:
		return "", nil, fmt.Errorf("%s: wants %d argument(s), got %d: %s", command, want, len(rest), strings.Join(rest, " "))
	}
	return name, rest, nil
}

func chosen(with string) ([]addons.Addon, error) {
	switch with {
	case addons.CertManager.Name:
		return []addons.Addon{addons.CertManager}, nil
	case "none":
		return nil, nil
	default:
		return nil, fmt.Errorf("up: --with %q: use cert-manager or none", with)
	}
}

func build(ctx context.Context, args []string, out io.Writer, log lifecycle.Log) error {
	var only string
	_, _, err := parse("binaries", args, 0, func(f *flag.FlagSet) { f.StringVar(&only, "only", "", "") })
	if err != nil {
		return err
	}
	var names []string
	if only != "" {
		names = strings.Split(only, ",")
	}
	dir, err := binaries.Ensure(ctx, binaries.Log(log), names...)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, dir)
	return nil
}

// carry makes this process one of those that carry a node. Only the program itself starts it so.
func carry(ctx context.Context, command string, args []string) error {
	if command == node.CommandProbe {
		return node.Probe(ctx)
	}
	if len(args) < 3 {
		return fmt.Errorf("%s is started by up", command)
	}
	layout := node.Layout{Name: args[0], State: args[1], Bin: args[2]}
	switch command {
	case node.CommandInit:
		return layout.Init()
	case node.CommandKeep:
		return layout.Keep(ctx)
	}
	port, err := strconv.Atoi(args[len(args)-1])
	if err != nil {
		return fmt.Errorf("%s is started by up", command)
	}
	return layout.Supervise(ctx, port)
}
