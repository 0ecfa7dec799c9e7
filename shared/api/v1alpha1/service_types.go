package v1alpha1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxNameLength is the longest name an object may have: the longest Job name
// made from it is a label value, and those end at 63 characters.
const MaxNameLength = 63 - len("-db-contract")

// NamePattern is what a name looks like: the Service is named after it, and
// cannot hold a dot or begin with a digit.
const NamePattern = `^[a-z]([-a-z0-9]*[a-z0-9])?$`

// ImageSpec names the container image that runs both the API and the
// database Jobs.
//
// +kubebuilder:validation:XValidation:rule="has(self.tag) || has(self.digest)",message="name the image by tag, digest or both"
type ImageSpec struct {
	// Repository of the image, without tag and digest, such as
	// registry.example.org:5000/openstack/glance.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^(\[[0-9a-fA-F:]+\](:[0-9]+)?/|[A-Za-z0-9.-]+(:[0-9]+)?/)?[a-z0-9._-]+(/[a-z0-9._-]+)*$`
	Repository string `json:"repository"`

	// Tag of the image. A tag YYYY.N or YYYY.N-suffix (2026.1, 2026.1-p1)
	// names a release, and must name the one in openStackRelease where the kind
	// has that field. Any other tag (latest, v2026.1) names none and is trusted.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`
	Tag string `json:"tag,omitempty"`

	// Digest of the image, sha256:… . It decides what runs, also when a tag
	// is given beside it.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^sha256:[a-f0-9]{64}$`
	Digest string `json:"digest,omitempty"`

	// PullPolicy of every container; Kubernetes chooses when it is unset.
	//
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	PullPolicy corev1.PullPolicy `json:"pullPolicy,omitempty"`

	// PullSecrets are Secrets in the object's namespace with credentials for
	// the registry.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	PullSecrets []SecretReference `json:"pullSecrets,omitempty"`
}

// LabelValue is the value of a label: at most 63 letters, digits, dots, dashes
// and underscores, beginning and ending with a letter or digit.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
type LabelValue string

// Placement says on which nodes pods may run.
type Placement struct {
	// NodeSelector restricts the pods to nodes with these labels.
	//
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations of the pods for node taints.
	//
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// Affinity of the pods to nodes and to other pods.
	//
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// PriorityClassName of the pods.
	//
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// DeploymentSpec shapes the pods that serve the API.
type DeploymentSpec struct {
	// Replicas of the API. Unset means 3 when the Deployment is created and
	// never written again, so that an autoscaler can own the number.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// Strategy of the rolling update; unset means maxUnavailable 0 and
	// maxSurge 1, so that a new pod is ready before an old one goes.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!(has(self.maxSurge) && has(self.maxUnavailable) && string(self.maxSurge) in ['0', '0%'] && string(self.maxUnavailable) in ['0', '0%'])",message="maxSurge and maxUnavailable cannot both be 0"
	Strategy *appsv1.RollingUpdateDeployment `json:"strategy,omitempty"`

	// MinReadySeconds a new pod must be ready before it counts as available.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// TerminationGracePeriodSeconds gives requests in flight time to finish
	// when a pod ends; unset means 60. A sixth of it, 10 at most, is spent on
	// being taken out of the Service.
	//
	// +optional
	// +kubebuilder:validation:Minimum=6
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`

	// Resources of the API container.
	//
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	Placement `json:",inline"`

	// TopologySpreadConstraints of the API pods.
	//
	// +optional
	// +listType=atomic
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// PodLabels are added to the API pods. Labels that this product sets
	// itself cannot be replaced.
	//
	// +optional
	PodLabels map[string]LabelValue `json:"podLabels,omitempty"`

	// PodAnnotations are added to the API pods.
	//
	// +optional
	PodAnnotations map[string]string `json:"podAnnotations,omitempty"`
}

// SecretReference names a Secret in the object's namespace.
type SecretReference struct {
	// Name of the Secret.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// SecretKeyReference points at one key of a Secret in the object's namespace.
type SecretKeyReference struct {
	// Name of the Secret.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Key in the Secret.
	//
	// +optional
	// +kubebuilder:default=connection
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// PasswordReference points at one key of a Secret in the object's namespace.
type PasswordReference struct {
	// Name of the Secret.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Key in the Secret.
	//
	// +optional
	// +kubebuilder:default=password
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// DatabaseSpec says where the service keeps its data.
type DatabaseSpec struct {
	// SecretRef points at an SQLAlchemy URL such as
	// mysql+pymysql://user:password@host/database. Containers get it from the
	// kubelet; the controller never reads it. Point it at one writer: in a
	// cluster with lagging nodes a phase must see what the one before it wrote.
	SecretRef SecretKeyReference `json:"secretRef"`
}

// JobsSpec shapes the pods of the database Jobs.
type JobsSpec struct {
	// Resources of the Job containers; unset means requests and limits that
	// pass a namespace quota: 100m CPU and 256Mi memory asked, 1 CPU and 1Gi
	// at most.
	//
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	Placement `json:",inline"`

	// PodLabels are added to the Job pods, for example to keep a service mesh
	// from injecting a sidecar that never ends.
	//
	// +optional
	PodLabels map[string]LabelValue `json:"podLabels,omitempty"`

	// PodAnnotations are added to the Job pods.
	//
	// +optional
	PodAnnotations map[string]string `json:"podAnnotations,omitempty"`

	// ActiveDeadlineSeconds ends a Job that runs longer. Unset means no
	// limit: schema changes are not transactional, and one that is killed
	// half-way is worse than a slow one.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
}

// ConfigSection is one section of a configuration file: option and value.
//
// +kubebuilder:validation:MaxProperties=256
type ConfigSection map[string]string

// SecuritySpec says as whom containers run. Everything else of their security
// context is fixed to what Pod Security "restricted" asks for.
type SecuritySpec struct {
	// RunAsUser is the user id of every container. Set it when the image names
	// its user by name, which Kubernetes cannot tell from root.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	RunAsUser *int64 `json:"runAsUser,omitempty"`

	// RunAsGroup is the group id of every container.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	RunAsGroup *int64 `json:"runAsGroup,omitempty"`

	// FSGroup owns the volumes. Where keys are mounted and it is unset, a group
	// is chosen that lets the service read them, and nobody else.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	FSGroup *int64 `json:"fsGroup,omitempty"`
}

// UWSGISpec shapes the application server.
type UWSGISpec struct {
	// Processes that serve requests; unset means 2 for a Glance, 4 for a
	// Keystone.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=512
	Processes int32 `json:"processes,omitempty"`

	// Threads of each process; unset means 4 for a Glance, 1 for a Keystone: its
	// processes refuse with 403 what a second thread is asked while the first one
	// reads the policy.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=512
	Threads int32 `json:"threads,omitempty"`

	// ListenQueue is the length of the queue of connections not yet accepted;
	// unset leaves the server's own default.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	ListenQueue int32 `json:"listenQueue,omitempty"`

	// ExtraArgs are added to the command line as they are.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ExtraArgs []string `json:"extraArgs,omitempty"`
}

// ServiceStatus is what the controller has recorded. It is the memory of a
// walk: restore it together with the spec, or let the controller adopt what
// it noted on the Deployment.
type ServiceStatus struct {
	// InstalledRelease is the release of the schema and the pods. During an
	// upgrade it is the release before it; it is promoted only when contract
	// has completed. A kind whose image tag names the release has the tag here,
	// and the tag or digest that runs where none has ever named one.
	//
	// +optional
	InstalledRelease string `json:"installedRelease,omitempty"`

	// TargetRelease is the release that is being walked to, or the tag that
	// names it; empty when no upgrade is active.
	//
	// +optional
	TargetRelease string `json:"targetRelease,omitempty"`

	// UpgradePhase is Expanding, Migrating, RollingUpdate or Contracting;
	// empty when no upgrade is active.
	//
	// +optional
	UpgradePhase string `json:"upgradePhase,omitempty"`

	// InstalledImage is the image that serves the installed release. Pods go
	// back to it when an upgrade is aborted.
	//
	// +optional
	InstalledImage string `json:"installedImage,omitempty"`

	// TargetImage is the image pinned when the upgrade began; every phase Job
	// and the rolling update use it. Empty when no upgrade is active.
	//
	// +optional
	TargetImage string `json:"targetImage,omitempty"`

	// ExpandedRelease is the release that an upgrade has expanded, or is
	// expanding, the database for, where the tools of the installed release
	// cannot read such a database. It outlasts an abort: nothing is synced until
	// an upgrade to that release completes. After restoring a backup that was
	// made before the upgrade, remove it.
	//
	// +optional
	ExpandedRelease string `json:"expandedRelease,omitempty"`

	// AbortedImage is the target image of the last upgrade that was aborted.
	// It is never taken for a build of the installed release. For a kind whose
	// image tag names the release it may also be the image before the last
	// upgrade, if it can be asked for without such a tag.
	//
	// +optional
	AbortedImage string `json:"abortedImage,omitempty"`

	// UpgradeAttempt is the generation of the object that began the last
	// upgrade, or that made it start over with another image.
	//
	// +optional
	UpgradeAttempt int64 `json:"upgradeAttempt,omitempty"`

	// ContractBegun is set when an upgrade was started over with another image
	// after its contract had begun. Aborting it is then as dangerous as in
	// phase Contracting.
	//
	// +optional
	ContractBegun bool `json:"contractBegun,omitempty"`

	// PhaseStartTime is when the current phase began.
	//
	// +optional
	PhaseStartTime *metav1.Time `json:"phaseStartTime,omitempty"`

	// Endpoint is the URL of the API inside the cluster.
	//
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// ObservedGeneration is the generation of the spec that this status is
	// about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are DatabaseReady, DeploymentReady and Ready. The message of
	// DatabaseReady tells where an upgrade stands and what it waits for.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
