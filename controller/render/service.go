package render

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Service gives the API a stable address.
func Service(w Workload) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: w.meta(w.Name, ComponentAPI),
		Spec: corev1.ServiceSpec{
			Selector: w.ServiceSelector(),
			Ports:    []corev1.ServicePort{{Name: portName, Port: w.Port, TargetPort: intstr.FromString(portName), Protocol: corev1.ProtocolTCP}},
		},
	}
}

// MergeService puts a rendered Service over the live one.
func MergeService(live, rendered *corev1.Service) (merged *corev1.Service, changes bool) {
	merged = live.DeepCopy()
	changes = mergeMeta(&merged.ObjectMeta, rendered.ObjectMeta)
	if !maps.Equal(live.Spec.Selector, rendered.Spec.Selector) {
		changes = true
		merged.Spec.Selector = rendered.Spec.Selector
	}
	for _, port := range live.Spec.Ports {
		if len(live.Spec.Ports) == 1 && port.Port == rendered.Spec.Ports[0].Port && port.TargetPort == rendered.Spec.Ports[0].TargetPort && port.Name == portName {
			return merged, changes
		}
	}
	merged.Spec.Ports = rendered.Spec.Ports
	return merged, true
}

// ConfigMap holds the configuration files.
func ConfigMap(w Workload) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: w.meta(w.ConfigName(), ComponentAPI), Data: w.files(ComponentAPI)}
}

// MergeConfigMap puts a rendered ConfigMap over the live one.
func MergeConfigMap(live, rendered *corev1.ConfigMap) (merged *corev1.ConfigMap, changes bool) {
	merged = live.DeepCopy()
	changes = mergeMeta(&merged.ObjectMeta, rendered.ObjectMeta)
	if !maps.Equal(live.Data, rendered.Data) {
		changes = true
		merged.Data = rendered.Data
	}
	return merged, changes
}
