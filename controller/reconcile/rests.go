package reconcile

import (
	"hash/maphash"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// Versions tells what the caches hold without reading it.
type Versions interface {
	// Version is that of an object of the same type as kind, empty if there is none.
	Version(kind client.Object, key client.ObjectKey) string
	// PodVersions has a word for each pod of an instance, in no order.
	PodVersions(namespace, instance string, say func(name, version string))
}

// rests remembers which objects were at rest, and in which versions they and
// their children were then. A look decides by what the caches hold; while
// that is the same, it need not be taken again: a dozen children that appear
// at once, as after a start, ask for a dozen looks. It takes two looks that
// agree to be remembered, so that what one of them wrote is seen by the next,
// and nothing is remembered for long: unasked looks are always taken.
type rests struct {
	mu   sync.Mutex
	seed maphash.Seed
	at   map[types.NamespacedName]rest
}

type rest struct {
	print uint64
	twice bool
	since time.Time
}

// restTime is for how long a look is not repeated, shorter than the shortest
// period of unasked looks.
const restTime = 30 * time.Second

// the kinds of children, to ask for their versions.
var (
	aJob        = &batchv1.Job{}
	aDeployment = &appsv1.Deployment{}
	aService    = &corev1.Service{}
	aConfigMap  = &corev1.ConfigMap{}
)

// print stands for the versions of an object and all its children; zero if
// they cannot be told.
func (r *Reconciler) print(key types.NamespacedName) uint64 {
	if r.Versions == nil {
		return 0
	}
	r.rests.mu.Lock()
	if r.rests.at == nil {
		r.rests.seed, r.rests.at = maphash.MakeSeed(), map[types.NamespacedName]rest{}
	}
	seed := r.rests.seed
	r.rests.mu.Unlock()
	var hash maphash.Hash
	hash.SetSeed(seed)
	add := func(kind client.Object, name string) {
		hash.WriteString(r.Versions.Version(kind, client.ObjectKey{Namespace: key.Namespace, Name: name}))
		hash.WriteByte(0)
	}
	add(r.sample, key.Name)
	for _, task := range upgrade.Tasks {
		add(aJob, v1alpha1.JobName(key.Name, task))
	}
	add(aDeployment, key.Name)
	add(aService, key.Name)
	add(aConfigMap, render.Workload{Name: key.Name}.ConfigName())
	sum := hash.Sum64()
	r.Versions.PodVersions(key.Namespace, key.Name, func(name, version string) {
		hash.Reset()
		hash.WriteString(name)
		hash.WriteByte(0)
		hash.WriteString(version)
		sum += hash.Sum64() // in whatever order they come
	})
	return max(sum, 1)
}

func (r *rests) same(key types.NamespacedName, print uint64, now time.Time) bool {
	if print == 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.at[key]
	return last.print == print && last.twice && now.Sub(last.since) < restTime
}

func (r *rests) note(key types.NamespacedName, print uint64, now time.Time) {
	if print == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at[key] = rest{print, r.at[key].print == print, now}
}

func (r *rests) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.at, key)
}
