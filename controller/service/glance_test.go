package service_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/utils/ptr"

	"github.com/c5c3/openstack-upgrade/controller/service"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/test/build"
)

func TestTheGlanceCommandLosesNoRequest(t *testing.T) {
	command := func(change func(*v1alpha1.Glance)) string {
		return strings.Join(service.Glance().Workload(build.Glance("images", change)).Command, " ")
	}
	usual := command(func(*v1alpha1.Glance) {})
	for what, option := range map[string]string{
		"requests in flight are finished on SIGTERM":    "--hook-master-start unix_signal:15 gracefully_kill_them_all",
		"the master ends on SIGTERM":                    "--die-on-term",
		"the workers' mercy ends before the pod's":      "--worker-reload-mercy 48",
		"a client does not reuse a closed connection":   "--add-header Connection: close",
		"a token in a header is not cut off":            "--buffer-size 65535",
		"an upload may pause":                           "--socket-timeout 60",
		"an image without the application is not ready": "--need-app",
		"it waits more than it computes":                "--processes 2 --threads 4",
	} {
		assert.Contains(t, usual, option, what)
	}
	assert.Contains(t, command(func(g *v1alpha1.Glance) { g.Spec.Deployment.TerminationGracePeriodSeconds = ptr.To[int64](300) }), "--worker-reload-mercy 288")
	assert.Contains(t, command(func(g *v1alpha1.Glance) {
		g.Spec.APIServer.UWSGI = v1alpha1.UWSGISpec{Processes: 7, Threads: 3, ListenQueue: 99, ExtraArgs: []string{"--x"}}
	}),
		"--processes 7 --threads 3")
	assert.Equal(t, "serve now", command(func(g *v1alpha1.Glance) { g.Spec.APIServer.Command = []string{"serve", "now"} }))
	assert.Equal(t, usual, command(func(g *v1alpha1.Glance) { g.Spec.APIServer.Workers = ptr.To[int32](9) }), "workers is deprecated and renders nothing")
}
