package harness

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lack is what a pod refers to and does not get. A volume that cannot be mounted is told by an event alone.
type lack struct{ event, message string }

// need is one reference of a pod.
type need struct {
	kind, name string
	keys       []string
	optional   bool
	volume     string
}

// missing is the first thing that a pod refers to and that is not there, in the words of a kubelet.
func (k *Kubelet) missing(ctx context.Context, pod *corev1.Pod) (*lack, error) {
	for _, n := range needs(pod) {
		keys, err := k.keysOf(ctx, pod.Namespace, n)
		switch {
		case apierrors.IsNotFound(err) && n.optional:
			continue
		case apierrors.IsNotFound(err) && n.volume != "":
			return &lack{"FailedMount", fmt.Sprintf("MountVolume.SetUp failed for volume %q : %s %q not found", n.volume, lower[n.kind], n.name)}, nil
		case apierrors.IsNotFound(err):
			return &lack{message: fmt.Sprintf("%s %q not found", lower[n.kind], n.name)}, nil
		case err != nil:
			return nil, fmt.Errorf("look for what the pod refers to: %w", err)
		}
		for _, key := range n.keys {
			switch {
			case slices.Contains(keys, key) || n.optional:
			case n.volume != "":
				return &lack{"FailedMount", fmt.Sprintf("MountVolume.SetUp failed for volume %q : references non-existent config key: %s", n.volume, key)}, nil
			default:
				return &lack{message: fmt.Sprintf("couldn't find key %s in %s %s/%s", key, n.kind, pod.Namespace, n.name)}, nil
			}
		}
	}
	return nil, nil
}

const (
	secret    = "Secret"
	configMap = "ConfigMap"
)

var lower = map[string]string{secret: "secret", configMap: "configmap"}

func (k *Kubelet) keysOf(ctx context.Context, namespace string, n need) ([]string, error) {
	key := client.ObjectKey{Namespace: namespace, Name: n.name}
	if n.kind == secret {
		object := &corev1.Secret{}
		err := k.client.Get(ctx, key, object)
		return slices.Collect(maps.Keys(object.Data)), err
	}
	object := &corev1.ConfigMap{}
	err := k.client.Get(ctx, key, object)
	return append(slices.Collect(maps.Keys(object.Data)), slices.Collect(maps.Keys(object.BinaryData))...), err
}

// needs lists the references of a pod in the order in which a kubelet comes to them: volumes, then environments.
func needs(pod *corev1.Pod) []need {
	var all []need
	for _, v := range pod.Spec.Volumes {
		if v.Secret != nil {
			all = append(all, need{secret, v.Secret.SecretName, paths(v.Secret.Items), ptr.Deref(v.Secret.Optional, false), v.Name})
		}
		if v.ConfigMap != nil {
			all = append(all, need{configMap, v.ConfigMap.Name, paths(v.ConfigMap.Items), ptr.Deref(v.ConfigMap.Optional, false), v.Name})
		}
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if s := source.Secret; s != nil {
				all = append(all, need{secret, s.Name, paths(s.Items), ptr.Deref(s.Optional, false), v.Name})
			}
			if c := source.ConfigMap; c != nil {
				all = append(all, need{configMap, c.Name, paths(c.Items), ptr.Deref(c.Optional, false), v.Name})
			}
		}
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, from := range c.EnvFrom {
			if s := from.SecretRef; s != nil {
				all = append(all, need{kind: secret, name: s.Name, optional: ptr.Deref(s.Optional, false)})
			}
			if m := from.ConfigMapRef; m != nil {
				all = append(all, need{kind: configMap, name: m.Name, optional: ptr.Deref(m.Optional, false)})
			}
		}
		for _, env := range c.Env {
			if env.ValueFrom == nil {
				continue
			}
			if s := env.ValueFrom.SecretKeyRef; s != nil {
				all = append(all, need{kind: secret, name: s.Name, keys: []string{s.Key}, optional: ptr.Deref(s.Optional, false)})
			}
			if m := env.ValueFrom.ConfigMapKeyRef; m != nil {
				all = append(all, need{kind: configMap, name: m.Name, keys: []string{m.Key}, optional: ptr.Deref(m.Optional, false)})
			}
		}
	}
	return all
}

func paths(items []corev1.KeyToPath) []string {
	var keys []string
	for _, item := range items {
		keys = append(keys, item.Key)
	}
	return keys
}
