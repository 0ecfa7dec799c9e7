package render

import (
	"encoding/json"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

const (
	firstReplicas   int32 = 3
	apiGraceSeconds int64 = 60
	// drainSeconds is how long an ending pod goes on serving, so that every
	// node has taken it out of the Service before it stops.
	drainSeconds int64 = 10
	// progressSeconds is how long a rollout may make no progress before the
	// Deployment says so.
	progressSeconds int32 = 600
	portName              = "api"
)

// Deployment serves the API with an image. record is the state to find again
// should the status be lost.
func Deployment(w Workload, image string, record upgrade.State) *appsv1.Deployment {
	meta := w.meta(w.Name, ComponentAPI)
	meta.Annotations = map[string]string{AnnotationRecord: Record(record)}
	deadline := w.Deployment.MinReadySeconds + progressSeconds
	return &appsv1.Deployment{
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas:        w.Deployment.Replicas,
			MinReadySeconds: w.Deployment.MinReadySeconds,
			Selector:        &metav1.LabelSelector{MatchLabels: w.ServiceSelector()},
			Strategy:        appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: w.strategy()},
			Template:        w.template(image, servedBy(record)),
			// Kubernetes wants more patience for the whole than for one pod.
			ProgressDeadlineSeconds: &deadline,
		},
	}
}

// servedBy is the release that pods serve in a state.
func servedBy(record upgrade.State) string {
	if record.Target != "" {
		return record.Target
	}
	return record.Installed
}

// Creation is a rendered Deployment with what is written only once.
func Creation(rendered *appsv1.Deployment) *appsv1.Deployment {
	first := rendered.DeepCopy()
	if first.Spec.Replicas == nil {
		replicas := firstReplicas
		first.Spec.Replicas = &replicas
	}
	return first
}

// Merge puts a rendered Deployment over the live one. It leaves alone what it
// does not render (replicas that an autoscaler owns, a restart that a person
// asked for), and changes is false when live is as it should be. The note of
// the recorded state is written along; renote makes it a reason to write.
func Merge(live, rendered *appsv1.Deployment, renote bool) (merged *appsv1.Deployment, changes bool) {
	meta := *live.ObjectMeta.DeepCopy()
	template := !UpToDate(live, rendered)
	scale := rendered.Spec.Replicas != nil && (live.Spec.Replicas == nil || *live.Spec.Replicas != *rendered.Spec.Replicas)
	pace := live.Spec.MinReadySeconds != rendered.Spec.MinReadySeconds || !equality.Semantic.DeepEqual(live.Spec.Strategy, rendered.Spec.Strategy)
	if claim := mergeMeta(&meta, rendered.ObjectMeta); !claim && !template && !scale && !pace && !renote {
		return live, false // copied for nothing by every look otherwise
	}
	merged = live.DeepCopy()
	merged.ObjectMeta = meta
	if template {
		renewed := *rendered.Spec.Template.DeepCopy()
		if at, restarted := live.Spec.Template.Annotations[annotationRestarted]; restarted && renewed.Annotations[annotationRestarted] == "" {
			renewed.Annotations[annotationRestarted] = at
		}
		merged.Spec.Template = renewed
	}
	if scale {
		merged.Spec.Replicas = rendered.Spec.Replicas
	}
	if pace {
		merged.Spec.MinReadySeconds, merged.Spec.Strategy = rendered.Spec.MinReadySeconds, rendered.Spec.Strategy
		merged.Spec.ProgressDeadlineSeconds = rendered.Spec.ProgressDeadlineSeconds
	}
	if merged.Annotations == nil {
		merged.Annotations = map[string]string{}
	}
	merged.Annotations[AnnotationRecord] = rendered.Annotations[AnnotationRecord]
	return merged, true
}

// UpToDate tells whether the live pod template is the rendered one.
func UpToDate(live, rendered *appsv1.Deployment) bool {
	return live.Spec.Template.Annotations[AnnotationTemplate] == rendered.Spec.Template.Annotations[AnnotationTemplate] &&
		equality.Semantic.DeepDerivative(rendered.Spec.Template, live.Spec.Template)
}

// mergeMeta brings our labels and owner back where someone took them away.
func mergeMeta(live *metav1.ObjectMeta, rendered metav1.ObjectMeta) (changes bool) {
	for key, value := range rendered.Labels {
		if live.Labels[key] != value {
			changes = true
			if live.Labels == nil {
				live.Labels = map[string]string{}
			}
			live.Labels[key] = value
		}
	}
	if metav1.GetControllerOfNoCopy(live) == nil {
		changes = true
		live.OwnerReferences = append(live.OwnerReferences, rendered.OwnerReferences...)
	}
	return changes
}

// Changed tells whether somebody has given a pod template another image than
// it was rendered with. Of a pod it does not tell: a cluster may rewrite those.
func Changed(template corev1.PodTemplateSpec) bool {
	claimed, claims := template.Annotations[AnnotationImage]
	for _, container := range template.Spec.Containers {
		if claims && container.Name == ComponentAPI && container.Image != claimed {
			return true
		}
	}
	return false
}

// DatabaseOf is the Secret and key that a pod template takes its database
// connection from, as Workload.DatabaseName writes them.
func DatabaseOf(template corev1.PodTemplateSpec) string {
	for _, container := range template.Spec.Containers {
		for _, env := range container.Env {
			if container.Name == ComponentAPI && env.Name == databaseEnv && env.ValueFrom != nil && env.ValueFrom.SecretKeyRef != nil {
				return env.ValueFrom.SecretKeyRef.Name + "/" + env.ValueFrom.SecretKeyRef.Key
			}
		}
	}
	return ""
}

func (w Workload) strategy() *appsv1.RollingUpdateDeployment {
	none, one := intstr.FromInt32(0), intstr.FromInt32(1)
	strategy := &appsv1.RollingUpdateDeployment{MaxUnavailable: &none, MaxSurge: &one}
	if asked := w.Deployment.Strategy; asked != nil {
		if asked.MaxUnavailable != nil {
			strategy.MaxUnavailable = asked.MaxUnavailable
		}
		if asked.MaxSurge != nil {
			strategy.MaxSurge = asked.MaxSurge
		}
	}
	return strategy
}

func (w Workload) template(image, release string) corev1.PodTemplateSpec {
	grace, drain := ending(w.Deployment)
	probe := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: w.ProbePath, Port: intstr.FromString(portName)}}
	container := corev1.Container{
		Name:      ComponentAPI,
		Command:   slices.Clone(w.Command),
		Resources: w.Deployment.Resources,
		Ports:     []corev1.ContainerPort{{Name: portName, ContainerPort: w.Port, Protocol: corev1.ProtocolTCP}},
		// Numbers that the API server would fill in are given, so that a comparison
		// with what is stored finds no difference. A start may take minutes on a busy node; after that, only a process
		// that no longer accepts connections is worth a restart.
		StartupProbe:   &corev1.Probe{ProbeHandler: probe, PeriodSeconds: 2, TimeoutSeconds: 5, FailureThreshold: 150, SuccessThreshold: 1},
		ReadinessProbe: &corev1.Probe{ProbeHandler: probe, PeriodSeconds: 5, TimeoutSeconds: 5, FailureThreshold: 3, SuccessThreshold: 1},
		LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString(portName)}},
			PeriodSeconds: 20, TimeoutSeconds: 10, FailureThreshold: 6, SuccessThreshold: 1},
		Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: drain}}},
	}
	pod := w.podSpec(ComponentAPI, image, w.Deployment.Placement, container)
	pod.TopologySpreadConstraints = w.Deployment.TopologySpreadConstraints
	pod.TerminationGracePeriodSeconds = &grace
	meta := w.podMeta(ComponentAPI, w.Deployment.PodLabels, w.Deployment.PodAnnotations)
	meta.Annotations[AnnotationRelease] = release
	meta.Annotations[AnnotationImage] = image
	return seal(corev1.PodTemplateSpec{ObjectMeta: meta, Spec: pod})
}

// ending divides the time that a pod has to end: first it goes on serving,
// then it finishes the requests it holds.
func ending(spec v1alpha1.DeploymentSpec) (grace, drain int64) {
	grace = apiGraceSeconds
	if spec.TerminationGracePeriodSeconds != nil {
		grace = *spec.TerminationGracePeriodSeconds
	}
	return grace, min(drainSeconds, grace/6)
}

// DrainMercy is how long an API server may take to finish the requests it
// holds once it is told to end, in seconds.
func DrainMercy(spec v1alpha1.DeploymentSpec) int64 {
	grace, drain := ending(spec)
	return max(grace-drain-2, 1)
}

// Record writes a state for AnnotationRecord.
func Record(s upgrade.State) string {
	raw, err := json.Marshal(note{s.Installed, s.InstalledImage, s.Target, s.TargetImage, s.Phase, s.AbortedImage, s.Ahead, s.Attempt, s.ContractBegun})
	if err != nil {
		return ""
	}
	return string(raw)
}

// ReadRecord reads what Record wrote; false when it is not there or cannot be
// read.
func ReadRecord(text string) (upgrade.State, bool) {
	var n note
	if text == "" || json.Unmarshal([]byte(text), &n) != nil {
		return upgrade.State{}, false
	}
	return upgrade.State{Installed: n.InstalledRelease, InstalledImage: n.InstalledImage, Target: n.TargetRelease, TargetImage: n.TargetImage,
		Phase: n.Phase, AbortedImage: n.AbortedImage, Ahead: n.Ahead, Attempt: n.Attempt, ContractBegun: n.ContractBegun}, true
}

type note struct {
	InstalledRelease string        `json:"installedRelease,omitempty"`
	InstalledImage   string        `json:"installedImage,omitempty"`
	TargetRelease    string        `json:"targetRelease,omitempty"`
	TargetImage      string        `json:"targetImage,omitempty"`
	Phase            upgrade.Phase `json:"upgradePhase,omitempty"`
	AbortedImage     string        `json:"abortedImage,omitempty"`
	Ahead            string        `json:"expandedRelease,omitempty"`
	Attempt          int64         `json:"upgradeAttempt,omitempty"`
	ContractBegun    bool          `json:"contractBegun,omitempty"`
}
