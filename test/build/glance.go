package build

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// What a Glance has when nothing else is said.
const (
	DefaultRelease    = "2026.1"
	DefaultRepository = "registry.example.org/openstack/glance"
	DatabaseSecretRef = "glance-database"
)

// GlanceOption changes one thing of a Glance.
type GlanceOption func(*v1alpha1.Glance)

// Glance is a Glance of the default release, its image tagged alike, with three replicas.
func Glance(name string, options ...GlanceOption) *v1alpha1.Glance {
	g := &v1alpha1.Glance{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Glance"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.GlanceSpec{
			OpenStackRelease: DefaultRelease,
			Image:            v1alpha1.ImageSpec{Repository: DefaultRepository, Tag: DefaultRelease},
			Deployment:       v1alpha1.DeploymentSpec{Replicas: ptr.To[int32](3)},
			Database:         v1alpha1.DatabaseSpec{SecretRef: v1alpha1.SecretKeyReference{Name: DatabaseSecretRef, Key: "connection"}},
		},
	}
	return Change(g, options...)
}

// Change applies options to an object that exists already, for an update.
func Change(g *v1alpha1.Glance, options ...GlanceOption) *v1alpha1.Glance {
	for _, option := range options {
		option(g)
	}
	return g
}

// Lockstep asks for a release with an image that is tagged alike, as a user who upgrades does.
func Lockstep(release string) GlanceOption {
	return func(g *v1alpha1.Glance) { Release(release)(g); Tag(release)(g) }
}

// In puts the object into a namespace.
func In(namespace string) GlanceOption { return func(g *v1alpha1.Glance) { g.Namespace = namespace } }

// Release asks for a release and leaves the image alone.
func Release(release string) GlanceOption {
	return func(g *v1alpha1.Glance) { g.Spec.OpenStackRelease = release }
}

// Tag asks for the image by tag alone.
func Tag(tag string) GlanceOption {
	return func(g *v1alpha1.Glance) { g.Spec.Image.Tag, g.Spec.Image.Digest = tag, "" }
}

// Digest asks for the image by digest alone.
func Digest(digest string) GlanceOption {
	return func(g *v1alpha1.Glance) { g.Spec.Image.Tag, g.Spec.Image.Digest = "", digest }
}

// Image asks for the image by these fields.
func Image(image v1alpha1.ImageSpec) GlanceOption {
	return func(g *v1alpha1.Glance) { g.Spec.Image = image }
}

// Repository takes the image from elsewhere.
func Repository(repository string) GlanceOption {
	return func(g *v1alpha1.Glance) { g.Spec.Image.Repository = repository }
}

// Replicas asks for this many API pods.
func Replicas(n int32) GlanceOption {
	return func(g *v1alpha1.Glance) { g.Spec.Deployment.Replicas = &n }
}

// AnyReplicas leaves the number of API pods to an autoscaler.
func AnyReplicas() GlanceOption {
	return func(g *v1alpha1.Glance) { g.Spec.Deployment.Replicas = nil }
}

// Strategy rolls the API pods another way than by default.
func Strategy(strategy appsv1.RollingUpdateDeployment) GlanceOption {
	return func(g *v1alpha1.Glance) { g.Spec.Deployment.Strategy = &strategy }
}

// MinReadySeconds makes an API pod wait before it counts as available.
func MinReadySeconds(seconds int32) GlanceOption {
	return func(g *v1alpha1.Glance) { g.Spec.Deployment.MinReadySeconds = seconds }
}

// Grace gives API pods this long to end.
func Grace(seconds int64) GlanceOption {
	return func(g *v1alpha1.Glance) { g.Spec.Deployment.TerminationGracePeriodSeconds = &seconds }
}

// Database reads the database URL from another Secret.
func Database(secret string) GlanceOption {
	return func(g *v1alpha1.Glance) { g.Spec.Database.SecretRef.Name = secret }
}

// Config sets one option of the service.
func Config(section, key, value string) GlanceOption {
	return func(g *v1alpha1.Glance) {
		if g.Spec.ExtraConfig == nil {
			g.Spec.ExtraConfig = map[string]v1alpha1.ConfigSection{}
		}
		if g.Spec.ExtraConfig[section] == nil {
			g.Spec.ExtraConfig[section] = v1alpha1.ConfigSection{}
		}
		g.Spec.ExtraConfig[section][key] = value
	}
}

// JobResources sets what the Job containers ask for.
func JobResources(resources corev1.ResourceRequirements) GlanceOption {
	return func(g *v1alpha1.Glance) { g.Spec.Jobs.Resources = &resources }
}

// JobDeadline ends Jobs that run longer.
func JobDeadline(seconds int64) GlanceOption {
	return func(g *v1alpha1.Glance) { g.Spec.Jobs.ActiveDeadlineSeconds = &seconds }
}

// Labels adds labels to the object itself.
func Labels(labels map[string]string) GlanceOption {
	return func(g *v1alpha1.Glance) {
		if g.Labels == nil {
			g.Labels = map[string]string{}
		}
		for key, value := range labels {
			g.Labels[key] = value
		}
	}
}

// Recorded makes the status hold this state. A create drops it, as it does for every kind with a status subresource.
func Recorded(state upgrade.State) GlanceOption {
	return func(g *v1alpha1.Glance) { g.Status.SetState(state) }
}

// Adjust is for everything that has no word here.
func Adjust(change func(*v1alpha1.Glance)) GlanceOption { return change }
