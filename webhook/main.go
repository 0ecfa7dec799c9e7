// Command webhook judges edits of OpenStack services at admission: it refuses
// one that could never be walked, with the command that would pass. It keeps
// nothing, calls nobody and needs no kubeconfig. As webhook lint it gives the
// same answers about files.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/c5c3/openstack-upgrade/certs/serving"
	"github.com/c5c3/openstack-upgrade/webhook/admission"
	"github.com/c5c3/openstack-upgrade/webhook/server"
)

// version is set when a release is built.
var version = "dev"

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "lint" {
		os.Exit(runLint(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	// The first signal asks for a graceful end; a second one is not waited
	// for.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, out, complaints io.Writer) int {
	o, err := parse(args, out)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		_, _ = fmt.Fprintf(complaints, "webhook: %v\n", err)
		return exitUsage
	case o.version:
		_, _ = fmt.Fprintln(out, version)
		return 0
	}
	var names []string
	if o.tlsName != "" {
		names = append(names, o.tlsName)
	}
	certificate := serving.Follow(o.tlsDir, o.log, time.Now, names...)
	s, err := server.Listen(o.server, admission.New(o.policy, admission.Kinds...), certificate, o.log)
	if err == nil {
		err = s.Run(ctx)
	}
	if err != nil {
		o.log.Error(err, "webhook ended")
		return exitFailed
	}
	return 0
}
