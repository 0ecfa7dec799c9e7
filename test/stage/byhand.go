package stage

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// ByHand is a service whose pods are those that the controller would make, in a namespace of which it knows nothing:
// whatever happens there was done by hand.
type ByHand struct {
	Key client.ObjectKey

	stage      *Stage
	deployment appsv1.DeploymentSpec
	job        corev1.PodTemplateSpec
}

var byHand = map[string]string{"app": "images"}

// CopyByHand copies the pods of an installed object to a namespace with an empty database of its own. Nothing runs there
// before Serve.
func (s *Stage) CopyByHand(ctx context.Context, from client.ObjectKey, namespace string) (*ByHand, error) {
	if err := s.Namespace(ctx, namespace); err != nil {
		return nil, err
	}
	url, err := s.Database(ctx, DatabaseOf(namespace))
	if err != nil {
		return nil, err
	}
	if err := s.PutConnection(ctx, namespace, url); err != nil {
		return nil, err
	}
	sync, err := s.Job(ctx, from, upgrade.Sync)
	if err != nil {
		return nil, err
	}
	if sync == nil {
		return nil, fmt.Errorf("copy the Job of %s: there is none", from)
	}
	var config corev1.ConfigMap
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: from.Namespace, Name: from.Name + "-config"}, &config); err != nil {
		return nil, fmt.Errorf("copy the configuration of %s: %w", from, err)
	}
	if err := s.Client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: config.Name}, Data: config.Data}); err != nil {
		return nil, fmt.Errorf("copy the configuration of %s: %w", from, err)
	}
	var address corev1.Service
	if err := s.Client.Get(ctx, from, &address); err != nil {
		return nil, fmt.Errorf("copy the Service of %s: %w", from, err)
	}
	var live appsv1.Deployment
	if err := s.Client.Get(ctx, from, &live); err != nil {
		return nil, fmt.Errorf("copy the Deployment of %s: %w", from, err)
	}
	here := metav1.ObjectMeta{Namespace: namespace, Name: from.Name}
	if err := s.Client.Create(ctx, &corev1.Service{ObjectMeta: here, Spec: corev1.ServiceSpec{Selector: byHand, Ports: address.Spec.Ports}}); err != nil {
		return nil, fmt.Errorf("copy the Service of %s: %w", from, err)
	}
	return &ByHand{Key: client.ObjectKeyFromObject(&corev1.Service{ObjectMeta: here}), stage: s, deployment: live.Spec, job: sync.Spec.Template}, nil
}

// Serve makes the Deployment, with an image, and waits until it serves.
func (b *ByHand) Serve(ctx context.Context, image string) error {
	spec := *b.deployment.DeepCopy()
	spec.Selector = &metav1.LabelSelector{MatchLabels: byHand}
	spec.Template.ObjectMeta = metav1.ObjectMeta{Labels: byHand}
	spec.Template.Spec.Containers[0].Image = image
	if err := b.stage.Client.Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: b.Key.Namespace, Name: b.Key.Name}, Spec: spec}); err != nil {
		return fmt.Errorf("create deployment %s by hand: %w", b.Key, err)
	}
	return b.stage.Await(ctx, "the pods in "+b.Key.Namespace, 5*time.Minute, b.stage.RolledOut(b.Key.Namespace, b.Key.Name))
}

// Manage runs a command of glance-manage db as a Job and waits until it is done. The Job tries again, as such Jobs do: a
// sync in one pass keeps no triggers, so rows that are written while it migrates make its contract refuse to begin.
func (b *ByHand) Manage(ctx context.Context, image, task string) error {
	template := *b.job.DeepCopy()
	template.ObjectMeta = metav1.ObjectMeta{}
	template.Spec.InitContainers = nil
	container := &template.Spec.Containers[0]
	container.Name, container.Image = task, image
	container.Command = append(slices.Clone(container.Command[:len(container.Command)-1]), task)
	retries := int32(4)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Key.Namespace, GenerateName: task + "-"},
		Spec:       batchv1.JobSpec{BackoffLimit: &retries, Template: template},
	}
	if err := b.stage.Client.Create(ctx, job); err != nil {
		return fmt.Errorf("run %s in %s: %w", task, b.Key.Namespace, err)
	}
	return b.stage.Await(ctx, task+" by hand in "+b.Key.Namespace, 3*time.Minute, func(ctx context.Context) (bool, string, error) {
		if err := b.stage.Client.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
			return false, err.Error(), nil
		}
		if job.Status.Failed > retries {
			return false, "", fmt.Errorf("job %s failed", job.Name)
		}
		return Complete(job), jobWords(job), nil
	})
}

// Pods lists the pods that serve, ending ones included.
func (b *ByHand) Pods(ctx context.Context) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := b.stage.Client.List(ctx, &pods, client.InNamespace(b.Key.Namespace), client.MatchingLabels(byHand)); err != nil {
		return nil, fmt.Errorf("list the pods in %s: %w", b.Key.Namespace, err)
	}
	return pods.Items, nil
}
