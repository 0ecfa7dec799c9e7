package reconcile

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

func TestWordsOfOthersAreBoundedAndCarryNoCredentials(t *testing.T) {
	for _, said := range []string{
		"cannot connect: mysql+pymysql://glance:s3cret@db.example.org/glance refused",
		"password=s3cret; token: s3cret, PASSWD = s3cret",
		`{"secret": "s3cret"}`,
		"mysql://:s3cret@host",
		"Could not parse SQLAlchemy URL from string 'glance:s3cret@mariadb.database.svc/glance'",
		"rabbit://u:s3cret@h1:5672,u:s3cret@h2:5672/vhost",
		"glance:p@s3cret@db", "mysql+pymysql://glance:a/s3cret@db", "rabbit://user:pa s3cret@host",
		"password = 'two s3cret'", `connection = "x s3cret y"`, "connection=s3cret",
		"(1045, \"Access denied\") token=\x1b[31ms3cret\x1b[00m",
	} {
		assert.NotContains(t, bounded(said), "s3cret", said)
		assert.NotContains(t, tail(said, longest), "s3cret", said)
	}
	long := strings.Repeat("ä", 10_000) + " the end"
	assert.LessOrEqual(t, len(bounded(long)), longest+len("…"))
	assert.LessOrEqual(t, len(tail(long, longest)), longest+len("…"))
	assert.True(t, strings.HasSuffix(tail(long, longest), "the end"), "what a program says last is why it failed")
	digest := `Failed to pull image "registry.example.org/x/glance:2026.2@sha256:0123": not found`
	assert.Equal(t, digest, bounded(digest), "a digest is no credential")
	assert.Equal(t, "bold", bounded("\x1b[01;31mbold\x1b[00m"))
	assert.Equal(t, "one line of text", bounded("one\nline\n\tof  text"))
}

func TestOnlyCompleteAndFailedAreFinal(t *testing.T) {
	with := func(kind batchv1.JobConditionType, status corev1.ConditionStatus) *batchv1.Job {
		return &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: kind, Status: status}}}}
	}
	assert.Equal(t, upgrade.Complete, progress(with(batchv1.JobComplete, corev1.ConditionTrue), nil))
	assert.Equal(t, upgrade.Failed, progress(with(batchv1.JobFailed, corev1.ConditionTrue), nil))
	for _, job := range []*batchv1.Job{
		{}, with(batchv1.JobComplete, corev1.ConditionFalse), with(batchv1.JobFailed, corev1.ConditionUnknown),
		with(batchv1.JobFailureTarget, corev1.ConditionTrue), with(batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue), with(batchv1.JobSuspended, corev1.ConditionTrue),
	} {
		assert.Equal(t, upgrade.Pending, progress(job, nil))
	}
	assert.Equal(t, upgrade.Running, progress(&batchv1.Job{Status: batchv1.JobStatus{Failed: 1}}, nil), "retries are left")
	assert.Equal(t, upgrade.Ending, progress(&batchv1.Job{Status: batchv1.JobStatus{Succeeded: 1}}, nil))
	assert.Equal(t, upgrade.Ending, progress(&batchv1.Job{}, []corev1.Pod{{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}}))
	waiting := corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{
		{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}}}
	assert.Equal(t, upgrade.Pending, progress(&batchv1.Job{Status: batchv1.JobStatus{Active: 1}}, []corev1.Pod{waiting}), "active is not running")
}

func TestAPodThatCannotStartIsQuoted(t *testing.T) {
	waiting := func(reason, message string) corev1.Pod {
		return corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}}}
	}
	assert.Equal(t, "ImagePullBackOff: back-off pulling", stuck(waiting("ImagePullBackOff", "back-off pulling")))
	assert.Equal(t, `CreateContainerConfigError: secret "x" not found`, stuck(waiting("CreateContainerConfigError", `secret "x" not found`)))
	assert.Empty(t, stuck(waiting("ContainerCreating", "")))
	unschedulable := corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes"}}}}
	assert.Equal(t, "Unschedulable: 0/3 nodes", stuck(unschedulable))
	crashing := waiting("CrashLoopBackOff", "back-off 40s")
	crashing.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 3, Message: "no such option\n"}
	assert.Equal(t, "CrashLoopBackOff: back-off 40s (last exit code 3: no such option)", stuck(crashing))
}

func TestTheLastFailureIsQuoted(t *testing.T) {
	ended := func(at int64, code int32, message string) corev1.Pod {
		return corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message, FinishedAt: metav1.Unix(at, 0)}}}}}}
	}
	pods := []corev1.Pod{ended(10, 1, "first"), ended(30, 2, "last"), ended(20, 1, "second"), ended(40, 0, "fine")}
	assert.Equal(t, "exit code 2: last", lastWords(pods))
	job := &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue,
		Reason: batchv1.JobReasonDeadlineExceeded, Message: "Job was active longer than specified deadline"}}}}
	assert.Equal(t, "DeadlineExceeded: Job was active longer than specified deadline; exit code 2: last", failureOf(job, pods))
}

func TestWordsAloneAreWrittenLessAndLessOften(t *testing.T) {
	var p pace
	key := types.NamespacedName{Name: "images"}
	now := time.Unix(0, 0)
	assert.Zero(t, p.wait(key, now, false, false), "a transition is written at once")
	assert.Equal(t, firstPause, p.wait(key, now, true, false))
	writes := 0
	for range 600 {
		now = now.Add(time.Second)
		if p.wait(key, now, true, false) == 0 {
			writes++
		}
	}
	assert.Equal(t, 5, writes, "after 20, 60, 140, 300 and 600 seconds")
	assert.Zero(t, p.wait(key, now, false, false))
	now = now.Add(troublePause)
	assert.Zero(t, p.wait(key, now, true, true), "trouble is told soon")
	assert.NotZero(t, p.wait(key, now.Add(time.Second), true, true), "and once")
	assert.Zero(t, p.wait(key, now.Add(time.Second), true, false), "and taken back at once")
	assert.NotZero(t, p.wait(key, now.Add(2*time.Second), true, false))
}
