package history

import (
	"regexp"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// Subject is whose history it is.
type Subject struct{ Namespace, Service, Name string }

// Service names, as labels carry them.
const (
	Glance   = "glance"
	Keystone = "keystone"
)

// read reduces what a watch tells; false when it belongs to no subject.
func read(event watch.Event, now time.Time) (Subject, Moment, bool) {
	object, isObject := event.Object.(client.Object)
	if !isObject {
		return Subject{}, Moment{}, false
	}
	m := Moment{Revision: revision(object.GetResourceVersion()), At: now, UID: object.GetUID(), Name: object.GetName(),
		Leaving: object.GetDeletionTimestamp() != nil, Gone: event.Type == watch.Deleted}
	labels := object.GetLabels()
	whose := Subject{object.GetNamespace(), labels[render.LabelName], labels[render.LabelInstance]}
	switch o := object.(type) {
	case *v1alpha1.Glance:
		whose.Service, whose.Name = Glance, o.Name
		m.Record = recordOf(o.Generation, o.Desired(), o.State(), o.Status.Conditions)
	case *v1alpha1.Keystone:
		whose.Service, whose.Name = Keystone, o.Name
		m.Record = recordOf(o.Generation, o.Desired(), o.State(), o.Status.Conditions)
	case *batchv1.Job:
		m.Job = jobOf(o)
	case *corev1.Pod:
		m.Pod = podOf(o)
	case *appsv1.Deployment:
		m.Serving = &Serving{Release: o.Spec.Template.Annotations[render.AnnotationRelease], Image: imageOf(o.Spec.Template.Spec)}
	default:
		return Subject{}, Moment{}, false
	}
	return whose, m, whose.Service != "" && whose.Name != ""
}

func recordOf(generation int64, wish upgrade.Desired, state upgrade.State, conditions []metav1.Condition) *Record {
	r := &Record{Generation: generation, Wish: wish, State: state}
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionDatabaseReady); c != nil {
		r.Reason, r.Ready = c.Reason, c.Status == metav1.ConditionTrue
	}
	return r
}

func jobOf(o *batchv1.Job) *Job {
	work, run := WorkIn(o.Annotations[render.AnnotationWork])
	job := &Job{Work: work, Run: run, Image: imageOf(o.Spec.Template.Spec)}
	if owner := metav1.GetControllerOf(o); owner != nil {
		job.Owner = owner.UID
	}
	for _, c := range o.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			job.Outcome = string(c.Type)
		}
	}
	return job
}

func podOf(o *corev1.Pod) *Pod {
	pod := &Pod{Release: o.Annotations[render.AnnotationRelease], Image: imageOf(o.Spec), Phase: string(o.Status.Phase)}
	for _, task := range upgrade.Tasks {
		if o.Labels[render.LabelComponent] == string(task) {
			pod.Task = task
		}
	}
	return pod
}

func imageOf(pod corev1.PodSpec) string {
	if len(pod.Containers) == 0 {
		return ""
	}
	return pod.Containers[0].Image
}

var identity = regexp.MustCompile(`^(\S+) (.+) → (.+); attempt (\d+); image (\S+); (run .+; database .+)$`)

// WorkIn reads the annotation by which a Job is known.
func WorkIn(annotation string) (work upgrade.Work, run string) {
	found := identity.FindStringSubmatch(annotation)
	if found == nil {
		return upgrade.Work{}, ""
	}
	attempt, err := strconv.ParseInt(found[4], 10, 64)
	if err != nil {
		return upgrade.Work{}, ""
	}
	return upgrade.Work{Task: upgrade.Task(found[1]), From: found[2], To: found[3], Attempt: attempt, Image: found[5]}, found[6]
}
