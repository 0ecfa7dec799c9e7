package harness

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

type stageKind int

// The stages of a pod, in the order in which it can go through them.
const (
	unscheduled stageKind = iota
	waiting
	alive
	crashing
	ended
)

// longestMessage is where a kubelet cuts a termination message.
const longestMessage = 4096

// stage is where a pod is to be now.
type stage struct {
	kind stageKind
	// ready is for alive. container is the one that is meant, if not all are.
	ready     bool
	container string
	// reason and message say why a pod waits; message also what a container that ended has left.
	reason, message string
	exit            int32
	restarts        int32
	ago             time.Duration
}

func running(ready bool) stage { return stage{kind: alive, ready: ready} }

// report is the status of a pod at a stage, as a kubelet writes it. What the status says already is kept, times too.
func report(pod *corev1.Pod, s stage, address string, now time.Time) corev1.PodStatus {
	if s.kind == ended && pod.Spec.RestartPolicy == corev1.RestartPolicyAlways && pod.DeletionTimestamp == nil {
		s.kind, s.restarts = crashing, max(1, s.restarts)
	}
	status := *pod.Status.DeepCopy()
	stamp := metav1.NewTime(now).Rfc3339Copy()
	if s.kind == unscheduled {
		status.Phase = corev1.PodPending
		setCondition(&status, corev1.PodScheduled, false, s.reason, s.message, stamp)
		return status
	}
	if status.StartTime == nil {
		status.StartTime = &stamp
	}
	status.HostIP, status.HostIPs = nodeAddress, []corev1.HostIP{{IP: nodeAddress}}
	status.PodIP, status.PodIPs = address, []corev1.PodIP{{IP: address}}
	failedInit := slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return s.kind == ended && c.Name == s.container })
	started := s.kind > waiting && !failedInit
	status.InitContainerStatuses = containers(pod.Spec.InitContainers, pod.Status.InitContainerStatuses, func(c corev1.Container) corev1.ContainerState {
		sidecar := ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
		switch {
		case s.kind == waiting:
			return waitingState(s)
		case failedInit && c.Name == s.container:
			return endedState(s, stamp)
		case sidecar && s.kind < ended:
			return runningState(stamp)
		default:
			return endedState(stage{ago: s.ago}, stamp)
		}
	}, s)
	status.ContainerStatuses = containers(pod.Spec.Containers, pod.Status.ContainerStatuses, func(c corev1.Container) corev1.ContainerState {
		switch {
		case !started && (failedInit || len(pod.Spec.InitContainers) > 0):
			return waitingState(stage{reason: "PodInitializing"})
		case s.kind == waiting:
			return waitingState(s)
		case s.kind == alive && s.container != "" && c.Name != s.container:
			return endedState(stage{}, stamp)
		case s.kind == alive:
			return runningState(stamp)
		case s.kind == crashing:
			return waitingState(stage{reason: "CrashLoopBackOff", message: fmt.Sprintf("back-off 10s restarting failed container=%s pod=%s_%s(%s)", c.Name, pod.Name, pod.Namespace, pod.UID)})
		case s.container != "" && c.Name != s.container:
			return endedState(stage{ago: s.ago}, stamp)
		default:
			return endedState(s, stamp)
		}
	}, s)
	status.Phase = phaseOf(s)
	setCondition(&status, corev1.PodReadyToStartContainers, s.kind != ended, "", "", stamp)
	setCondition(&status, corev1.PodInitialized, started || len(pod.Spec.InitContainers) == 0, "", "", stamp)
	ready, why := s.kind == alive && s.ready, ""
	switch {
	case ready:
	case status.Phase == corev1.PodSucceeded:
		why = "PodCompleted"
	case status.Phase == corev1.PodFailed:
		why = "PodFailed"
	default:
		why = "ContainersNotReady"
	}
	setCondition(&status, corev1.ContainersReady, ready, why, "", stamp)
	setCondition(&status, corev1.PodReady, ready, why, "", stamp)
	if failedInit && pod.Status.Phase != corev1.PodFailed {
		// The Job controller counts its back-off from here, since the containers proper have no end to count from.
		for i, c := range status.Conditions {
			if c.Type == corev1.PodReady {
				status.Conditions[i].LastTransitionTime = metav1.NewTime(stamp.Add(-s.ago))
			}
		}
	}
	return status
}

func phaseOf(s stage) corev1.PodPhase {
	switch s.kind {
	case unscheduled, waiting:
		return corev1.PodPending
	case alive, crashing:
		return corev1.PodRunning
	case ended:
		if s.exit == 0 {
			return corev1.PodSucceeded
		}
		return corev1.PodFailed
	default:
		return corev1.PodUnknown
	}
}

// containers are the statuses of the containers, each in the state that is asked for it.
func containers(specs []corev1.Container, before []corev1.ContainerStatus, state func(corev1.Container) corev1.ContainerState, s stage) []corev1.ContainerStatus {
	var all []corev1.ContainerStatus
	for _, spec := range specs {
		status := corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, State: state(spec), RestartCount: s.restarts}
		for _, old := range before {
			if old.Name == spec.Name {
				keepTimes(&status.State, old.State)
			}
		}
		if status.State.Waiting == nil {
			status.ImageID = "stand-in://" + spec.Image
			status.ContainerID = "stand-in://" + spec.Name
		}
		up := status.State.Running != nil
		status.Started, status.Ready = &up, up && (s.ready || s.container != "")
		if s.kind == crashing {
			status.LastTerminationState = endedState(s, metav1.Now().Rfc3339Copy())
		}
		all = append(all, status)
	}
	return all
}

func keepTimes(state *corev1.ContainerState, old corev1.ContainerState) {
	switch {
	case state.Running != nil && old.Running != nil:
		state.Running.StartedAt = old.Running.StartedAt
	case state.Terminated != nil && old.Terminated != nil:
		state.Terminated.StartedAt, state.Terminated.FinishedAt = old.Terminated.StartedAt, old.Terminated.FinishedAt
	}
}

func waitingState(s stage) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: s.reason, Message: s.message}}
}

func runningState(now metav1.Time) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
}

func endedState(s stage, now metav1.Time) corev1.ContainerState {
	reason := "Completed"
	if s.exit != 0 {
		reason = "Error"
	}
	if s.reason != "" {
		reason = s.reason
	}
	message := s.message
	if len(message) > longestMessage {
		message = message[:longestMessage]
	}
	at := metav1.NewTime(now.Add(-s.ago))
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: s.exit, Reason: reason, Message: message, StartedAt: at, FinishedAt: at,
	}}
}

func setCondition(status *corev1.PodStatus, kind corev1.PodConditionType, holds bool, reason, message string, now metav1.Time) {
	wanted := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: now}
	if holds {
		wanted.Status = corev1.ConditionTrue
	}
	for i, old := range status.Conditions {
		if old.Type != kind {
			continue
		}
		if old.Status == wanted.Status {
			wanted.LastTransitionTime = old.LastTransitionTime
		}
		wanted.ObservedGeneration, wanted.LastProbeTime = old.ObservedGeneration, old.LastProbeTime
		status.Conditions[i] = wanted
		return
	}
	status.Conditions = append(status.Conditions, wanted)
}
