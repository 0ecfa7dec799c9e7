package walks

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/faults/history"
	"github.com/c5c3/openstack-upgrade/test/faults/wire"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// lane is a namespace with a controller of its own, where one walk follows another. The controller lives on from walk to
// walk, unless a walk crashes it.
type lane struct {
	*harness.Env
	t          testing.TB
	ns         string
	line       *wire.Wire
	told       *history.Recorder
	controller *harness.ControllerProcess
}

// open makes a lane and starts its controller.
func open(t harness.Lasting, env *harness.Env, told *history.Recorder, as *rest.Config) *lane {
	t.Helper()
	l := &lane{Env: env, t: t.Longer, ns: env.Namespace(t), told: told}
	fernet, admin := build.KeystoneSecrets(l.ns)
	env.Create(t, build.DatabaseSecret(l.ns), fernet, admin)
	l.line = wire.Open(t, as)
	l.hook(t, true)
	l.start(t)
	return l
}

// start runs the controller, which ends with the lane.
func (l *lane) start(t testing.TB) {
	t.Helper()
	// It answers for its health on any port: many lanes start at once, and a port that was free a moment ago is not.
	l.controller = l.RunController(harness.Lasting{TB: t, Longer: l.t}, l.ns, l.line.Config(), "--health-address=127.0.0.1:0")
}

// crash kills the controller, and starts it again after a while. That it has ended for another reason is a fault of its
// own.
func (l *lane) crash(t testing.TB, down time.Duration) {
	t.Helper()
	if l.controller.Ended() {
		t.Errorf("the controller has ended by itself, see %s", l.controller.Log)
	}
	l.controller.Kill(t)
	time.Sleep(down)
	l.start(t)
}

// calm takes back every disturbance of the line.
func (l *lane) calm() {
	l.line.Plan()
	l.line.Thaw(wire.Everything)
	l.line.See(wire.Everything)
}

// hooked is the label of namespaces whose edits the webhook judges.
const hooked = "faults/webhook"

// hook has the webhook judge what is asked in this lane, or not.
func (l *lane) hook(t testing.TB, on bool) {
	t.Helper()
	value := "off"
	if on {
		value = "on"
	}
	ns := &corev1.Namespace{}
	l.Eventually(t, harness.Patience, "the namespace to be labelled", func(ctx context.Context) string {
		if err := l.Client.Get(ctx, client.ObjectKey{Name: l.ns}, ns); err != nil {
			return err.Error()
		}
		before := ns.DeepCopy()
		if ns.Labels[hooked] == value {
			return ""
		}
		ns.Labels[hooked] = value
		if err := l.Client.Patch(ctx, ns, client.MergeFrom(before)); err != nil {
			return err.Error()
		}
		return ""
	})
}

// writes are what the controller has asked about an object so far, however it was answered.
func (l *lane) writes(name string) (found []wire.Write) {
	for _, w := range l.line.Writes() {
		if !w.Event() && isOf(w.Name, name) {
			found = append(found, w)
		}
	}
	return found
}

// queue hands out walks.
type queue struct {
	mu   sync.Mutex
	left []Walk
}

func (q *queue) next() (Walk, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.left) == 0 {
		return Walk{}, false
	}
	walk := q.left[0]
	q.left = q.left[1:]
	return walk, true
}
