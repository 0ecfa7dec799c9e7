package reconcile

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
)

// says is reason and message of a condition.
func (s *stage) says(kind string) string {
	s.t.Helper()
	c := meta.FindStatusCondition(s.glance().Status.Conditions, kind)
	if c == nil {
		return "nothing"
	}
	return c.Reason + ": " + c.Message
}

// startAgain puts another process in the place of the reconciler.
func (s *stage) startAgain() {
	r := s.Reconciler
	s.Reconciler = &Reconciler{Client: r.Client, Live: r.Live, Events: r.Events, Service: r.Service, Meter: r.Meter, Now: r.Now}
}

func TestAProcessThatHasJustBegunKnowsOfNoJobThatWasDeleted(t *testing.T) {
	s := open(t, walking(upgrade.Expanding), build.Lockstep("2026.2"))
	s.served(old, atRest())
	s.looks(5)
	require.True(t, s.has(upgrade.Expand))
	require.NoError(t, s.server.Delete(t.Context(), s.job(upgrade.Expand)))
	s.startAgain()
	result, err := s.look()
	require.NoError(t, err)
	require.False(t, s.has(upgrade.Expand), "a pod of the one before may still come")
	require.LessOrEqual(t, result.RequeueAfter, quietTime)
	require.Positive(t, result.RequeueAfter)
	s.now = s.now.Add(result.RequeueAfter)
	_, err = s.look()
	require.NoError(t, err)
	require.True(t, s.has(upgrade.Expand))
}

func TestAProcessThatHasJustBegunNeedNotWaitWhereNoJobCanHaveBeen(t *testing.T) {
	s := open(t, walking(upgrade.Expanding), build.Lockstep("2026.2"))
	s.served(old, atRest())
	s.made(walking(upgrade.Expanding), upgrade.Expand, "Complete")
	s.startAgain()
	for range 4 {
		_, err := s.look()
		require.NoError(t, err)
	}
	require.True(t, s.has(upgrade.Migrate), "it has come to the phase itself: %s", s.says("DatabaseReady"))
}

func TestAnAbortGetsThroughWhereTheCacheOfJobsHasStopped(t *testing.T) {
	s := open(t, walking(upgrade.Expanding), build.Lockstep("2026.2"))
	s.served(old, atRest())
	s.looks(5)
	require.True(t, s.has(upgrade.Expand))
	s.stop(&batchv1.JobList{}, &batchv1.Job{})
	job := s.job(upgrade.Expand)
	job.Status.Active, job.Status.Ready = 1, ptr.To[int32](1)
	require.NoError(t, s.server.Status().Update(t.Context(), job))
	s.edit(build.Lockstep("2026.1"))
	s.looks(5)
	require.False(t, s.has(upgrade.Expand))
}

// forbidden is a reader without rights.
type forbidden struct{ client.Reader }

func (f forbidden) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("may not"))
}

func (f forbidden) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, key.Name, errors.New("may not"))
}

func TestWhatMustNotBeReadIsSaid(t *testing.T) {
	s := open(t, atRest(), build.Lockstep("2026.2"))
	s.served(old, atRest())
	s.Live = forbidden{s.server}
	_, err := s.look()
	require.Error(t, err)
	assert.Contains(t, s.says("DatabaseReady")+s.says("DeploymentReady"), "is forbidden")
	assert.Empty(t, s.glance().Status.UpgradePhase)
	require.False(t, s.has(upgrade.Expand))
}
