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
	jobs map[types.NamespacedName]left
}

// left is what is known of such a Job.
type left struct {
	gone   time.Time // when it was found gone; zero while it is there
	parted bool      // its object is gone
}

// seen notes a Job that is there.
func (d *deleted) seen(job *batchv1.Job, finished bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.jobs == nil {
		d.jobs = map[types.NamespacedName]left{}
	}
	key := types.NamespacedName{Namespace: job.Namespace, Name: job.Name}
	if finished {
		delete(d.jobs, key)
		return
	}
	d.jobs[key] = left{}
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
func (d *deleted) quiet(namespace, name string, now time.Time) (remains time.Duration, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	job, known := d.jobs[key]
	if !known {
		return 0, false
	}
	if job.gone.IsZero() {
		job.gone = now
	}
	d.jobs[key] = left{gone: job.gone} // somebody asks: it has an object
	return max(job.gone.Add(quietTime).Sub(now), 0), true
}

// part is told that the object of such a Job is gone. Its Jobs follow it, so that
// the quiet time begins; a namesake made within it keeps to it. What nobody has
// asked for since is forgotten when others part.
func (d *deleted) part(namespace, name string, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if job, known := d.jobs[key]; known {
		if job.gone.IsZero() {
			job.gone = now
		}
		d.jobs[key] = left{job.gone, true}
	}
	for key, job := range d.jobs {
		if job.parted && now.Sub(job.gone) > partedFor {
			delete(d.jobs, key)
		}
	}
}

func (d *deleted) forget(namespace, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.jobs, types.NamespacedName{Namespace: namespace, Name: name})
}
