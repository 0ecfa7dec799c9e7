package render

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
)

// databaseEnv is where oslo.config looks for the connection before any file.
const databaseEnv = "OS_DATABASE__CONNECTION"

const configVolume = "config"

const (
	// keysGroup is the group that key files belong to unless one is asked for. It
	// is given to the containers beside their own, whoever they run as.
	keysGroup int64 = 42425
	// keysMode lets that group read them, and nobody else.
	keysMode int32 = 0o440
)

// podSpec is what API pods and Job pods share: the image, the configuration,
// the database, and a security context that passes Pod Security "restricted".
func (w Workload) podSpec(component, image string, placement v1alpha1.Placement, containers ...corev1.Container) corev1.PodSpec {
	no, yes := false, true
	for i := range containers {
		c := &containers[i]
		c.Image = image
		c.ImagePullPolicy = w.Image.PullPolicy
		c.Env = append(w.env(), c.Env...)
		c.VolumeMounts = w.mounts()
		c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
		c.SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, RunAsNonRoot: &yes,
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
	}
	return corev1.PodSpec{
		Containers:                   containers,
		Volumes:                      w.volumes(component),
		ImagePullSecrets:             w.pullSecrets(),
		AutomountServiceAccountToken: &no,
		EnableServiceLinks:           &no,
		NodeSelector:                 placement.NodeSelector,
		Tolerations:                  placement.Tolerations,
		Affinity:                     placement.Affinity,
		PriorityClassName:            placement.PriorityClassName,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: &yes, RunAsUser: w.Security.RunAsUser, RunAsGroup: w.Security.RunAsGroup, FSGroup: w.fsGroup(),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
}

func (w Workload) fsGroup() *int64 {
	if w.Security.FSGroup != nil || len(w.Keys) == 0 {
		return w.Security.FSGroup
	}
	group := keysGroup
	return &group
}

func (w Workload) pullSecrets() []corev1.LocalObjectReference {
	var secrets []corev1.LocalObjectReference
	for _, secret := range w.Image.PullSecrets {
		secrets = append(secrets, corev1.LocalObjectReference{Name: secret.Name})
	}
	return secrets
}

// env names a user, because a container may run as one that its image does not
// know, and database drivers ask who they are before they read the connection.
func (w Workload) env() []corev1.EnvVar {
	return append([]corev1.EnvVar{{
		Name: databaseEnv,
		ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: w.Database.SecretRef.Name},
			Key:                  w.databaseKey(),
		}},
	}, {Name: "USER", Value: w.Service}}, w.Env...)
}

// DatabaseName is the Secret and the key with the database connection.
func (w Workload) DatabaseName() string { return w.Database.SecretRef.Name + "/" + w.databaseKey() }

func (w Workload) databaseKey() string {
	if w.Database.SecretRef.Key == "" {
		return "connection"
	}
	return w.Database.SecretRef.Key
}

func (w Workload) mounts() []corev1.VolumeMount {
	var mounts []corev1.VolumeMount
	for _, dir := range w.ConfigDirs {
		mounts = append(mounts, corev1.VolumeMount{Name: configVolume, MountPath: dir, ReadOnly: true})
	}
	for i, keys := range w.Keys {
		mounts = append(mounts, corev1.VolumeMount{Name: keysVolume(i), MountPath: keys.Dir, ReadOnly: true})
	}
	for i, dir := range w.ScratchDirs {
		mounts = append(mounts, corev1.VolumeMount{Name: scratchVolume(i), MountPath: dir})
	}
	return mounts
}

func (w Workload) volumes(component string) []corev1.Volume {
	var files []corev1.KeyToPath
	for _, file := range slices.Sorted(maps.Keys(w.files(component))) {
		files = append(files, corev1.KeyToPath{Key: file, Path: file})
	}
	sources := []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: w.ConfigName()}, Items: files}}}
	for _, secret := range w.ConfigSecrets {
		sources = append(sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: secret.Name}}})
	}
	volumes := []corev1.Volume{{Name: configVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}}}
	for i, keys := range w.Keys {
		mode := keysMode
		volumes = append(volumes, corev1.Volume{Name: keysVolume(i), VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: keys.Secret, DefaultMode: &mode}}})
	}
	for i := range w.ScratchDirs {
		volumes = append(volumes, corev1.Volume{Name: scratchVolume(i), VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}
	return volumes
}

func keysVolume(i int) string { return fmt.Sprintf("keys-%d", i) }

func scratchVolume(i int) string { return fmt.Sprintf("scratch-%d", i) }

// podMeta puts our labels over the user's, never the other way round.
func (w Workload) podMeta(component string, labels map[string]v1alpha1.LabelValue, annotations map[string]string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Labels: map[string]string{}, Annotations: map[string]string{}}
	for key, value := range labels {
		meta.Labels[key] = string(value)
	}
	maps.Copy(meta.Labels, w.labels(component))
	maps.Copy(meta.Annotations, annotations)
	meta.Annotations[annotationConfig] = hash([]any{w.files(component), w.ConfigSecrets})
	return meta
}

// seal notes the hash of a template on itself.
func seal(template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	template.Annotations[AnnotationTemplate] = hash(template)
	return template
}

// jobResources keep a Job inside a namespace quota that asks for limits.
func jobResources(asked *corev1.ResourceRequirements) corev1.ResourceRequirements {
	if asked != nil {
		return *asked
	}
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")},
	}
}
