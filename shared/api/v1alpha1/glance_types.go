package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Glance is one Image service. Change openStackRelease and the image together
// to upgrade it by one release without taking its API down; set both back to
// abort.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=glances,singular=glance,scope=Namespaced,categories=openstack
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Release",type=string,JSONPath=`.status.installedRelease`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.status.targetRelease`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.upgradePhase`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="DatabaseReady")].reason`
// +kubebuilder:printcolumn:name="Image",type=string,priority=1,JSONPath=`.status.installedImage`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="DatabaseReady")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.size() <= 51",optionalOldSelf=true,message="metadata.name must be 51 characters or fewer, because Job names are made from it"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",optionalOldSelf=true,message="metadata.name must begin with a letter and hold letters, digits and dashes alone, because the Service is named after it"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.upgradePhase) || size(oldSelf.status.upgradePhase) == 0 || self.spec.database == oldSelf.spec.database",message="spec.database cannot change while an upgrade is under way: its phases must all meet the same database; finish or abort it first",fieldPath=".spec.database"
type Glance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what you ask for.
	Spec GlanceSpec `json:"spec"`

	// Status is what the controller has recorded; only it writes here.
	//
	// +optional
	Status GlanceStatus `json:"status,omitempty"`
}

// GlanceSpec is what a user asks for.
type GlanceSpec struct {
	// OpenStackRelease to run, YYYY.1 or YYYY.2. To upgrade, set the release
	// that follows the installed one and change the image in the same edit. To
	// abort an upgrade that is under way, set it back.
	//
	// +kubebuilder:validation:MaxLength=6
	// +kubebuilder:validation:Pattern=`^\d{4}\.[12]$`
	OpenStackRelease string `json:"openStackRelease"`

	// Image that runs the API and the database Jobs.
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

	// APIServer shapes how the API is launched.
	//
	// +optional
	APIServer APIServerSpec `json:"apiServer,omitempty"`

	// Jobs shapes the pods of the database Jobs.
	//
	// +optional
	Jobs JobsSpec `json:"jobs,omitempty"`
}

// APIServerSpec shapes how the API is launched.
type APIServerSpec struct {
	// UWSGI shapes the application server of the default command.
	//
	// +optional
	UWSGI UWSGISpec `json:"uwsgi,omitempty"`

	// Command replaces the launch command, for images that start otherwise.
	// It must serve the API in the foreground on port 9292.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Command []string `json:"command,omitempty"`

	// Workers is deprecated and has no effect on any release; use
	// uwsgi.processes.
	//
	// +optional
	Workers *int32 `json:"workers,omitempty"`
}

// GlanceStatus is what the controller has recorded.
type GlanceStatus struct {
	ServiceStatus `json:",inline"`
}

// GlanceList is a list of Glance objects.
//
// +kubebuilder:object:root=true
type GlanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Glance `json:"items"`
}
