package reconcile

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
)

func keyOf(name string) client.ObjectKey { return client.ObjectKey{Namespace: "openstack", Name: name} }

func TestAJobIsDeletedWithItsPodsAndOnlyIfItIsTheVeryOneThatWasSeen(t *testing.T) {
	s := open(t, walking(upgrade.Contracting), build.Lockstep("2026.1"))
	s.served(next, walking(upgrade.RollingUpdate))
	s.made(walking(upgrade.Contracting), upgrade.Contract)
	seen := s.job(upgrade.Contract)
	s.looks(1)
	require.Len(t, s.deletes, 1)
	require.NotNil(t, s.deletes[0].PropagationPolicy)
	assert.Equal(t, metav1.DeletePropagationForeground, *s.deletes[0].PropagationPolicy)
	require.NotNil(t, s.deletes[0].Preconditions)
	assert.Equal(t, seen.UID, *s.deletes[0].Preconditions.UID)
	require.NotNil(t, s.deletes[0].Preconditions.ResourceVersion, "it may be complete by now")
	assert.Equal(t, seen.ResourceVersion, *s.deletes[0].Preconditions.ResourceVersion)
}

func TestAnEventIsToldOnlyOfWhatIsRecorded(t *testing.T) {
	s := open(t, atRest(), build.Lockstep("2026.2"))
	s.served(old, atRest())
	s.refuses = func(object client.Object) error {
		if _, is := object.(*v1alpha1.Glance); is {
			return apierrors.NewConflict(schema.GroupResource{Resource: "glances"}, "images", nil)
		}
		return nil
	}
	result, err := s.look()
	require.NoError(t, err, "a conflict passes by itself")
	assert.Equal(t, conflictPause, result.RequeueAfter)
	assert.Empty(t, s.told.Events)
	s.refuses = func(client.Object) error { return nil }
	s.looks(1)
	assert.Contains(t, <-s.told.Events, "UpgradeInitiated")
}

func TestAFailureIsAnErrorOfTheQueue(t *testing.T) {
	s := open(t, walking(upgrade.Expanding), build.Lockstep("2026.2"))
	s.served(old, atRest())
	s.made(walking(upgrade.Expanding), upgrade.Expand, batchv1.JobFailed)
	_, err := s.look()
	assert.ErrorContains(t, err, "ExpandFailed")
}

func TestWhatAnAbortLeavesIsNotedOnTheDeployment(t *testing.T) {
	aborted := atRest()
	aborted.AbortedImage, aborted.Attempt = next, 2
	s := open(t, aborted, build.Tag("2026.1"))
	s.served(old, atRest())
	s.looks(1)
	noted, readable := render.ReadRecord(s.deployment().Annotations[render.AnnotationRecord])
	require.True(t, readable)
	assert.Equal(t, next, noted.AbortedImage)
}

func TestALostStatusIsAdoptedAsFarAsAJobOfThatVeryWalkProves(t *testing.T) {
	for what, c := range map[string]struct {
		made upgrade.State
		want string
	}{
		"its contract":           {walking(upgrade.Contracting), "2026.2"},
		"that of another walk":   {upgrade.State{Installed: "2026.1", InstalledImage: old, Target: "2026.2", TargetImage: next, Phase: upgrade.Contracting, Attempt: 1}, "2026.1"},
		"that of another target": {upgrade.State{Installed: "2025.2", InstalledImage: old, Target: "2026.1", TargetImage: next, Phase: upgrade.Contracting, Attempt: 2}, "2026.1"},
	} {
		t.Run(what, func(t *testing.T) {
			s := open(t, upgrade.State{}, build.Lockstep("2026.2"))
			s.served(next, walking(upgrade.RollingUpdate))
			s.made(c.made, upgrade.Contract, batchv1.JobComplete)
			s.looks(1)
			assert.Equal(t, c.want, s.glance().Status.InstalledRelease)
		})
	}
}

func TestTheDeploymentIsReadyAtRestOnlyOnceItHasRolled(t *testing.T) {
	halfway := upgrade.Deployment{Standing: upgrade.Current, Replicas: 2, Total: 3, Updated: 1, Available: 2}
	at, _ := deploymentReport(atRest(), halfway, nil)
	assert.False(t, at.ready)
	assert.Equal(t, ReasonDeploymentProgressing, at.reason)
	inAWalk, _ := deploymentReport(walking(upgrade.RollingUpdate), halfway, nil)
	assert.True(t, inAWalk.ready, "readiness does not flap while pods are replaced one by one")
}
