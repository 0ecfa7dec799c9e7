package service

import (
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

// glanceServer is for transfers that wait for a store more than they compute.
var glanceServer = v1alpha1.UWSGISpec{Processes: 2, Threads: 4}

// Glance is the Image service.
func Glance() Service {
	const kind, name = "Glance", "glance"
	facts := Facts{
		ReleaseField: "openStackRelease",
		Sync:         Step{Commands: [][]string{glanceManage("sync"), glanceManage("load_metadefs")}},
		Phases: map[upgrade.Phase]Step{
			upgrade.Expanding:   {Commands: [][]string{glanceManage("expand")}},
			upgrade.Migrating:   {Commands: [][]string{glanceManage("migrate")}},
			upgrade.Contracting: {Commands: [][]string{glanceManage("contract")}},
		},
		Rollout: []string{render.ComponentAPI},
	}
	return Service{
		Kind: kind, Name: name, Resource: "glances", Facts: facts,
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
				Command:     launch(spec.APIServer.Command, "glance.common.wsgi_app:init_app()", glancePort, spec.APIServer.UWSGI, glanceServer, spec.Deployment), Port: glancePort, ProbePath: "/healthcheck",
				Tasks: facts.Tasks(),
			}
		},
	}
}

func glanceManage(command string) []string {
	return []string{"glance-manage", "--config-dir", glanceManageDir, "db", command}
}
