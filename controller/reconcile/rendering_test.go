package reconcile

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/controller/service"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
)

func TestARenderingIsKeptForTheSameImageAndNoteAlone(t *testing.T) {
	seen := observation{workload: service.Glance().Workload(build.Glance("images", build.In("openstack")))}
	before, after := upgrade.State{Installed: "2026.1", InstalledImage: old}, upgrade.State{Installed: "2026.2", InstalledImage: next}
	for _, asked := range []struct {
		image string
		note  upgrade.State
	}{{old, before}, {next, before}, {next, after}, {old, after}, {old, before}} {
		want := render.Deployment(seen.workload, asked.image, asked.note)
		first := seen.rendering(asked.image, asked.note)
		assert.Equal(t, want, first)
		assert.Same(t, first, seen.rendering(asked.image, asked.note))
	}
}
