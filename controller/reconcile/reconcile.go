// Package reconcile is the machine around the planner: load the object,
// observe the cluster, decide, act, record. Only observe reads the cluster,
// only act writes to it, and only record writes the status and then tells.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logs "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/controller/service"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// Reconciler walks the objects of one service.
type Reconciler struct {
	// Client reads through caches and writes to the API server.
	Client client.Client
	// Live reads past the caches, for the few questions that a stale answer
	// would make dangerous.
	Live client.Reader
	// Events tells people what happened.
	Events events.EventRecorder
	// Service is the table of facts of the kind.
	Service service.Service
	// Meter counts what is worth a graph.
	Meter Meter
	// Now tells the time.
	Now func() time.Time
	// Versions, if there is one, spares looks at objects that are as they were.
	Versions Versions

	warnings warnings

	sample  client.Object // an empty object of the kind
	rests   rests
	pace    pace
	races   races
	doubts  doubts
	written written // of the objects themselves
	rolled  written // of their Deployments
	made    written // of their Jobs
	deleted deleted
	starts  starts
}

// Meter is told about phases and Jobs.
type Meter interface {
	// Phase sets where an object stands since when; the empty phase is steady.
	Phase(kind, namespace, name string, phase upgrade.Phase, since time.Time)
	// PhaseEnded measures a phase that was left.
	PhaseEnded(kind string, phase upgrade.Phase, took time.Duration)
	// Ended counts an upgrade that came to its end.
	Ended(kind, outcome string)
	// Job counts a finished Job once.
	Job(kind, namespace, name string, task upgrade.Task, uid, outcome string, finished time.Time)
	// Gone forgets an object.
	Gone(kind, namespace, name string)
}

// Outcomes of an upgrade.
const (
	OutcomeCompleted = "completed"
	OutcomeAborted   = "aborted"
)

const (
	// foreignPause is how long to wait before looking again for a name that
	// something invisible to the caches has taken.
	foreignPause = 30 * time.Second
	// conflictPause lets the caches catch up with a write of somebody else.
	conflictPause = 100 * time.Millisecond
)

// Reconcile takes one step for one object.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	print := r.print(request.NamespacedName)
	if r.rests.same(request.NamespacedName, print, r.Now()) {
		return ctrl.Result{}, nil
	}
	object, left, err := r.load(ctx, request)
	if err != nil {
		return ctrl.Result{}, err
	}
	if object == nil {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	r.starts.note(r.Now())
	seen, err := r.observe(ctx, object)
	if err == nil && r.doubts.about(request.NamespacedName) && seen.acts() {
		object, seen, err = r.past(ctx, object, seen)
	}
	switch {
	case err != nil && object != nil && !unsure(err) && !settles(err):
		return ctrl.Result{}, errors.Join(err, r.blind(ctx, object, seen, err))
	case err != nil || object == nil:
		return ctrl.Result{}, err
	}
	workload, state, desired := seen.workload, seen.state, seen.desired
	r.explain(ctx, &seen)
	decision := r.decide(object, state, desired, seen.Observed)
	if left := r.starts.quiet(object, r.Now()); left > 0 && decision.Step == upgrade.RunJob {
		decision.Step, decision.Task = upgrade.Wait, ""
		seen.again = sooner(seen.again, left)
	}

	taken, err := r.act(ctx, state, desired, decision, workload, seen)
	if unsure(err) {
		r.doubts.raise(request.NamespacedName) // it may have been done all the same
	}
	switch {
	case settles(err):
		return r.settled(request.NamespacedName, err), nil
	case err != nil:
		// A refused write (a quota, a policy) is for people to read as well.
		complain(&decision, &seen, err)
		if _, unrecorded := r.record(ctx, object, workload, decision, seen, nil); unrecorded != nil && !settles(unrecorded) {
			err = errors.Join(err, unrecorded)
		}
		if seen.again > 0 && seen.again <= quietTime {
			// Something else is due sooner than the growing pauses after an error allow.
			logs.FromContext(ctx).Error(err, "Refused")
			return ctrl.Result{RequeueAfter: seen.again}, nil
		}
		return ctrl.Result{}, err
	}
	if taken.rewritten != "" {
		seen.Deployment.Note, seen.Deployment.Trouble = taken.rewritten, true
		if known := r.decide(object, state, desired, seen.Observed); known.Step == decision.Step {
			decision.Database = known.Database
		}
	}
	if taken.rolls || decision.Step == upgrade.Move && seen.rollsFor(decision.Next) {
		seen.Deployment.Unobserved = true // what was seen of its pods was of before
	}
	again := seen.again
	if decision.Step == upgrade.RunJob || decision.Step == upgrade.Wait && seen.Confirmed {
		// What caches do not show may be gone before they ever do: no watch tells.
		again = sooner(again, foreignPause)
	}
	if taken.any() {
		again = sooner(again, foreignPause)
		for _, task := range taken.jobs {
			job := seen.Jobs[task]
			job.Name, job.Standing = render.Job(workload, upgrade.WorkOf(state, desired, task)).Name, upgrade.Foreign
			seen.Jobs[task] = job
		}
		decision = r.decide(object, state, desired, seen.Observed)
		decision.Step = upgrade.Wait
		if len(taken.names) > 0 && !decision.Database.Ready {
			decision.Database.Message += "; held up by " + strings.Join(taken.names, ", ") + ", which belongs to somebody else"
			decision.Database.Trouble = true
		}
	}
	pause, err := r.record(ctx, object, workload, decision, seen, taken.names)
	if unsure(err) {
		r.doubts.raise(request.NamespacedName)
	}
	switch {
	case settles(err):
		return r.settled(request.NamespacedName, err), nil
	case err != nil:
		return ctrl.Result{}, err
	}
	if decision.Step == upgrade.Move {
		r.starts.moved(object)
	}
	r.races.over(request.NamespacedName)
	if decision.Retry {
		return ctrl.Result{}, failure{decision.Database}
	}
	result := ctrl.Result{RequeueAfter: sooner(again, pause)}
	if result.IsZero() && decision.Step == upgrade.Wait && decision.Database.Ready && !state.Walking() && !seen.Confirmed {
		// Nothing is due, and nothing but the caches was asked.
		r.rests.note(request.NamespacedName, print, r.Now())
	}
	return result, nil
}

// blind records that nothing is done because what it is decided by must not be
// read: that is for people to put right.
func (r *Reconciler) blind(ctx context.Context, object service.Object, seen observation, err error) error {
	seen.Confirmed = false
	decision := r.decide(object, seen.state, seen.desired, seen.Observed)
	decision.Step, decision.Event = upgrade.Wait, nil
	complain(&decision, &seen, err)
	_, unrecorded := r.record(ctx, object, seen.workload, decision, seen, nil)
	return unrecorded
}

// load gives the object, or nil when there is nothing to do for it: its
// children go with it, and nothing new is made for an object that is going. It
// is nil, too, while the cache is behind our own write, for as long as is left
// to it.
func (r *Reconciler) load(ctx context.Context, request ctrl.Request) (object service.Object, left time.Duration, err error) {
	object = r.Service.New()
	switch err := r.Client.Get(ctx, request.NamespacedName, object); {
	case apierrors.IsNotFound(err):
		r.part(request)
		return nil, 0, nil
	case err != nil:
		return nil, 0, fmt.Errorf("get %s %s: %w", r.Service.Kind, request.NamespacedName, err)
	}
	behind, left := r.written.behind(request.NamespacedName, object, r.Now())
	switch {
	case behind && left > 0:
		return nil, left, nil // the watch event of that very write brings the next look, if it comes
	case behind:
		object, err = r.loadLive(ctx, request)
		return object, 0, err
	case object.GetDeletionTimestamp() != nil:
		return nil, 0, nil
	}
	return object, 0, nil
}

// part forgets what was remembered of an object that is gone.
func (r *Reconciler) part(request ctrl.Request) {
	r.pace.forget(request.NamespacedName)
	r.written.forget(request.NamespacedName)
	r.rests.forget(request.NamespacedName)
	r.rolled.forget(request.NamespacedName)
	r.races.over(request.NamespacedName)
	r.doubts.raise(request.NamespacedName)
	for _, task := range upgrade.Tasks {
		r.made.forget(types.NamespacedName{Namespace: request.Namespace, Name: v1alpha1.JobName(request.Name, task)})
		r.deleted.part(request.Namespace, v1alpha1.JobName(request.Name, task), r.Now())
	}
	r.Meter.Gone(r.Service.Kind, request.Namespace, request.Name)
}

// loadLive is load past a cache that has stopped. What comes back may be older
// than what was written: then the cluster was restored from a backup.
func (r *Reconciler) loadLive(ctx context.Context, request ctrl.Request) (service.Object, error) {
	object := r.Service.New()
	switch err := r.Live.Get(ctx, request.NamespacedName, object); {
	case apierrors.IsNotFound(err):
		return nil, nil // the cache will say so
	case err != nil:
		return nil, fmt.Errorf("get %s %s past a cache that is behind: %w", r.Service.Kind, request.NamespacedName, err)
	case object.GetDeletionTimestamp() != nil:
		return nil, nil
	}
	if r.written.older(request.NamespacedName, object) {
		r.written.forget(request.NamespacedName)
	}
	return object, nil
}

// decide asks the planner, and puts what to type behind a message that speaks
// of ways out.
func (r *Reconciler) decide(object service.Object, s upgrade.State, d upgrade.Desired, o upgrade.Observed) upgrade.Decision {
	decision := upgrade.Decide(s, d, o)
	for _, remedy := range decision.Database.Remedies {
		decision.Database.Message += fmt.Sprintf(". To %s: %s", remedy.Purpose, r.Service.Command(object, remedy))
	}
	if len(decision.Database.Remedies) > 0 {
		decision.Database.Message += ". After a restore: " + r.Service.Forget(object)
	}
	return decision
}

// complain puts a refused write into the conditions that it belongs to: it
// holds up the schema work that goes on, and what serves is not what is wished.
func complain(decision *upgrade.Decision, seen *observation, err error) {
	if !decision.Database.Ready {
		decision.Database.Message += "; " + bounded(err.Error())
		decision.Database.Trouble = true
	}
	if decision.Step != upgrade.RunJob {
		seen.Deployment.Note, seen.Deployment.Trouble, seen.Deployment.Unobserved = bounded(err.Error()), true, true
	}
}

// settles tells whether an error passes by itself within moments, or has no
// one left to be told to.
func settles(err error) bool {
	return err != nil && (apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause))
}

// settled looks again in a moment, unless the namespace is going: then all
// that is in it goes too, and there is nothing to look for.
func (r *Reconciler) settled(key types.NamespacedName, err error) ctrl.Result {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return ctrl.Result{}
	}
	pause, again := r.races.pause(key)
	if again {
		r.doubts.raise(key) // no race any more: a cache shows what is no longer so
	}
	return ctrl.Result{RequeueAfter: pause}
}

// failure is what is returned for a wish or a Job that only a person can put
// right: the queue then looks again with growing pauses.
type failure struct{ upgrade.Report }

// Error is the reason and the message of the condition.
func (f failure) Error() string { return string(f.Reason) + ": " + f.Message }

// sooner is the shorter of two pauses, where zero is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

var errTaken = errors.New("name is taken")
