package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logs "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/controller/service"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// Reasons of the DeploymentReady condition.
const (
	ReasonDeploymentAvailable   = "DeploymentAvailable"
	ReasonDeploymentProgressing = "DeploymentProgressing"
	ReasonDeploymentUnavailable = "DeploymentUnavailable"
	ReasonNotInstalled          = "NotInstalled"
	ReasonNameTaken             = "NameTaken"
)

// longestEvent is what the API takes as the note of an event, in bytes.
const longestEvent = 1000

// record writes the status if it says anything new, and then, never before,
// tells what happened. It gives the pause after which words that are held
// back for now are due.
func (r *Reconciler) record(ctx context.Context, object service.Object, w render.Workload, decision upgrade.Decision, seen observation, takenNames []string) (time.Duration, error) {
	now := r.Now()
	before := *object.Record().DeepCopy()
	status := object.Record()
	if decision.Step == upgrade.Move {
		object.SetState(decision.Next)
		if before.UpgradePhase != status.UpgradePhase {
			status.PhaseStartTime = &metav1.Time{Time: now}
			if status.UpgradePhase == "" {
				status.PhaseStartTime = nil
			}
		}
	}
	status.ObservedGeneration = object.GetGeneration()
	if status.InstalledRelease != "" {
		status.Endpoint = w.Endpoint()
	}
	set := func(kind string, ready bool, reason, message string) {
		value := metav1.ConditionFalse
		if ready {
			value = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: kind, Status: value, Reason: reason, Message: message,
			ObservedGeneration: object.GetGeneration(), LastTransitionTime: metav1.Time{Time: now}})
	}
	serving, trouble := deploymentReport(status.State(), seen.Deployment, takenNames)
	set(v1alpha1.ConditionDatabaseReady, decision.Database.Ready, string(decision.Database.Reason), decision.Database.Message)
	set(v1alpha1.ConditionDeploymentReady, serving.ready, serving.reason, serving.message)
	if waits := notReady(decision.Database.Ready, serving.ready); len(waits) == 0 {
		set(v1alpha1.ConditionReady, true, v1alpha1.ReasonAllReady, "Database and Deployment are ready")
	} else {
		set(v1alpha1.ConditionReady, false, v1alpha1.ReasonNotAllReady, "Not ready: "+strings.Join(waits, ", "))
	}

	key := client.ObjectKeyFromObject(object)
	r.Meter.Phase(r.Service.Kind, key.Namespace, key.Name, upgrade.Phase(status.UpgradePhase), since(status.PhaseStartTime))
	if equality.Semantic.DeepEqual(before, *status) {
		return 0, nil
	}
	if pause := r.pace.wait(key, now, wordsOnly(before, *status), decision.Database.Trouble || trouble); pause > 0 {
		*status = before
		return pause, nil
	}
	if err := r.Client.Status().Update(ctx, object); err != nil {
		return 0, fmt.Errorf("record status: %w", err)
	}
	r.written.note(key, object, now)
	r.tell(ctx, object, before, decision, now)
	return 0, nil
}

// tell emits the event of a decision that has been recorded, and measures it.
func (r *Reconciler) tell(ctx context.Context, object service.Object, before v1alpha1.ServiceStatus, decision upgrade.Decision, now time.Time) {
	log := logs.FromContext(ctx)
	if event := decision.Event; event != nil {
		kind := corev1.EventTypeNormal
		if event.Warning {
			kind = corev1.EventTypeWarning
		}
		r.Events.Eventf(object, nil, kind, string(event.Reason), "Upgrade", "%s", clipped(event.Message, longestEvent))
		log.Info(event.Message, "reason", event.Reason)
	}
	if decision.Step != upgrade.Move {
		return
	}
	from := before.State()
	if from.Walking() && from.Phase != decision.Next.Phase {
		if started := before.PhaseStartTime; started != nil {
			r.Meter.PhaseEnded(r.Service.Kind, from.Phase, now.Sub(started.Time))
		}
	}
	if decision.Event != nil {
		switch decision.Event.Reason {
		case upgrade.UpgradeComplete:
			r.Meter.Ended(r.Service.Kind, OutcomeCompleted)
		case upgrade.UpgradeAborted:
			r.Meter.Ended(r.Service.Kind, OutcomeAborted)
		}
	}
}

type report struct {
	ready   bool
	reason  string
	message string
}

// freeTheName ends what is said of a name that somebody else has.
const freeTheName = "; choose another name for this object, or remove the other first"

// deploymentReport says whether the API serves. In a walk that means at full
// strength, whichever template the pods have, so that it does not flap while
// they are replaced one by one; otherwise the rollout must be complete.
func deploymentReport(s upgrade.State, d upgrade.Deployment, takenNames []string) (report, bool) {
	with := func(message string) string {
		if d.Paused {
			message += "; " + d.PausedWords()
		}
		if d.Note != "" {
			return message + "; " + d.Note
		}
		return message
	}
	// Where the database is another, those of the old one go on until it is synced.
	rolled := !d.Unobserved && (!d.Unrendered || d.Elsewhere) && d.Updated == d.Replicas && d.Total == d.Replicas && d.Available == d.Replicas && !d.Paused
	switch {
	case len(takenNames) > 0:
		return report{false, ReasonNameTaken, "exists already and belongs to somebody else: " + strings.Join(takenNames, ", ") + freeTheName}, true
	case d.Standing == upgrade.Foreign:
		return report{false, ReasonNameTaken, fmt.Sprintf("Deployment %s exists already and belongs to %s", d.Name, cmp.Or(d.Owner, "somebody else")) + freeTheName}, true
	case s.Installed == "":
		return report{false, ReasonNotInstalled, "The Deployment is created once the database is installed"}, false
	case d.Standing != upgrade.Current:
		return report{false, ReasonDeploymentProgressing, with("The Deployment is being created")}, d.Trouble || d.Paused
	case d.Available >= d.Replicas && (rolled || s.Walking()):
		return report{true, ReasonDeploymentAvailable, fmt.Sprintf("%d of %d pods are available", d.Replicas, d.Replicas)}, false
	case d.Available >= d.Replicas:
		return report{false, ReasonDeploymentProgressing, with("The pods are being replaced")}, d.Trouble || d.Paused
	}
	return report{false, ReasonDeploymentUnavailable, with(fmt.Sprintf("Fewer than %d pods are available", d.Replicas))}, d.Trouble || d.Paused
}

func notReady(database, deployment bool) []string {
	var waits []string
	if !database {
		waits = append(waits, v1alpha1.ConditionDatabaseReady)
	}
	if !deployment {
		waits = append(waits, v1alpha1.ConditionDeploymentReady)
	}
	return waits
}

// wordsOnly tells whether two statuses differ in nothing but the messages of
// conditions.
func wordsOnly(a, b v1alpha1.ServiceStatus) bool {
	left, right := a.DeepCopy(), b.DeepCopy()
	for _, status := range []*v1alpha1.ServiceStatus{left, right} {
		for i := range status.Conditions {
			status.Conditions[i].Message = ""
		}
	}
	return equality.Semantic.DeepEqual(left, right)
}

func clipped(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-3], "") + "…"
}

func since(at *metav1.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.Time
}
