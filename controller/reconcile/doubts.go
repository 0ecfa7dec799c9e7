package reconcile

import (
	"errors"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// doubts is of which objects the caches must not be believed when something is
// to be done: they may be behind what others, or we ourselves, have done. So it
// is of every object after a start, for caches may have been filled long before
// this process began to lead; after a write that ended in an error, for it may
// have been done all the same; and after a Job with work left has vanished, for
// a pod of it may live on. A whole look past the caches that finds nothing else
// than they show ends the doubt.
type doubts struct {
	mu   sync.Mutex
	sure map[types.NamespacedName]bool
}

func (d *doubts) about(key types.NamespacedName) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.sure[key]
}

func (d *doubts) raise(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sure, key)
}

func (d *doubts) settle(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sure == nil {
		d.sure = map[types.NamespacedName]bool{}
	}
	d.sure[key] = true
}

// refusals are the answers of an API server that has done nothing.
var refusals = []metav1.StatusReason{
	metav1.StatusReasonConflict, metav1.StatusReasonNotFound, metav1.StatusReasonAlreadyExists, metav1.StatusReasonInvalid,
	metav1.StatusReasonForbidden, metav1.StatusReasonBadRequest, metav1.StatusReasonUnauthorized, metav1.StatusReasonTooManyRequests,
}

// unsure tells whether something that ended in errors may have been done all the
// same: any of them that is no refusal leaves it open.
func unsure(err error) bool {
	if several, are := err.(interface{ Unwrap() []error }); are {
		return slices.ContainsFunc(several.Unwrap(), unsure)
	}
	return err != nil && !errors.Is(err, errTaken) && !slices.Contains(refusals, apierrors.ReasonForError(err))
}
