package story

import (
	"context"
	"reflect"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// Ask asks for a release, with the image of it.
func (p *Play) Ask(release string) {
	p.t.Helper()
	before := p.Now()
	after := before.DeepCopyObject().(Object)
	p.ask(after, release)
	p.surely("ask for "+release, func(ctx context.Context) error { return p.Client.Patch(ctx, after, client.MergeFrom(before)) })
}

// Script tells how the pods of a component behave; image may be the end of theirs.
func (p *Play) Script(component, image string, behaviours ...harness.Behaviour) (takeBack func()) {
	p.t.Helper()
	return p.Kubelet.Script(p.t, p.podsOf(component, image), behaviours...)
}

func (p *Play) podsOf(component, image string) harness.Pods {
	return harness.Pods{Namespace: p.NS, Instance: p.Name, Component: component, Image: image}
}

func (p *Play) pods(component, image string) (found []corev1.Pod) {
	p.t.Helper()
	p.surely("list pods", func(ctx context.Context) (err error) {
		found, err = p.ListPods(ctx, p.podsOf(component, image))
		return err
	})
	return found
}

// Job is that of a task; nil if there is none.
func (p *Play) Job(task upgrade.Task) *batchv1.Job {
	p.t.Helper()
	job, there := read[*batchv1.Job](p, v1alpha1.JobName(p.Name, task))
	if !there {
		return nil
	}
	return job
}

// Retry deletes a Job, as the user does who has repaired what it failed of.
func (p *Play) Retry(task upgrade.Task) {
	p.t.Helper()
	job := p.Job(task)
	p.surely("delete the Job of "+string(task), func(ctx context.Context) error {
		return client.IgnoreNotFound(p.Client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &job.UID}))
	})
}

// surely does what only a machine that is too busy keeps from being done. An answer of the API server is final.
func (p *Play) surely(what string, deed func(context.Context) error) {
	p.t.Helper()
	for deadline, tried := time.Now().Add(bound), false; ; time.Sleep(glimpse) {
		err := deed(p.t.Context())
		busy := apierrors.ReasonForError(err) == metav1.StatusReasonUnknown || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err)
		switch {
		case err == nil, tried && apierrors.IsAlreadyExists(err):
			return
		case !busy || time.Now().After(deadline):
			p.t.Fatalf("%s: %v", what, err)
		}
		tried = true
	}
}

// read gives an object by its name, and whether there is one.
func read[T client.Object](p *Play, name string) (found T, there bool) {
	p.t.Helper()
	p.surely("read "+name, func(ctx context.Context) error {
		found = reflect.New(reflect.TypeOf(found).Elem()).Interface().(T)
		err := p.Client.Get(ctx, client.ObjectKey{Namespace: p.NS, Name: name}, found)
		there = err == nil
		return client.IgnoreNotFound(err)
	})
	return found, there
}
