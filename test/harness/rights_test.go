package harness_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

func TestTheControllersAccountHasTheShippedRightsAndNoOthers(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	ns := env.Namespace(t)
	g := build.Glance("images", build.In(ns))
	env.Create(t, build.DatabaseSecret(ns), g)
	controller := env.ClientFor(t, env.ControllerConfig(t))

	require.NoError(t, controller.List(t.Context(), &v1alpha1.GlanceList{}))
	require.NoError(t, controller.Status().Update(t.Context(), g))
	require.NoError(t, controller.Create(t.Context(), build.Job(ns, "images-db-sync", "glance:2026.1")))
	for deed, err := range map[string]error{
		"read a Secret":   controller.List(t.Context(), &corev1.SecretList{}, client.InNamespace(ns)),
		"write the spec":  controller.Update(t.Context(), g),
		"delete a Glance": controller.Delete(t.Context(), g),
	} {
		require.True(t, apierrors.IsForbidden(err), "%s: %v", deed, err)
	}
}

func TestTheControllerRunsAsItIsShipped(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	ns := env.Namespace(t)
	mark := env.Mark(t)
	controller := env.StartController(t, ns)
	require.NotEmpty(t, env.CallsSince(t, mark, controller.Actor).Where(harness.On("glances")), "it looks at Glances")

	controller.Kill(t)
	mark = env.Mark(t)
	again := env.StartController(t, ns)
	require.NotEmpty(t, env.CallsSince(t, mark, again.Actor).Where(harness.On("glances")), "and does so again after a crash")
	again.Stop(t)
	require.Empty(t, env.CallsSince(t, mark, harness.Actor{User: again.Actor.User, Agent: again.Actor.Agent}).Where(harness.Refused), "nothing it asked for was refused")
}
