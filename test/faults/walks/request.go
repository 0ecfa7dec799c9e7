package walks

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// denied is how the API server says that a webhook has refused something.
const denied = "denied the request"

// edit asks for something else, where that has a meaning, and tells whether that has met anything.
func (r *runner) edit(step Step) (met bool) {
	r.t.Helper()
	before := r.before()
	if before == nil {
		return false
	}
	wanted, has := r.asks(step, before.State(), asked(before))
	if !has {
		r.say("that has no meaning here")
		return false
	}
	return meant(step.Deed, r.request(wanted))
}

// answer is what became of a request: whether it has changed what is asked for, and whether it was refused. What is asked
// for already is neither.
type answer struct{ taken, refused bool }

// meant is whether an edit was answered as it was meant to be: a wrong one may be refused or slip through, but a good one
// that is refused is none.
func meant(deed Deed, got answer) bool {
	switch deed {
	case ReleaseBack, Skip, Downgrade, Third, Mismatch, Garbage:
		return got.taken || got.refused
	default:
		return got.taken
	}
}

// request asks for a wish, and judges the answer: what the law refuses before and after, a webhook that judges must have
// refused, and what the law takes before and after, it must have let pass.
func (r *runner) request(wanted wish) (got answer) {
	r.t.Helper()
	var lawBefore *upgrade.Rejection
	err := r.patiently("ask", func(ctx context.Context) error {
		o, err := r.now(ctx)
		if err != nil || o == nil {
			return err
		}
		old := o.DeepCopyObject().(object)
		ask(o, wanted)
		lawBefore = r.judged(o)
		err = r.Client.Patch(ctx, o, client.MergeFrom(old))
		got.taken = err == nil && o.GetGeneration() > old.GetGeneration()
		return err
	})
	got.refused = err != nil
	if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) && !strings.Contains(err.Error(), denied) {
		r.t.Fatalf("ask for %s: %v", wanted, err)
	}
	switch {
	case err == nil && lawBefore == nil:
		r.say("asked for %s", wanted)
	case err == nil:
		r.say("asked for %s, although %v", wanted, lawBefore)
		r.mustBeRefused(wanted)
	default:
		r.say("asked for %s: %.300s", wanted, err)
		if lawBefore == nil && strings.Contains(err.Error(), denied) {
			r.mustBeWrong(wanted)
		}
	}
	return got
}

// mustBeWrong demands that the law, which took a wish, has come to refuse it meanwhile, as the webhook did.
func (r *runner) mustBeWrong(wanted wish) {
	r.t.Helper()
	o, err := r.now(r.t.Context())
	if err != nil || o == nil {
		return
	}
	ask(o, wanted)
	if law := r.judged(o); law == nil {
		r.t.Errorf("the webhook refused %s, which the law takes", wanted)
	}
}

// judged is what the law says about an edit.
func (r *runner) judged(o object) *upgrade.Rejection {
	return upgrade.Check(o.State(), tables[r.Service].Wish(o))
}

// mustBeRefused demands that the law, which refused a wish, has come to take it meanwhile, if the webhook was there.
func (r *runner) mustBeRefused(wanted wish) {
	r.t.Helper()
	if r.hookSince.IsZero() || time.Since(r.hookSince) < hookLag {
		return
	}
	o, err := r.now(r.t.Context())
	if err != nil || o == nil || !asked(o).same(wanted) {
		return
	}
	if law := r.judged(o); law != nil {
		r.t.Errorf("the webhook let %s pass, although %v", wanted, law)
	}
}
