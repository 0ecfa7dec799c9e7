package reconcile

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logs "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// taken are the names that act found in use by somebody else: Jobs by task,
// and the rest in words; and what came of the Deployment.
type taken struct {
	jobs  []upgrade.Task
	names []string
	// rolls is set when the Deployment was changed in what it asks for.
	rolls bool
	// rewritten says how what was stored is not what was written.
	rewritten string
}

func (t taken) any() bool { return len(t.jobs)+len(t.names) > 0 }

// act touches the world as decided. A decision that moves the record touches
// nothing.
func (r *Reconciler) act(ctx context.Context, s upgrade.State, d upgrade.Desired, decision upgrade.Decision, w render.Workload, seen observation) (taken, error) {
	var found taken
	if decision.Step == upgrade.Move {
		return found, nil
	}
	// Deletions come first: nothing that is wrong with what serves may keep a
	// Job going that an abort has called off.
	for _, task := range decision.Delete {
		if err := r.deleteJob(ctx, seen.live[task]); err != nil {
			return found, err
		}
	}
	if decision.Serve == "" && decision.Step != upgrade.RunJob {
		return found, nil
	}
	if err := r.configure(ctx, w, seen, &found); err != nil || found.any() {
		return found, err
	}
	var failures []error
	if decision.Step == upgrade.RunJob {
		failures = append(failures, r.runJob(ctx, render.Job(w, upgrade.WorkOf(s, d, decision.Task)), decision.Task, &found))
	}
	if decision.Serve != "" {
		failures = append(failures, r.serve(ctx, decision.Serve, w, seen, &found))
	}
	return found, errors.Join(failures...)
}

// configure keeps the ConfigMap that every pod mounts.
func (r *Reconciler) configure(ctx context.Context, w render.Workload, seen observation, found *taken) error {
	rendered := render.ConfigMap(w)
	if seen.config == nil {
		return r.create(ctx, rendered, &corev1.ConfigMap{}, found, func(live client.Object) error {
			merged, _ := render.MergeConfigMap(live.(*corev1.ConfigMap), rendered)
			return r.update(ctx, merged)
		})
	}
	if !ours(seen.config, w) {
		found.names = append(found.names, takenBy("ConfigMap", seen.config, w.Owner))
		return nil
	}
	if merged, changes := render.MergeConfigMap(seen.config, rendered); changes {
		return r.update(ctx, merged)
	}
	return nil
}

// serve keeps the Service and the Deployment, the latter at an image.
func (r *Reconciler) serve(ctx context.Context, image string, w render.Workload, seen observation, found *taken) error {
	address := render.Service(w)
	switch {
	case seen.address == nil:
		if err := r.create(ctx, address, &corev1.Service{}, found, func(live client.Object) error {
			merged, _ := render.MergeService(live.(*corev1.Service), address)
			return r.update(ctx, merged)
		}); err != nil {
			return err
		}
	case !ours(seen.address, w):
		found.names = append(found.names, takenBy("Service", seen.address, w.Owner))
	default:
		if merged, changes := render.MergeService(seen.address, address); changes {
			if err := r.update(ctx, merged); err != nil {
				return err
			}
		}
	}

	rendered := seen.rendering(image, seen.note())
	switch {
	case seen.deployment == nil:
		return r.create(ctx, render.Creation(rendered), &appsv1.Deployment{}, found, func(live client.Object) error {
			merged, _ := render.Merge(live.(*appsv1.Deployment), rendered, true)
			return r.update(ctx, merged)
		})
	case !ours(seen.deployment, w):
		found.names = append(found.names, takenBy("Deployment", seen.deployment, w.Owner))
	case seen.deployment.DeletionTimestamp == nil:
		if merged, changes := seen.keeps(rendered); changes {
			if err := r.update(ctx, merged); err != nil {
				return err
			}
			found.rolls = seen.differs(merged)
			found.rewritten = rewritten(merged, rendered)
		}
	}
	return nil
}

// rewritten says how a Deployment that was just written is not as it was
// written. Then something changes it on its way in, and will every time.
func rewritten(stored, rendered *appsv1.Deployment) string {
	if render.UpToDate(stored, rendered) {
		return ""
	}
	what := "its pod template is not the one that was asked for"
	if a, b := stored.Spec.Template.Spec.Containers, rendered.Spec.Template.Spec.Containers; len(a) > 0 && a[0].Image != b[0].Image {
		what = fmt.Sprintf("its image is %s, and not %s", a[0].Image, b[0].Image)
	}
	return fmt.Sprintf("something changes Deployment %s whenever it is written, so that %s: exempt it from the admission webhook or policy that does", rendered.Name, bounded(what))
}

func (r *Reconciler) runJob(ctx context.Context, job *batchv1.Job, task upgrade.Task, found *taken) error {
	err := r.create(ctx, job, &batchv1.Job{}, found, nil)
	if errors.Is(err, errTaken) {
		found.jobs = append(found.jobs, task)
		return nil
	}
	if err == nil {
		// It may be gone again before the caches have ever shown it.
		r.deleted.seen(job, false)
	}
	return err
}

// deleteJob removes a Job and its pods, pods first, and only if it is still
// the very Job that was seen: one that has moved on since, to Complete above
// all, is looked at again.
func (r *Reconciler) deleteJob(ctx context.Context, job *batchv1.Job) error {
	if job == nil {
		return nil
	}
	foreground := metav1.DeletePropagationForeground
	err := r.Client.Delete(ctx, job, &client.DeleteOptions{
		PropagationPolicy: &foreground,
		Preconditions:     &metav1.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion},
	})
	if err != nil {
		return fmt.Errorf("delete job %s: %w", job.Name, err)
	}
	logs.FromContext(ctx).Info("Job deleted", "child", job.Name)
	return nil
}

// create makes an object. When the name is in use it looks past the caches:
// an object of ours that the caches do not show yet is left for the next look,
// one that lost its labels is mended, and somebody else's is reported.
func (r *Reconciler) create(ctx context.Context, object, live client.Object, found *taken, mend func(client.Object) error) error {
	kind := kindOf(object)
	err := r.Client.Create(ctx, object)
	if err == nil {
		r.remember(object)
		logs.FromContext(ctx).Info(kind+" created", "child", object.GetName())
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %s %s: %w", kind, object.GetName(), err)
	}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return fmt.Errorf("get %s %s: %w", kind, object.GetName(), err)
	}
	if owned := metav1.GetControllerOf(live); owned == nil || owned.UID != metav1.GetControllerOf(object).UID {
		if mend == nil {
			return errTaken
		}
		found.names = append(found.names, takenBy(kind, live, *metav1.GetControllerOf(object)))
		return nil
	}
	if live.GetLabels()[render.LabelManagedBy] == render.ManagedBy {
		r.remember(live)
		return nil
	}
	if mend == nil {
		return errTaken
	}
	return mend(live)
}

func (r *Reconciler) update(ctx context.Context, object client.Object) error {
	if err := r.Client.Update(ctx, object); err != nil {
		return fmt.Errorf("update %s %s: %w", kindOf(object), object.GetName(), err)
	}
	r.remember(object)
	logs.FromContext(ctx).Info(kindOf(object)+" updated", "child", object.GetName())
	return nil
}

// remember notes what caches must show before they are believed again.
func (r *Reconciler) remember(object client.Object) {
	switch object.(type) {
	case *appsv1.Deployment:
		r.rolled.note(client.ObjectKeyFromObject(object), object, r.Now())
	case *batchv1.Job:
		r.made.note(client.ObjectKeyFromObject(object), object, r.Now())
	}
}

func kindOf(object client.Object) string {
	switch object.(type) {
	case *batchv1.Job:
		return "Job"
	case *appsv1.Deployment:
		return "Deployment"
	case *corev1.Service:
		return "Service"
	case *corev1.ConfigMap:
		return "ConfigMap"
	}
	return fmt.Sprintf("%T", object)
}

// takenBy names an object that is not ours, and whose it is if that can be told.
func takenBy(kind string, child client.Object, we metav1.OwnerReference) string {
	name := kind + " " + child.GetName()
	if owner := ownerOf(child, we); owner != "" {
		return name + " (of " + owner + ")"
	}
	return name
}

// ownerOf is who controls an object that is not ours, such as "Keystone
// identity"; empty when nobody does.
func ownerOf(child client.Object, we metav1.OwnerReference) string {
	controller := metav1.GetControllerOf(child)
	switch {
	case controller == nil:
		return ""
	case controller.Kind == we.Kind && controller.Name == we.Name:
		return "the " + we.Kind + " of this name that was there before"
	}
	return controller.Kind + " " + controller.Name
}

// controlled tells whether the object itself, not a namesake before it,
// controls a child.
func controlled(child client.Object, w render.Workload) bool {
	controller := metav1.GetControllerOf(child)
	return controller != nil && controller.UID == w.Owner.UID
}

// ours is controlled, or made for an object of this name and left without any
// controller: what was orphaned is taken back rather than fought. That is not
// for Jobs, which count only for the very object they were made for.
func ours(child client.Object, w render.Workload) bool {
	labels := child.GetLabels()
	orphan := metav1.GetControllerOf(child) == nil &&
		labels[render.LabelManagedBy] == render.ManagedBy && labels[render.LabelName] == w.Service && labels[render.LabelInstance] == w.Name
	return orphan || controlled(child, w)
}
