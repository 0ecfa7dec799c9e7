package stage

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Toolbox is a pod of a service's image that serves nothing: the image's tools are run in it, one command after the
// other, under the same restrictions as the product's own pods.
type Toolbox struct {
	stage *Stage
	key   client.ObjectKey
}

// mounts are where a service looks for keys, if it has any.
var mounts = map[string]string{"keystone": "/etc/keystone/fernet-keys"}

// OpenToolbox starts a pod of an image of a service, with a Secret of keys if that is named.
func (s *Stage) OpenToolbox(ctx context.Context, namespace, name, service, image, keys string) (*Toolbox, error) {
	no, yes, none := false, true, int64(0)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no, EnableServiceLinks: &no, TerminationGracePeriodSeconds: &none,
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "tools", Image: image, ImagePullPolicy: corev1.PullNever, Command: []string{"sleep", "1800"},
				Resources:    corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
				VolumeMounts: []corev1.VolumeMount{{Name: "scratch", MountPath: "/tmp"}, {Name: "scratch", MountPath: "/var/lib/" + service}},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
			Volumes: []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
	if keys != "" {
		container := &pod.Spec.Containers[0]
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "keys", MountPath: mounts[service], ReadOnly: true})
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "keys", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: keys}}})
	}
	if err := s.Client.Create(ctx, pod); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create pod %s: %w", name, err)
	}
	key := client.ObjectKeyFromObject(pod)
	err := s.Await(ctx, "the tools of "+image, 3*time.Minute, func(ctx context.Context) (bool, string, error) {
		if err := s.Client.Get(ctx, key, pod); err != nil {
			return false, err.Error(), nil
		}
		return pod.Status.Phase == corev1.PodRunning, string(pod.Status.Phase), nil
	})
	return &Toolbox{stage: s, key: key}, err
}

var terminated = regexp.MustCompile(`command terminated with exit code (\d+)`)

// Run runs a command and returns its exit code and what it wrote. An error means that it could not be run.
func (b *Toolbox) Run(ctx context.Context, env []string, command ...string) (exit int, said string, err error) {
	args := append([]string{"-n", b.key.Namespace, "exec", b.key.Name, "--", "env"}, env...)
	out, err := b.stage.Kubectl(ctx, "", append(args, command...)...)
	if err == nil {
		return 0, out, nil
	}
	said = out + err.Error()
	code := terminated.FindStringSubmatch(err.Error())
	if code == nil {
		return 0, said, fmt.Errorf("run %s in pod %s: %w", command[0], b.key.Name, err)
	}
	exit, err = strconv.Atoi(code[1])
	return exit, said, err
}
