package service

import (
	"strconv"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// Where Glance looks for configuration: glance-manage is told the first
// directory, the API under uWSGI searches the second by itself, beside the
// image's own glance-api.conf and glance-api-paste.ini.
const (
	glanceManageDir = "/etc/glance/glance-api.conf.d/"
	glanceAPIDir    = "/etc/glance/glance.conf.d/"
	glancePort      = 9292
)

// Glance is the Image service.
func Glance() Service {
	const kind, name = "Glance", "glance"
	return Service{
		Kind: kind, Name: name, Resource: "glances",
		New: func() Object { return &v1alpha1.Glance{} },
		Workload: func(object Object) render.Workload {
			g, ok := object.(*v1alpha1.Glance)
			if !ok {
				return render.Workload{}
			}
			spec := g.Spec
			return render.Workload{
				Namespace: g.Namespace, Name: g.Name, Service: name, Owner: owner(g, kind),
				Image: spec.Image, Deployment: spec.Deployment, Jobs: spec.Jobs, Security: spec.Security, Database: spec.Database,
				Config: render.INI(spec.ExtraConfig), ConfigDirs: []string{glanceManageDir, glanceAPIDir}, ConfigSecrets: spec.ConfigSecretRefs,
				ScratchDirs: []string{"/tmp", "/var/lib/glance"},
				Command:     glanceCommand(spec), Port: glancePort, ProbePath: "/healthcheck",
				Tasks: map[upgrade.Task][][]string{
					upgrade.Sync:     {glanceManage("sync"), glanceManage("load_metadefs")},
					upgrade.Expand:   {glanceManage("expand")},
					upgrade.Migrate:  {glanceManage("migrate")},
					upgrade.Contract: {glanceManage("contract")},
				},
			}
		},
	}
}

func glanceManage(command string) []string {
	return []string{"glance-manage", "--config-dir", glanceManageDir, "db", command}
}

// glanceCommand launches the API under uWSGI. On SIGTERM the workers finish
// the requests they hold before they end; the mercy they are given ends before
// the pod's own. Tokens make long headers, and uploads pause: both would be cut
// off by the defaults.
func glanceCommand(spec v1alpha1.GlanceSpec) []string {
	if len(spec.APIServer.Command) > 0 {
		return spec.APIServer.Command
	}
	server := spec.APIServer.UWSGI
	command := []string{
		"uwsgi", "--http-socket", ":" + strconv.Itoa(glancePort), "--master", "--lazy-apps", "--need-app", "--enable-threads", "--die-on-term",
		"--processes", number(server.Processes, 2), "--threads", number(server.Threads, 4),
		"--hook-master-start", "unix_signal:15 gracefully_kill_them_all",
		"--worker-reload-mercy", strconv.FormatInt(render.DrainMercy(spec.Deployment), 10),
		"--buffer-size", "65535", "--socket-timeout", "60",
		// The server closes after every answer; a client that is not told so
		// sends its next request into the void.
		"--add-header", "Connection: close",
		"--module", "glance.common.wsgi_app:init_app()",
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
