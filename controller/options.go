package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// options are the flags of the controller.
type options struct {
	healthAddress           string
	metricsAddress          string
	leaderElect             bool
	leaderElectionNamespace string
	watchNamespaces         []string
	concurrency             int
	resyncPeriod            time.Duration
	maxBackoff              time.Duration
	logLevel                string
	logFormat               string
}

// flags declares them with their defaults.
func flags(o *options, namespaces *string) *flag.FlagSet {
	set := flag.NewFlagSet("controller", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&o.healthAddress, "health-address", ":8081", "`address` of /healthz and /readyz")
	set.StringVar(&o.metricsAddress, "metrics-address", ":8080", "`address` of /metrics, 0 turns it off")
	set.BoolVar(&o.leaderElect, "leader-elect", true, "work only while holding the lease, so that several replicas can run")
	set.StringVar(&o.leaderElectionNamespace, "leader-election-namespace", "", "`namespace` of the lease; empty: the pod's own")
	set.StringVar(namespaces, "watch-namespaces", "", "comma-separated `list` of namespaces to work in; empty: all")
	set.IntVar(&o.concurrency, "concurrency", 20, "how many objects to look at side by side")
	set.DurationVar(&o.resyncPeriod, "resync-period", 10*time.Hour, "how often to look at every object unasked; nothing waits for it")
	set.DurationVar(&o.maxBackoff, "max-backoff", 5*time.Minute, "longest pause before a failed step is looked at again")
	set.StringVar(&o.logLevel, "log-level", "info", "error, info or debug")
	set.StringVar(&o.logFormat, "log-format", "json", "json or text")
	return set
}

// parse reads the command line; an error is one line for the user. Asked for
// help, it writes that to output and returns flag.ErrHelp.
func parse(args []string, output io.Writer) (options, error) {
	var o options
	var namespaces string
	set := flags(&o, &namespaces)
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(output, "Usage: controller [flags] | controller version")
			set.SetOutput(output)
			set.PrintDefaults()
		}
		return o, err
	}
	if set.NArg() > 0 {
		return o, fmt.Errorf("%q is not understood: the controller takes flags only, see --help", set.Arg(0))
	}
	for name, address := range map[string]string{"health-address": o.healthAddress, "metrics-address": o.metricsAddress} {
		if err := checkAddress(address); err != nil && (name != "metrics-address" || address != "0") {
			return o, fmt.Errorf("--%s=%s: %w", name, address, err)
		}
	}
	for namespace := range strings.SplitSeq(namespaces, ",") {
		namespace = strings.TrimSpace(namespace)
		if namespace == "" {
			continue
		}
		if !label.MatchString(namespace) {
			return o, fmt.Errorf("--watch-namespaces: %q is not the name of a namespace", namespace)
		}
		o.watchNamespaces = append(o.watchNamespaces, namespace)
	}
	switch {
	case o.leaderElectionNamespace != "" && !label.MatchString(o.leaderElectionNamespace):
		return o, fmt.Errorf("--leader-election-namespace=%s is not the name of a namespace", o.leaderElectionNamespace)
	case o.concurrency < 1 || o.concurrency > 100:
		return o, fmt.Errorf("--concurrency=%d must be between 1 and 100", o.concurrency)
	case o.resyncPeriod < time.Minute:
		return o, fmt.Errorf("--resync-period=%s must be at least 1m", o.resyncPeriod)
	case o.maxBackoff < time.Second || o.maxBackoff > time.Hour:
		return o, fmt.Errorf("--max-backoff=%s must be between 1s and 1h", o.maxBackoff)
	}
	return o, nil
}

var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func checkAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("not an address: it must look like :8080 or 127.0.0.1:8080")
	}
	if number, err := strconv.Atoi(port); err != nil || number < 0 || number > 65535 {
		return fmt.Errorf("%q is not a port", port)
	}
	return nil
}
