package service

import (
	"cmp"
	"strconv"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
)

// launch is what starts an API: the command that is asked for, otherwise the
// module under uWSGI, with as many workers as are asked for, or else unset.
func launch(asked []string, module string, port int, server, unset v1alpha1.UWSGISpec, deployment v1alpha1.DeploymentSpec) []string {
	if len(asked) > 0 {
		return asked
	}
	server.Processes = cmp.Or(server.Processes, unset.Processes)
	server.Threads = cmp.Or(server.Threads, unset.Threads)
	return uwsgi(module, port, server, deployment)
}

// uwsgi serves a module. On SIGTERM the workers finish the requests they hold
// before they end; the mercy they are given ends before the pod's own. Tokens
// make long headers, and uploads pause: both would be cut off by the defaults.
func uwsgi(module string, port int, server v1alpha1.UWSGISpec, deployment v1alpha1.DeploymentSpec) []string {
	command := []string{
		"uwsgi", "--http-socket", ":" + strconv.Itoa(port), "--master", "--lazy-apps", "--need-app", "--enable-threads", "--die-on-term",
		"--processes", strconv.Itoa(int(server.Processes)), "--threads", strconv.Itoa(int(server.Threads)),
		"--hook-master-start", "unix_signal:15 gracefully_kill_them_all",
		"--worker-reload-mercy", strconv.FormatInt(render.DrainMercy(deployment), 10),
		"--buffer-size", "65535", "--socket-timeout", "60",
		// The server closes after every answer; a client that is not told so
		// sends its next request into the void.
		"--add-header", "Connection: close",
		"--module", module,
	}
	if server.ListenQueue > 0 {
		command = append(command, "--listen", strconv.Itoa(int(server.ListenQueue)))
	}
	return append(command, server.ExtraArgs...)
}
