package reconcile

import (
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
)

// quietTime is how long after the disappearance of a Job that had work left no
// other is created. The Job controller acts on caches too: for a moment it may
// still make a pod for a Job that is gone, and that pod lives until the garbage
// collector finds it.
const quietTime = 5 * time.Second

// partedFor is how long a Job of a deleted object is remembered: as long as the
// garbage collector may take for it on a bad day.
const partedFor = 10 * time.Minute

// deleted remembers the Jobs that had work left when they were last seen.
type deleted struct {
	mu   sync.Mutex
	jobs map[types.NamespacedName]time.Time // when it was found gone; zero while it is there
}

// seen notes a Job that is there.
func (d *deleted) seen(job *batchv1.Job, finished bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.jobs == nil {
		d.jobs = map[types.NamespacedName]time.Time{}
	}
	key := types.NamespacedName{Namespace: job.Namespace, Name: job.Name}
	if finished {
		delete(d.jobs, key)
		return
	}
	d.jobs[key] = time.Time{}
}

// unshown notes a Job that is there although the cache does not show it. It is
// not forgotten before the cache does, or it is gone.
func (d *deleted) unshown(job *batchv1.Job, finished bool) {
	d.mu.Lock()
	_, known := d.jobs[types.NamespacedName{Namespace: job.Namespace, Name: job.Name}]
	d.mu.Unlock()
	if !known && !finished {
		d.seen(job, false)
	}
}

// quiet gives what is left of the quiet time for a name that no Job has. When
// it is over, known goes on to be true until the name is forgotten.
func (d *deleted) quiet(namespace, name string, now time.Time) (left time.Duration, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	gone, known := d.jobs[key]
	switch {
	case !known:
		return 0, false
	case gone.IsZero():
		gone = now
		d.jobs[key] = now
	}
	return max(gone.Add(quietTime).Sub(now), 0), true
}

// part is told that the object of such a Job is gone. Its Jobs follow it, so that
// the quiet time begins; a namesake made within it keeps to it. What nobody has
// asked for since is forgotten when others part.
func (d *deleted) part(namespace, name string, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if gone, known := d.jobs[key]; known && gone.IsZero() {
		d.jobs[key] = now
	}
	for key, gone := range d.jobs {
		if !gone.IsZero() && now.Sub(gone) > partedFor {
			delete(d.jobs, key)
		}
	}
}

func (d *deleted) forget(namespace, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.jobs, types.NamespacedName{Namespace: namespace, Name: name})
}
