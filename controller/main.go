// The controller walks OpenStack services from one release to the next. It
// does what the planner in shared/upgrade decides, one step at a time.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/c5c3/openstack-upgrade/shared/logging"
)

// version is stamped by the build.
var version = "dev"

func main() {
	if len(os.Args) == 2 && os.Args[1] == "version" {
		fmt.Println(version)
		return
	}
	o, err := parse(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fail(2, err)
	}
	log, err := logging.New(o.logLevel, o.logFormat)
	if err != nil {
		fail(2, err)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		fail(1, fmt.Errorf("no way to reach the API server: %w", err))
	}
	if err := run(ctrl.SetupSignalHandler(), config, o, log); err != nil {
		fail(1, err)
	}
}

func fail(code int, err error) {
	fmt.Fprintln(os.Stderr, "controller: "+err.Error())
	os.Exit(code)
}
