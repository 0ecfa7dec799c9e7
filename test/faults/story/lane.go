package story

import (
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/faults/history"
	"github.com/c5c3/openstack-upgrade/test/faults/wire"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// Lane is a namespace with a controller of its own behind a wire.
type Lane struct {
	*harness.Env
	NS   string
	Wire *wire.Wire
	Told *history.Recorder

	owner      testing.TB
	flags      []string
	mu         sync.Mutex
	controller *harness.ControllerProcess
	killed     bool
	mayEnd     bool

	asleep []resting
	parted int // of those that were asleep
	woken  []string
}

// Open makes a lane that lasts as long as the test.
func Open(t testing.TB, env *harness.Env, told *history.Recorder, as *rest.Config) *Lane {
	t.Helper()
	l := Prepare(t, env, told, as)
	l.start(t)
	return l
}

// Prepare makes a lane whose controller starts at the first look.
func Prepare(t testing.TB, env *harness.Env, told *history.Recorder, as *rest.Config) *Lane {
	t.Helper()
	l := &Lane{Env: env, NS: env.Namespace(t), Told: told, owner: t, flags: []string{"--health-address=127.0.0.1:0"}, killed: true}
	fernet, admin := build.KeystoneSecrets(l.NS)
	env.Create(t, build.DatabaseSecret(l.NS), fernet, admin)
	l.Wire = wire.Open(t, as)
	l.Wire.OnKill(l.Kill)
	return l
}

// start runs the controller, which lasts as long as the lane. It answers for its health on any port: many lanes start
// at once, and a port that was free a moment ago is not.
func (l *Lane) start(t testing.TB) {
	t.Helper()
	process := l.RunController(harness.Lasting{TB: t, Longer: l.owner}, l.NS, l.Wire.Config(), l.flags...)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.controller, l.killed = process, false
}

// Kill ends the controller at once. The next look starts it anew.
func (l *Lane) Kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.killed = true
	l.controller.Kill(l.owner)
}

// tend starts the controller anew when it was killed. That it ends for another reason is a fault of its own.
func (l *Lane) tend(t testing.TB) {
	t.Helper()
	l.mu.Lock()
	killed := l.killed
	ended := !killed && l.controller.Ended()
	expected := ended && l.mayEnd
	l.mayEnd = l.mayEnd && !expected
	l.mu.Unlock()
	switch {
	case killed || expected:
		l.start(t)
	case ended:
		l.start(t) // for the stories after this
		t.Fatalf("the controller has ended by itself, see %s", l.controller.Log)
	}
}

// Calm takes back every disturbance of the wire.
func (l *Lane) Calm() {
	l.Wire.Plan()
	l.Wire.Refuse(nil)
	l.Wire.Thaw(wire.Everything)
	l.Wire.See(wire.Everything)
	l.Wire.Up()
}

// Controller is the process of the lane.
func (l *Lane) Controller() *harness.ControllerProcess {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.controller
}

// MayEnd has the next end of the controller, by itself, be no fault: the next look starts it anew.
func (l *Lane) MayEnd() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mayEnd = true
}

// Tend starts the controller anew if it was killed.
func (l *Lane) Tend(t testing.TB) { t.Helper(); l.tend(t) }

// Flags are given to the controller, beside those that every lane needs, from its next start on.
func (l *Lane) Flags(flags ...string) { l.flags = append(l.flags, flags...) }
