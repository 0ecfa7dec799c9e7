package service_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/controller/service"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/image"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
)

func keystone(changes ...func(*v1alpha1.Keystone)) render.Workload {
	return service.Keystone().Workload(build.Keystone("openstack", "identity", changes...))
}

func TestTheKeystoneCommandServesAndCanBeReplaced(t *testing.T) {
	usual := strings.Join(keystone().Command, " ")
	assert.Contains(t, usual, "--http-socket :5000")
	assert.Contains(t, usual, "--module keystone.server.wsgi:initialize_public_application()")
	assert.Contains(t, usual, "--hook-master-start unix_signal:15 gracefully_kill_them_all", "requests in flight are finished on SIGTERM")
	assert.Contains(t, usual, "--processes 4 --threads 1 ", "a second thread would be refused while the first one reads the policy")
	asked := keystone(func(k *v1alpha1.Keystone) { k.Spec.APIServer.UWSGI = v1alpha1.UWSGISpec{Processes: 1, Threads: 8} })
	assert.Contains(t, strings.Join(asked.Command, " "), "--processes 1 --threads 8 ")
	replaced := keystone(func(k *v1alpha1.Keystone) { k.Spec.APIServer.Command = []string{"serve", "now"} })
	assert.Equal(t, []string{"serve", "now"}, replaced.Command)
}

func TestTheFirstUserIsMadeOnTheFirstInstallationAlone(t *testing.T) {
	first := keystone()
	require.Len(t, first.Install, 1)
	command := strings.Join(first.Install[0].Words, " ")
	assert.Equal(t, "keystone-manage bootstrap --bootstrap-username admin --bootstrap-project-name admin --bootstrap-region-id RegionOne"+
		" --bootstrap-public-url http://identity.openstack.svc:5000/v3 --bootstrap-internal-url http://identity.openstack.svc:5000/v3 --bootstrap-admin-url http://identity.openstack.svc:5000/v3", command)
	require.Len(t, first.Install[0].Env, 1)
	assert.Equal(t, build.AdminSecretRef, first.Install[0].Env[0].ValueFrom.SecretKeyRef.Name)
	assert.NotContains(t, command, "password", "it comes by the environment")

	work := upgrade.Work{Task: upgrade.Sync, From: "2026.1", To: "2026.1", Image: "r:2026.1"}
	later := keystone(func(k *v1alpha1.Keystone) { k.Status.InstalledRelease = "2026.1" })
	assert.Empty(t, later.Install)
	assert.Equal(t, render.Identity(first, work), render.Identity(later, work), "the sync that has run counts afterwards")
	assert.Len(t, render.Job(first, work).Spec.Template.Spec.InitContainers, 1)
	assert.Empty(t, render.Job(later, work).Spec.Template.Spec.InitContainers)
	expand := render.Job(first, upgrade.Work{Task: upgrade.Expand})
	assert.Empty(t, expand.Spec.Template.Spec.InitContainers, "a phase is what it is")

	none := keystone(func(k *v1alpha1.Keystone) { k.Spec.Bootstrap = nil })
	assert.Empty(t, none.Install)
}

func TestKeysAreFilesThatNobodyElseReads(t *testing.T) {
	w := keystone(func(k *v1alpha1.Keystone) {
		k.Spec.CredentialKeysSecretRef = &v1alpha1.SecretReference{Name: "credential"}
		k.Spec.Security.RunAsUser = ptr.To[int64](1000)
	})
	pod := render.Deployment(w, "r:2026.1", upgrade.State{Installed: "2026.1"}).Spec.Template.Spec
	found := map[string]string{}
	for _, volume := range pod.Volumes {
		if volume.Secret == nil {
			continue
		}
		assert.Equal(t, int32(0o440), *volume.Secret.DefaultMode)
		for _, mount := range pod.Containers[0].VolumeMounts {
			if mount.Name == volume.Name {
				assert.True(t, mount.ReadOnly)
				found[mount.MountPath] = volume.Secret.SecretName
			}
		}
	}
	assert.Equal(t, map[string]string{"/etc/keystone/fernet-keys/": build.FernetSecretRef, "/etc/keystone/credential-keys/": "credential"}, found)
	require.NotNil(t, pod.SecurityContext.FSGroup, "a process that is not root may read them")
	chosen := keystone(func(k *v1alpha1.Keystone) { k.Spec.Security.FSGroup = ptr.To[int64](77) })
	assert.Equal(t, int64(77), *render.Deployment(chosen, "r:2026.1", upgrade.State{}).Spec.Template.Spec.SecurityContext.FSGroup)
	without := keystone(func(k *v1alpha1.Keystone) { k.Spec.FernetKeysSecretRef = nil })
	assert.Nil(t, render.Deployment(without, "r:2026.1", upgrade.State{}).Spec.Template.Spec.SecurityContext.FSGroup)
}

func TestACommandPatchesWhatTheKindHas(t *testing.T) {
	forward := upgrade.Remedy{Release: "2026.2", Image: image.Reference{Repository: build.KeystoneRepository, Tag: "2026.2"}}
	k := build.Keystone("openstack", "identity")
	assert.Equal(t, `kubectl patch keystone identity -n openstack --type=merge -p '{"spec":{"image":{"tag":"2026.2"}}}'`, service.Keystone().Command(k, forward))
	k.Spec.Image.Digest = "sha256:a"
	assert.Contains(t, service.Keystone().Command(k, forward), `{"digest":null,"tag":"2026.2"}`)
	hostile := forward
	hostile.Image.Tag = "2026.2'$(id)'"
	assert.Contains(t, service.Keystone().Command(k, hostile), `"tag":"2026.2'\''$(id)'\''"`, "it can be pasted whatever is in it")
	g := build.Glance("images", build.In("openstack"))
	forward.Image.Repository = build.DefaultRepository
	assert.Equal(t, `kubectl patch glance images -n openstack --type=merge -p '{"spec":{"image":{"tag":"2026.2"},"openStackRelease":"2026.2"}}'`, service.Glance().Command(g, forward))
}

func TestAKeystoneIsExpandedMigratedAndContractedByItsOwnToolAlone(t *testing.T) {
	manage := func(flags ...string) [][]string {
		return [][]string{append([]string{"keystone-manage", "db_sync"}, flags...)}
	}
	assert.Equal(t, map[upgrade.Task][][]string{
		upgrade.Sync: manage(), upgrade.Expand: manage("--expand"), upgrade.Migrate: manage("--migrate"), upgrade.Contract: manage("--contract"),
	}, keystone().Tasks)
	assert.True(t, service.Keystone().Facts.Upgrade.ReadsOwnSchemaOnly, "keystone-manage fails on a schema that the next release has expanded")
	assert.False(t, service.Glance().Facts.Upgrade.ReadsOwnSchemaOnly)
}
