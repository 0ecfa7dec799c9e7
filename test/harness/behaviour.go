package harness

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Forever is until the script is taken back.
const Forever = time.Duration(math.MaxInt64)

// Behaviour is how a pod lives, how it ends when it is deleted, or both.
type Behaviour struct {
	name  string
	live  func(situation) (now stage, again time.Duration)
	end   func(situation) (now ending, again time.Duration)
	turns []Behaviour
}

// Telling calls back whenever a pod lives by the behaviour.
func (b Behaviour) Telling(then func()) Behaviour {
	if live := b.live; live != nil {
		b.live = func(s situation) (stage, time.Duration) {
			then()
			return live(s)
		}
	}
	return b
}

// situation is what a behaviour judges by: the pod, and for how long it has been running and asked to end.
type situation struct {
	pod      *corev1.Pod
	running  time.Duration
	stopping time.Duration
}

// ending is whether a pod that was asked to end has done so, and how.
type ending struct {
	over bool
	exit int32
}

// Succeed runs for a while and exits 0.
func Succeed(after time.Duration) Behaviour {
	return Behaviour{name: "Succeed", live: func(s situation) (stage, time.Duration) {
		if s.running < after {
			return running(true), after - s.running
		}
		return stage{kind: ended}, 0
	}}
}

// agoOf is how long ago a container is reported to have ended. The Job controller counts its back-off from there, up to
// 80 seconds for the last of five attempts; reported an hour late, failures cost a test no time.
func agoOf(exit int32) time.Duration {
	if exit == 0 {
		return 0
	}
	return time.Hour
}

// Fail exits with a code and leaves a termination message.
func Fail(exit int32, message string) Behaviour { return fail("", exit, message, agoOf(exit)) }

// FailIn is Fail for one container by name, also an init container.
func FailIn(container string, exit int32, message string) Behaviour {
	return fail(container, exit, message, agoOf(exit))
}

// FailInRealTime is Fail with an honest clock: the Job controller waits 10, 20, 40 and 80 seconds between retries.
func FailInRealTime(exit int32, message string) Behaviour { return fail("", exit, message, 0) }

func fail(container string, exit int32, message string, ago time.Duration) Behaviour {
	return Behaviour{name: "Fail", live: func(situation) (stage, time.Duration) {
		return stage{kind: ended, container: container, exit: exit, message: message, ago: ago}, 0
	}}
}

// Hang runs, is ready, and never ends by itself. It is also what a server does.
func Hang() Behaviour {
	return Behaviour{name: "Hang", live: func(situation) (stage, time.Duration) { return running(true), 0 }}
}

// SlowReady runs at once and is ready after a while.
func SlowReady(after time.Duration) Behaviour {
	return Behaviour{name: "SlowReady", live: func(s situation) (stage, time.Duration) {
		return running(s.running >= after), max(0, after-s.running)
	}}
}

// CrashLoop starts, exits with a code, and is started again, more and more often.
func CrashLoop(exit int32, message string) Behaviour {
	return Behaviour{name: "CrashLoop", live: func(s situation) (stage, time.Duration) {
		const period = 3 * time.Second
		restarts := int32(1 + s.running/period)
		return stage{kind: crashing, exit: exit, message: message, restarts: restarts}, period
	}}
}

// NeverPull stays Pending because the image cannot be pulled.
func NeverPull(message string) Behaviour {
	return waitFor("ImagePullBackOff", message)
}

// NeverCreate stays Pending because a container cannot be made, in these words.
func NeverCreate(reason, message string) Behaviour { return waitFor(reason, message) }

func waitFor(reason, message string) Behaviour {
	return Behaviour{name: reason, live: func(situation) (stage, time.Duration) {
		return stage{kind: waiting, reason: reason, message: message}, 0
	}}
}

// Unschedulable stays Pending because no node takes the pod.
func Unschedulable(message string) Behaviour {
	return Behaviour{name: "Unschedulable", live: func(situation) (stage, time.Duration) {
		return stage{kind: unscheduled, reason: corev1.PodReasonUnschedulable, message: message}, 0
	}}
}

// SidecarStays ends every container with exit 0 but the named one, which goes on running.
func SidecarStays(sidecar string) Behaviour {
	return Behaviour{name: "SidecarStays", live: func(situation) (stage, time.Duration) {
		return stage{kind: alive, container: sidecar}, 0
	}}
}

// InTurn gives the first pod of an owner the first behaviour, the second pod the second, and all later ones the last.
func InTurn(behaviours ...Behaviour) Behaviour { return Behaviour{name: "InTurn", turns: behaviours} }

// IgnoreTerm pays no heed to SIGTERM and is killed (exit 137) after a while, at the latest when its grace period is over.
func IgnoreTerm(dies time.Duration) Behaviour {
	return Behaviour{end: func(s situation) (ending, time.Duration) {
		dies := min(dies, grace(s.pod))
		return ending{over: s.stopping >= dies, exit: 137}, max(0, dies-s.stopping)
	}}
}

// DrainSlow goes on with its work after SIGTERM and exits 0 when it is done, unless its grace period is over before.
func DrainSlow(takes time.Duration) Behaviour {
	return Behaviour{end: func(s situation) (ending, time.Duration) {
		if limit := grace(s.pod); takes > limit {
			return ending{over: s.stopping >= limit, exit: 137}, max(0, limit-s.stopping)
		}
		return ending{over: s.stopping >= takes}, max(0, takes-s.stopping)
	}}
}

// Lost never ends: its node does not answer. Only a script, or a deletion without grace, ends such a pod.
func Lost() Behaviour {
	return Behaviour{end: func(situation) (ending, time.Duration) { return ending{}, 0 }}
}

func grace(pod *corev1.Pod) time.Duration {
	if pod.DeletionGracePeriodSeconds == nil {
		return 0
	}
	return time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
}

// defaultFor is how a pod behaves that no script speaks of. A server ends in good order; a Job that is told to end dies.
func defaultFor(pod *corev1.Pod) Behaviour {
	b := Succeed(0)
	exit := int32(143)
	if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		b, exit = Hang(), 0
	}
	b.end = func(situation) (ending, time.Duration) { return ending{over: true, exit: exit}, 0 }
	return b
}
