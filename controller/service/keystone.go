package service

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// Both keystone-manage and the API read keystone.conf.d beside the image's own
// keystone.conf without being told to.
const (
	keystoneConfigDir     = "/etc/keystone/keystone.conf.d/"
	keystoneFernetDir     = "/etc/keystone/fernet-keys/"
	keystoneCredentialDir = "/etc/keystone/credential-keys/"
	keystonePort          = 5000
)

// keystoneServer has one thread a process. A process reads its policy at its
// first request, and refuses with 403 what another thread asks meanwhile: with
// more than one, every rollout would turn away a few.
var keystoneServer = v1alpha1.UWSGISpec{Processes: 4, Threads: 1}

// Keystone is the Identity service. The tag of its image names the release, and
// the keystone-manage of one release cannot read what the next has expanded.
func Keystone() Service {
	const kind, name = "Keystone", "keystone"
	facts := Facts{
		Upgrade: upgrade.Facts{ReadsOwnSchemaOnly: true},
		Sync:    Step{Commands: [][]string{{"keystone-manage", "db_sync"}}},
		Phases: map[upgrade.Phase]Step{
			upgrade.Expanding:   {Commands: [][]string{{"keystone-manage", "db_sync", "--expand"}}},
			upgrade.Migrating:   {Commands: [][]string{{"keystone-manage", "db_sync", "--migrate"}}},
			upgrade.Contracting: {Commands: [][]string{{"keystone-manage", "db_sync", "--contract"}}},
		},
		Rollout: []string{render.ComponentAPI},
	}
	return Service{
		Kind: kind, Name: name, Resource: "keystones", Facts: facts,
		New: func() Object { return &v1alpha1.Keystone{} },
		Workload: func(object Object) render.Workload {
			k, ok := object.(*v1alpha1.Keystone)
			if !ok {
				return render.Workload{}
			}
			spec := k.Spec
			workload := render.Workload{
				Namespace: k.Namespace, Name: k.Name, Service: name, Owner: owner(k, kind),
				Image: spec.Image, Deployment: spec.Deployment, Jobs: spec.Jobs, Security: spec.Security, Database: spec.Database,
				Config: render.INI(spec.ExtraConfig), ConfigDirs: []string{keystoneConfigDir}, ConfigSecrets: spec.ConfigSecretRefs,
				ScratchDirs: []string{"/tmp", "/var/lib/keystone"},
				Command:     launch(spec.APIServer.Command, "keystone.server.wsgi:initialize_public_application()", keystonePort, spec.APIServer.UWSGI, keystoneServer, spec.Deployment), Port: keystonePort, ProbePath: "/healthcheck",
				Tasks: facts.Tasks(),
			}
			workload.Keys = append(keysIn(keystoneFernetDir, spec.FernetKeysSecretRef), keysIn(keystoneCredentialDir, spec.CredentialKeysSecretRef)...)
			if spec.Bootstrap != nil && k.Status.InstalledRelease == "" {
				workload.Install = []render.Command{keystoneBootstrap(*spec.Bootstrap, workload.Endpoint()+"/v3")}
			}
			return workload
		},
	}
}

// keystoneBootstrap makes the first user. It would set back a password that was
// changed since, so it belongs to the first installation alone.
func keystoneBootstrap(spec v1alpha1.BootstrapSpec, address string) render.Command {
	return render.Command{
		Words: []string{"keystone-manage", "bootstrap",
			"--bootstrap-username", cmp.Or(spec.Username, "admin"), "--bootstrap-project-name", cmp.Or(spec.ProjectName, "admin"), "--bootstrap-region-id", cmp.Or(spec.RegionID, "RegionOne"),
			"--bootstrap-public-url", cmp.Or(spec.PublicURL, address), "--bootstrap-internal-url", cmp.Or(spec.InternalURL, address), "--bootstrap-admin-url", cmp.Or(spec.AdminURL, address),
		},
		Env: []corev1.EnvVar{{Name: "OS_BOOTSTRAP_PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: spec.PasswordSecretRef.Name}, Key: cmp.Or(spec.PasswordSecretRef.Key, "password"),
		}}}},
	}
}

func keysIn(dir string, secret *v1alpha1.SecretReference) []render.KeyFiles {
	if secret == nil {
		return nil
	}
	return []render.KeyFiles{{Secret: secret.Name, Dir: dir}}
}
