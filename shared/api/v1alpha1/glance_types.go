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
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.size() <= 51",optionalOldSelf=true,fieldPath=".metadata",message="NameTooLong: metadata.name can have 51 characters",messageExpression=`self.spec.openStackRelease.matches("^[0-9]{4}[.][12]$") && (!has(self.spec.image.tag) || !self.spec.image.tag.matches("^[0-9]{4}[.][12](-.+)?$") || self.spec.image.tag.startsWith(self.spec.openStackRelease)) && self.metadata.name.matches("^[a-z]([-a-z0-9]*[a-z0-9])?$") ? "NameTooLong: metadata.name has %d characters, 51 are possible: the Jobs of an upgrade are named after it (…-db-contract). To take a shorter one, with the -n that you used: kubectl patch -f FILE --local --type=merge -p '{\"metadata\":{\"name\":\"%sx\"}}' -o yaml | kubectl apply -f -".format([size(self.metadata.name), self.metadata.name.substring(0, 50)]) : "NameTooLong: metadata.name has %d characters, 51 are possible: the Jobs of an upgrade are named after it (…-db-contract). Choose a shorter one".format([size(self.metadata.name)])`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",optionalOldSelf=true,fieldPath=".metadata",message="NameInvalid: metadata.name must begin with a letter and hold letters, digits and dashes alone: the Service is named after it"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.spec.openStackRelease.matches('^[0-9]{4}[.][12]$')",optionalOldSelf=true,fieldPath=".spec.openStackRelease",message="VersionParseError: it must be YYYY.1 or YYYY.2, such as 2026.1",messageExpression=`has(self.spec.image.tag) && self.spec.image.tag.matches("^[0-9]{4}[.][12](-.+)?$") && self.metadata.name.matches("^[a-z]([-a-z0-9]{0,49}[a-z0-9])?$") ? "VersionParseError: \"%s\" is not a release: it must be YYYY.1 or YYYY.2, such as 2026.1. To ask for the release that tag %s names, with the -n that you used: kubectl patch -f FILE --local --type=merge -p '{\"spec\":{\"openStackRelease\":\"%s\"}}' -o yaml | kubectl %s -f -".format([self.spec.openStackRelease, self.spec.image.tag, self.spec.image.tag.substring(0, 6), has(self.metadata.generateName) ? "create" : "apply"]) : "VersionParseError: \"%s\" is not a release: it must be YYYY.1 or YYYY.2, such as 2026.1. Set it to the release that the image holds".format([self.spec.openStackRelease])`
// +kubebuilder:validation:XValidation:rule="self.spec.openStackRelease == oldSelf.spec.openStackRelease || self.spec.openStackRelease.matches('^[0-9]{4}[.][12]$')",fieldPath=".spec.openStackRelease",message="VersionParseError: it must be YYYY.1 or YYYY.2, such as 2026.1",messageExpression=`"VersionParseError: \"%s\" is not a release: it must be YYYY.1 or YYYY.2, such as 2026.1; %s is installed. To stay at %s, with the -n that you used: kubectl patch glance %s --type=merge -p '{\"spec\":{\"openStackRelease\":\"%s\"}}'".format([self.spec.openStackRelease, has(self.status) && has(self.status.installedRelease) ? self.status.installedRelease : "nothing", oldSelf.spec.openStackRelease, self.metadata.name, oldSelf.spec.openStackRelease])`
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
	// +kubebuilder:validation:MaxLength=64
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
