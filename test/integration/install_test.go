package integration

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

func TestAFreshInstallSyncsTheDatabaseAndThenServes(t *testing.T) {
	s := open(t).start()
	story := s.Record(t, s.ns, name)
	s.glance(build.Replicas(2), build.Config("DEFAULT", "debug", "true"))
	g := s.await("the install to end", rests("2026.1"))

	require.Equal(t, old, g.Status.InstalledImage)
	require.Equal(t, "http://images."+s.ns+".svc:9292", g.Status.Endpoint)
	pod := s.job(upgrade.Sync).Spec.Template.Spec
	require.Equal(t, []string{"sync", "load_metadefs"}, []string{lastWord(pod.InitContainers[0].Command), lastWord(pod.Containers[0].Command)},
		"the metadata definitions are loaded only after the sync has succeeded")

	var config corev1.ConfigMap
	require.NoError(t, s.Client.Get(t.Context(), s.key("images-config"), &config))
	require.Equal(t, "[DEFAULT]\ndebug = true\n\n", config.Data["00-openstack-upgrade.conf"])
	var service corev1.Service
	require.NoError(t, s.Client.Get(t.Context(), s.key(name), &service))
	require.Equal(t, "api", service.Spec.Ports[0].Name)
	require.EqualValues(t, 9292, service.Spec.Ports[0].Port)
	selector := labels.SelectorFromSet(service.Spec.Selector)
	for _, pod := range s.pods("") {
		require.Equal(t, pod.Labels["app.kubernetes.io/component"] == api, selector.Matches(labels.Set(pod.Labels)), "the Service finds API pods alone, not %s", pod.Name)
	}
	story.Golden(t, "fresh-install")
}

func lastWord(command []string) string { return command[len(command)-1] }

func TestAFirstSyncThatFailsLeavesNothingServing(t *testing.T) {
	s := open(t)
	repair := s.script(upgrade.Sync, harness.FailIn("db-sync-1", 1, "unknown database glance"))
	s.start().glance()
	s.await("the failure to be said", says(upgrade.DBSyncFailed, "exit code 1: unknown database glance", "delete Job images-db-sync to retry"))
	require.True(t, apierrors.IsNotFound(s.Client.Get(t.Context(), s.key(name), &appsv1.Deployment{})), "no API without a database")
	s.toldTimes("Warning DBSyncFailed", 1)
	repair()
	s.deleteJob(upgrade.Sync)
	s.await("the install to end", rests("2026.1"))
}

func TestAPatchBumpSyncsOnTheNewImageAndThenRolls(t *testing.T) {
	s := open(t).start()
	story := s.Record(t, s.ns, name)
	s.glance()
	s.await("the install to end", rests("2026.1"))
	s.edit(build.Tag("2026.1-p1"))
	s.await("the patch to be installed", rests("2026.1"))
	s.awaitDeployment("the pods to roll", rolledTo(old+"-p1"))
	story.Golden(t, "patch-bump")
}

func TestAPatchImageThatFailsToSyncDoesNotRoll(t *testing.T) {
	s := steady(t)
	s.scriptImage(upgrade.Sync, ":2026.1-p1", harness.Fail(1, "broken build"))
	s.edit(build.Tag("2026.1-p1"))
	s.await("the failure to be said", says(upgrade.DBSyncFailed, "broken build"))
	require.Empty(t, rolledTo(old)(s.deployment()))
	require.Equal(t, old, s.now().Status.InstalledImage)
	for _, event := range s.told() {
		require.False(t, strings.Contains(event, "Upgrade"), "no walk is spoken of: %s", event)
	}
}
