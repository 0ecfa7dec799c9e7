package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Keystone is one Identity service. The tag of its image names the release:
// change it to upgrade by one release without taking the API down; set it back
// to abort.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=keystones,singular=keystone,scope=Namespaced,categories=openstack
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Release",type=string,JSONPath=`.status.installedRelease`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.status.targetRelease`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.upgradePhase`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="DatabaseReady")].reason`
// +kubebuilder:printcolumn:name="Image",type=string,priority=1,JSONPath=`.status.installedImage`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="DatabaseReady")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.size() <= 51",optionalOldSelf=true,fieldPath=".metadata",message="NameTooLong: metadata.name can have 51 characters",messageExpression=`self.metadata.name.matches("^[a-z]([-a-z0-9]*[a-z0-9])?$") ? "NameTooLong: metadata.name has %d characters, 51 are possible: the Jobs of an upgrade are named after it (…-db-contract). To take a shorter one, with the -n that you used: kubectl patch -f FILE --local --type=merge -p '{\"metadata\":{\"name\":\"%sx\"}}' -o yaml | kubectl apply -f -".format([size(self.metadata.name), self.metadata.name.substring(0, 50)]) : "NameTooLong: metadata.name has %d characters, 51 are possible: the Jobs of an upgrade are named after it (…-db-contract). Choose a shorter one".format([size(self.metadata.name)])`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",optionalOldSelf=true,fieldPath=".metadata",message="NameInvalid: metadata.name must begin with a letter and hold letters, digits and dashes alone: the Service is named after it"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.upgradePhase) || size(oldSelf.status.upgradePhase) == 0 || self.spec.database == oldSelf.spec.database",message="spec.database cannot change while an upgrade is under way: its phases must all meet the same database; finish or abort it first",fieldPath=".spec.database"
type Keystone struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what you ask for.
	Spec KeystoneSpec `json:"spec"`

	// Status is what the controller has recorded; only it writes here.
	//
	// +optional
	Status KeystoneStatus `json:"status,omitempty"`
}

// KeystoneSpec is what a user asks for.
type KeystoneSpec struct {
	// Image that runs the API and the database Jobs. Its tag names the release,
	// YYYY.1 or YYYY.2, alone or before a suffix: 2026.1, 2026.1-p1. To upgrade,
	// set the tag of the release that follows the installed one. Another suffix
	// is a patch of the same release. A digest alone, and a tag that names no
	// release, is taken for a build of the installed one.
	Image ImageSpec `json:"image"`

	// Deployment shapes the pods of the API.
	//
	// +optional
	Deployment DeploymentSpec `json:"deployment,omitempty"`

	// Database says where the service keeps its data.
	Database DatabaseSpec `json:"database"`

	// ExtraConfig is rendered into a configuration file: section, key, value.
	// Do not put credentials here; use configSecretRefs.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	// +kubebuilder:validation:XValidation:rule="self.all(section, section.matches(r'^[^\\s\\[\\]]+$') && self[section].all(option, option.matches(r'^[^\\s=:\\[\\]#;]+$')))",message="section and option names must be single words without brackets, equal signs and colons"
	ExtraConfig map[string]ConfigSection `json:"extraConfig,omitempty"`

	// ConfigSecretRefs are Secrets whose keys become further configuration
	// files, each named *.conf and read in alphabetical order after ExtraConfig.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ConfigSecretRefs []SecretReference `json:"configSecretRefs,omitempty"`

	// Security says as whom the containers run.
	//
	// +optional
	Security SecuritySpec `json:"security,omitempty"`

	// FernetKeysSecretRef is the Secret whose keys (0, 1, …) are the fernet keys
	// that tokens are made with. They appear as files in
	// /etc/keystone/fernet-keys and follow the Secret. Only the kubelet reads it.
	// Without it the image must bring keys of its own, or extraConfig another
	// token provider.
	//
	// +optional
	FernetKeysSecretRef *SecretReference `json:"fernetKeysSecretRef,omitempty"`

	// CredentialKeysSecretRef is the Secret with the keys that stored credentials
	// are encrypted with, as files in /etc/keystone/credential-keys.
	//
	// +optional
	CredentialKeysSecretRef *SecretReference `json:"credentialKeysSecretRef,omitempty"`

	// Bootstrap makes the first user, once, as part of the first installation:
	// the Job that creates the schema goes on with keystone-manage bootstrap. A
	// later change has no effect, and nothing resets a password that was changed.
	//
	// +optional
	Bootstrap *BootstrapSpec `json:"bootstrap,omitempty"`

	// APIServer shapes how the API is launched.
	//
	// +optional
	APIServer KeystoneAPIServerSpec `json:"apiServer,omitempty"`

	// Jobs shapes the pods of the database Jobs.
	//
	// +optional
	Jobs JobsSpec `json:"jobs,omitempty"`
}

// BootstrapSpec says whom and what keystone-manage bootstrap makes.
type BootstrapSpec struct {
	// PasswordSecretRef is the password of the first user. Only the kubelet
	// reads it.
	PasswordSecretRef PasswordReference `json:"passwordSecretRef"`

	// Username of the first user.
	//
	// +optional
	// +kubebuilder:default=admin
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Username string `json:"username,omitempty"`

	// ProjectName is the project that the first user administers.
	//
	// +optional
	// +kubebuilder:default=admin
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ProjectName string `json:"projectName,omitempty"`

	// RegionID of the endpoints.
	//
	// +optional
	// +kubebuilder:default=RegionOne
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	RegionID string `json:"regionID,omitempty"`

	// PublicURL is the endpoint that the catalog has for everybody; unset, as for
	// the two below, means the address of the Service.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	PublicURL string `json:"publicURL,omitempty"`

	// InternalURL is for clients within the cloud.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	InternalURL string `json:"internalURL,omitempty"`

	// AdminURL is for administrators.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	AdminURL string `json:"adminURL,omitempty"`
}

// KeystoneAPIServerSpec shapes how the API is launched.
type KeystoneAPIServerSpec struct {
	// UWSGI shapes the application server of the default command.
	//
	// +optional
	UWSGI UWSGISpec `json:"uwsgi,omitempty"`

	// Command replaces the launch command, for images that start otherwise.
	// It must serve the API in the foreground on port 5000.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Command []string `json:"command,omitempty"`
}

// KeystoneStatus is what the controller has recorded.
type KeystoneStatus struct {
	ServiceStatus `json:",inline"`
}

// KeystoneList is a list of Keystone objects.
//
// +kubebuilder:object:root=true
type KeystoneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Keystone `json:"items"`
}
