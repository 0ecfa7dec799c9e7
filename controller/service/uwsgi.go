package service

import (
	"strconv"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
)

// launch is what starts an API: the command that is asked for, otherwise the
// module under uWSGI.
func launch(asked []string, module string, port int, server v1alpha1.UWSGISpec, deployment v1alpha1.DeploymentSpec) []string {
	if len(asked) > 0 {
		return asked
	}
	return uwsgi(module, port, server, deployment)
}

// uwsgi serves a module. On SIGTERM the workers finish the requests they hold
// before they end; the mercy they are given ends before the pod's own. Tokens
// make long headers, and uploads pause: both would be cut off by the defaults.
func uwsgi(module string, port int, server v1alpha1.UWSGISpec, deployment v1alpha1.DeploymentSpec) []string {
	command := []string{
		"uwsgi", "--http-socket", ":" + strconv.Itoa(port), "--master", "--lazy-apps", "--need-app", "--enable-threads", "--die-on-term",
		"--processes", number(server.Processes, 2), "--threads", number(server.Threads, 4),
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

func number(asked, otherwise int32) string {
	if asked > 0 {
		return strconv.Itoa(int(asked))
	}
	return strconv.Itoa(int(otherwise))
}
