package harness_test

import (
	"context"
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
	require.NoError(t, controller.Get(t.Context(), client.ObjectKeyFromObject(g), &v1alpha1.Glance{}), "past the caches")
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
	awaitLook := func(mark harness.Mark, who harness.Actor) {
		env.Eventually(t, harness.Patience, "the controller to look at Glances", func(context.Context) string {
			calls := env.CallsSince(t, mark, who)
			return lack(len(calls.Where(harness.On("glances"))) > 0, "it asked for\n%s", calls)
		})
	}
	mark := env.Mark(t)
	controller := env.StartController(t, ns)
	awaitLook(mark, controller.Actor)

	controller.Kill(t)
	mark = env.Mark(t)
	again := env.StartController(t, ns)
	awaitLook(mark, again.Actor)
	again.Stop(t)
	require.Empty(t, env.CallsSince(t, mark, again.Actor).Where(harness.Refused), "nothing it asked for was refused")
}
