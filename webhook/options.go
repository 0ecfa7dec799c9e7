package main

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	"github.com/c5c3/openstack-upgrade/shared/logging"
	"github.com/c5c3/openstack-upgrade/webhook/admission"
	"github.com/c5c3/openstack-upgrade/webhook/server"
)

const usage = `webhook judges edits of OpenStack services at admission.

Usage:
  webhook [flags]                                serve
  webhook lint [flags] FILE|DIRECTORY|- ...      judge manifests offline; webhook lint --help tells more
  webhook version                                print the version

Flags:
`

// options are the flags, checked.
type options struct {
	version bool
	server  server.Config
	policy  admission.Policy
	tlsDir  string
	tlsName string
	log     logr.Logger
}

// parse reads and checks the command line. The error is one line that names
// the flag.
func parse(args []string, out io.Writer) (options, error) {
	o := options{server: server.Config{Version: version}}
	var level, format string
	flags := pflag.NewFlagSet("webhook", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Usage = func() { _, _ = fmt.Fprint(out, usage, flags.FlagUsages()) }
	flags.StringVar(&o.server.ListenAddress, "listen-address", ":9443", "where admission reviews are taken, with TLS")
	flags.StringVar(&o.server.HealthAddress, "health-address", ":8081", "where /healthz and /readyz answer")
	flags.StringVar(&o.server.MetricsAddress, "metrics-address", ":8080", "where /metrics answers")
	flags.StringVar(&o.tlsDir, "tls-dir", "/etc/webhook/tls", "directory with tls.crt and tls.key, followed while serving")
	flags.StringVar(&o.tlsName, "tls-name", "", "name under which the API server calls, SERVICE.NAMESPACE.svc; a certificate for another one is not ready")
	flags.StringVar(&level, "log-level", "info", "how much is logged: "+strings.Join(logging.Levels, ", "))
	flags.StringVar(&format, "log-format", "json", "how it is logged: "+strings.Join(logging.Formats, ", "))
	flags.BoolVar(&o.policy.RejectAbortWhileContracting, "reject-abort-while-contracting", false, "refuse an abort while contract runs, instead of warning")
	flags.BoolVar(&o.server.EnableHTTP2, "enable-http2", false, "offer HTTP/2 beside HTTP/1.1")
	flags.DurationVar(&o.server.ShutdownDelay, "shutdown-delay", 5*time.Second, "how long to answer after readiness is withdrawn")
	flags.DurationVar(&o.server.ShutdownTimeout, "shutdown-timeout", 20*time.Second, "how long the last calls may take after that")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch rest := flags.Args(); {
	case len(rest) == 1 && rest[0] == "version":
		o.version = true
		return o, nil
	case len(rest) > 0:
		return o, fmt.Errorf("argument %q is not understood; webhook --help tells what is", rest[0])
	}
	if err := o.check(); err != nil {
		return o, err
	}
	log, err := logging.New(level, format)
	if err != nil {
		return o, err
	}
	o.log = log
	return o, nil
}

func (o *options) check() error {
	taken := map[string]string{}
	for _, f := range []struct{ name, address string }{
		{"--listen-address", o.server.ListenAddress},
		{"--health-address", o.server.HealthAddress},
		{"--metrics-address", o.server.MetricsAddress},
	} {
		if err := checkAddress(f.address); err != nil {
			return fmt.Errorf("%s %q: %w", f.name, f.address, err)
		}
		if other, twice := taken[f.address]; twice {
			return fmt.Errorf("%s %q: is the same as %s", f.name, f.address, other)
		}
		taken[f.address] = f.name
	}
	if o.tlsDir == "" {
		return fmt.Errorf("--tls-dir %q: name the directory of tls.crt and tls.key", o.tlsDir)
	}
	if o.server.ShutdownDelay < 0 {
		return fmt.Errorf("--shutdown-delay %s: must not be negative", o.server.ShutdownDelay)
	}
	if o.server.ShutdownTimeout <= 0 {
		return fmt.Errorf("--shutdown-timeout %s: must be more than 0", o.server.ShutdownTimeout)
	}
	return nil
}

func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("must be HOST:PORT or :PORT")
	}
	if host != "" && net.ParseIP(host) == nil {
		return fmt.Errorf("%q is not an IP address", host)
	}
	if number, err := strconv.Atoi(port); err != nil || number < 1 || number > 65535 {
		return fmt.Errorf("port %q is not a number from 1 to 65535", port)
	}
	return nil
}
