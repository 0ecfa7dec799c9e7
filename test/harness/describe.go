package harness

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
)

// mostEvents is how many of the youngest events Describe shows.
const mostEvents = 25

// Describe is a table of what is in a namespace, for a test that failed.
func (e *Env) Describe(ctx context.Context, namespace string) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
	for _, chapter := range []func(context.Context, io.Writer, string) error{
		e.describeGlances, e.describeKeystones, e.describeDeployments, e.describeJobs, e.describePods, e.describeEvents,
	} {
		if err := chapter(ctx, w, namespace); err != nil {
			fmt.Fprintf(w, "cannot list: %v\n", err)
		}
	}
	if err := w.Flush(); err != nil {
		return err.Error()
	}
	return out.String()
}

func (e *Env) describeGlances(ctx context.Context, w io.Writer, namespace string) error {
	var list v1alpha1.GlanceList
	if err := e.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return err
	}
	for _, g := range list.Items {
		s := g.Status
		fmt.Fprintf(w, "Glance %s\twants %s %s\tinstalled %s %s\ttarget %s %s\tphase %s\tgeneration %d/%d\t%s\n", g.Name,
			g.Spec.OpenStackRelease, g.Spec.Image.Reference(), s.InstalledRelease, s.InstalledImage, s.TargetRelease, s.TargetImage,
			cmp.Or(s.UpgradePhase, "-"), s.ObservedGeneration, g.Generation, deleting(&g))
		for _, c := range s.Conditions {
			fmt.Fprintf(w, "  %s=%s\t%s\t%s\n", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	return nil
}

func (e *Env) describeKeystones(ctx context.Context, w io.Writer, namespace string) error {
	var list v1alpha1.KeystoneList
	if err := e.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return err
	}
	for _, k := range list.Items {
		s := k.Status
		fmt.Fprintf(w, "Keystone %s\twants %s\tinstalled %s %s\ttarget %s %s\tphase %s\texpanded %s\tgeneration %d/%d\t%s\n", k.Name,
			k.Spec.Image.Reference(), s.InstalledRelease, s.InstalledImage, s.TargetRelease, s.TargetImage,
			cmp.Or(s.UpgradePhase, "-"), cmp.Or(s.ExpandedRelease, "-"), s.ObservedGeneration, k.Generation, deleting(&k))
		for _, c := range s.Conditions {
			fmt.Fprintf(w, "  %s=%s\t%s\t%s\n", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	return nil
}

func (e *Env) describeDeployments(ctx context.Context, w io.Writer, namespace string) error {
	var list appsv1.DeploymentList
	if err := e.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return err
	}
	for _, d := range list.Items {
		fmt.Fprintf(w, "Deployment %s\t%s\twants %d\thas %d\tupdated %d\tready %d\tavailable %d\tgeneration %d/%d\t%s\n", d.Name, imageOf(d.Spec.Template.Spec),
			ptr.Deref(d.Spec.Replicas, -1), d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas,
			d.Status.ObservedGeneration, d.Generation, deleting(&d))
	}
	return nil
}

func (e *Env) describeJobs(ctx context.Context, w io.Writer, namespace string) error {
	var list batchv1.JobList
	if err := e.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return err
	}
	for _, j := range list.Items {
		fmt.Fprintf(w, "Job %s\t%s\tactive %d\tsucceeded %d\tfailed %d\t%s\t%s\n", j.Name, imageOf(j.Spec.Template.Spec),
			j.Status.Active, j.Status.Succeeded, j.Status.Failed, jobOutcome(&j), deleting(&j))
	}
	return nil
}

func (e *Env) describePods(ctx context.Context, w io.Writer, namespace string) error {
	var list corev1.PodList
	if err := e.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return err
	}
	for _, p := range list.Items {
		fmt.Fprintf(w, "Pod %s\t%s\t%s\tready %t\t%s\t%s\n", p.Name, imageOf(p.Spec), p.Status.Phase, podReady(&p), trouble(&p), deleting(&p))
	}
	return nil
}

func (e *Env) describeEvents(ctx context.Context, w io.Writer, namespace string) error {
	var list corev1.EventList
	if err := e.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Event) int {
		return cmp.Compare(revision(a.ResourceVersion), revision(b.ResourceVersion))
	})
	if left := len(list.Items) - mostEvents; left > 0 {
		fmt.Fprintf(w, "Event\t(%d older ones)\n", left)
		list.Items = list.Items[left:]
	}
	for _, ev := range list.Items {
		at := cmp.Or(ev.LastTimestamp.Time, ev.EventTime.Time, ev.CreationTimestamp.Time)
		fmt.Fprintf(w, "Event %s\t%s %s\t%s/%s\t%s\n", at.Format(time.TimeOnly), ev.Type, ev.Reason, ev.InvolvedObject.Kind, ev.InvolvedObject.Name, ev.Message)
	}
	return nil
}

func imageOf(spec corev1.PodSpec) string {
	if len(spec.Containers) == 0 {
		return "-"
	}
	return spec.Containers[0].Image
}

func deleting(object client.Object) string {
	if at := object.GetDeletionTimestamp(); at != nil {
		return fmt.Sprintf("deleted at %s, held by %v", at.Format(time.TimeOnly), object.GetFinalizers())
	}
	return ""
}

func jobOutcome(job *batchv1.Job) string {
	for _, c := range job.Status.Conditions {
		final := c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed || c.Type == batchv1.JobSuspended
		if final && c.Status == corev1.ConditionTrue {
			return string(c.Type)
		}
	}
	return ""
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// trouble is why a pod is not well, in the words of its status.
func trouble(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason + ": " + c.Message
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil {
			return w.Reason + ": " + w.Message
		}
		if ended := c.State.Terminated; ended != nil && ended.ExitCode != 0 {
			return fmt.Sprintf("exit %d: %s", ended.ExitCode, ended.Message)
		}
	}
	return ""
}
