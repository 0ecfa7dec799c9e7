// Package render turns an object into the Kubernetes objects that serve it.
// It is pure: what it is given decides what comes out.
//
// A Workload is the neutral form of a service; nothing here knows which
// OpenStack service it is. API pods and Job pods come from one builder, so
// they cannot drift apart.
package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// Labels and annotations of everything that is rendered.
const (
	LabelManagedBy = "app.kubernetes.io/managed-by"
	LabelName      = "app.kubernetes.io/name"
	LabelInstance  = "app.kubernetes.io/instance"
	LabelComponent = "app.kubernetes.io/component"

	// ManagedBy is the value by which the caches are scoped.
	ManagedBy = "openstack-upgrade"
	// ComponentAPI is the component of the pods that serve.
	ComponentAPI = "api"

	// AnnotationTemplate is a hash of the pod template as rendered.
	AnnotationTemplate = "openstack.c5c3.io/template"
	// AnnotationWork says which schema work a Job was made for.
	AnnotationWork = "openstack.c5c3.io/work"
	// AnnotationRecord is the state that pods were last rolled at.
	AnnotationRecord = "openstack.c5c3.io/recorded-state"
	// AnnotationRelease is the release that a pod was rendered for.
	AnnotationRelease = "openstack.c5c3.io/release"
	// AnnotationImage is the image that a pod template was rendered with. One
	// that runs another was changed by somebody since.
	AnnotationImage = "openstack.c5c3.io/image"
	// annotationConfig makes pods follow a change of their configuration.
	annotationConfig = "openstack.c5c3.io/config"
	// annotationRestarted is set by kubectl rollout restart and is kept.
	annotationRestarted = "kubectl.kubernetes.io/restartedAt"
)

// Workload is one service in neutral form.
type Workload struct {
	Namespace string
	Name      string
	// Service is its short name, such as glance; a label value.
	Service string
	Owner   metav1.OwnerReference

	Image      v1alpha1.ImageSpec
	Deployment v1alpha1.DeploymentSpec
	Jobs       v1alpha1.JobsSpec
	Security   v1alpha1.SecuritySpec
	Database   v1alpha1.DatabaseSpec

	// Env is given to every container, beside the database connection.
	Env []corev1.EnvVar
	// Config is the text of the configuration file; ConfigDirs are the
	// directories that it and the keys of ConfigSecrets appear in.
	Config        string
	ConfigDirs    []string
	ConfigSecrets []v1alpha1.SecretReference
	// Keys are files that the service alone may read.
	Keys []KeyFiles
	// ScratchDirs are writable; nothing else is.
	ScratchDirs []string

	// Command serves the API on Port; ProbePath answers without the database.
	Command   []string
	Port      int32
	ProbePath string
	// Tasks are the command lines of each task, run one after the other.
	Tasks map[upgrade.Task][][]string
	// Install follows the sync of the first installation, and is empty after
	// it. It is no part of the work that a Job is known by.
	Install []Command
}

// KeyFiles are the keys of a Secret as files in a directory.
type KeyFiles struct {
	Secret string
	Dir    string
}

// Command is a command line with an environment of its own.
type Command struct {
	Words []string
	Env   []corev1.EnvVar
}

// ServiceSelector are the labels that pods of the API alone carry.
func (w Workload) ServiceSelector() map[string]string {
	return w.labels(ComponentAPI)
}

// Endpoint is the URL of the API inside the cluster.
func (w Workload) Endpoint() string {
	return fmt.Sprintf("http://%s.%s.svc:%d", w.Name, w.Namespace, w.Port)
}

// ConfigName is the name of the ConfigMap.
func (w Workload) ConfigName() string { return w.Name + "-config" }

func (w Workload) labels(component string) map[string]string {
	return map[string]string{LabelManagedBy: ManagedBy, LabelName: w.Service, LabelInstance: w.Name, LabelComponent: component}
}

func (w Workload) meta(name, component string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.Namespace, Name: name, Labels: w.labels(component), OwnerReferences: []metav1.OwnerReference{w.Owner}}
}

// hash is a short stable fingerprint of anything that marshals.
func hash(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		// Only API types come here, and they marshal.
		raw = fmt.Appendf(nil, "%#v", value)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}
