package reconcile

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/controller/service"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
)

// handOver has another process lead, whose caches were filled before it did and have stopped where those of the first
// have.
func (s *stage) handOver() {
	before := s.Reconciler
	s.Reconciler = &Reconciler{Client: before.Client, Live: before.Live, Events: before.Events, Service: service.Glance(), Meter: silent{}, Now: before.Now}
}

// loseReply has the next creation or update of such a kind be done and answered with a time-out.
func (s *stage) loseReply(kind string) {
	lost := false
	late := func(object client.Object, err error) error {
		if err == nil && !lost && kindOf(object) == kind {
			lost = true
			return apierrors.NewTimeoutError("request did not complete within requested timeout", 0)
		}
		return err
	}
	s.Client = interceptor.NewClient(s.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return late(object, c.Create(ctx, object, options...))
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			return late(object, c.Update(ctx, object, options...))
		},
	})
}

// sure has the caches be believed, as after a while of quiet work.
func (s *stage) sure() { s.doubts.settle(keyOf("images")) }

// hastily takes looks between which nothing has time to catch up, whatever comes of them.
func (s *stage) hastily(count int) {
	s.t.Helper()
	for range count {
		_, _ = s.look()
		s.now = s.now.Add(conflictPause)
	}
}

func (s *stage) starts(task upgrade.Task) {
	s.t.Helper()
	job := s.job(task)
	require.NotNil(s.t, job)
	job.Status.Ready = ptr.To(int32(1))
	require.NoError(s.t, s.server.Status().Update(s.t.Context(), job))
}

func (s *stage) serves() string { return s.deployment().Spec.Template.Spec.Containers[0].Image }

func TestWhatWasDoneBeforeAHandOverOrALostReplyIsNotForgottenThoughNoCacheShowsIt(t *testing.T) {
	for name, forget := range map[string]func(s *stage, kind string){
		"hand-over":  func(*stage, string) {},
		"lost reply": func(s *stage, kind string) { s.loseReply(kind) },
	} {
		begin := func(s *stage, kind string) {
			forget(s, kind)
			s.hastily(1)
			if name == "hand-over" {
				s.handOver()
			}
		}
		for _, work := range []struct {
			task  upgrade.Task
			state upgrade.State
			wish  build.GlanceOption
			edit  build.GlanceOption // that lets an expand be next
		}{
			{upgrade.Sync, atRest(), build.Lockstep("2026.1"), build.Lockstep("2026.2")},
			{upgrade.Migrate, walking(upgrade.Migrating), build.Lockstep("2026.2"), build.Tag("2026.2-p1")},
		} {
			t.Run(name+", a Job that runs, "+string(work.task), func(t *testing.T) {
				s := open(t, work.state, work.wish)
				s.served(old, atRest())
				s.stop(&batchv1.JobList{}, &batchv1.Job{})
				begin(s, "Job")
				s.starts(work.task)
				s.edit(work.edit)
				s.hastily(6)
				assert.False(t, s.has(upgrade.Expand), "it would run beside that")
			})
		}
		t.Run(name+", a rollout", func(t *testing.T) {
			s := open(t, walking(upgrade.RollingUpdate), build.Lockstep("2026.2"))
			s.served(old, atRest())
			s.made(walking(upgrade.RollingUpdate), upgrade.Migrate, batchv1.JobComplete)
			s.stop(&appsv1.DeploymentList{}, &appsv1.Deployment{})
			begin(s, "Deployment")
			require.Equal(t, next, s.serves())
			s.edit(build.Lockstep("2026.1"))
			s.hastily(6)
			assert.Equal(t, upgrade.Steady, s.glance().State().Phase, "the abort is over")
			assert.Equal(t, old, s.serves(), "pods go back")
			assert.False(t, s.has(upgrade.Sync) && s.serves() == next, "no sync beside pods that come up for the other release")
		})
	}
}

// The model found it: a walk that waits keeps pods at its image, also where it has long been aborted.
func TestPodsAreNotRolledByTheRecordOfAWalkThatIsOver(t *testing.T) {
	s := open(t, walking(upgrade.RollingUpdate), build.Lockstep("2026.2"))
	s.served(old, atRest())
	s.made(walking(upgrade.RollingUpdate), upgrade.Migrate, batchv1.JobComplete)
	s.stop(&v1alpha1.GlanceList{}, &v1alpha1.Glance{})
	s.edit(build.Lockstep("2026.1"))
	aborted := s.glance()
	aborted.SetState(atRest())
	require.NoError(t, s.server.Status().Update(t.Context(), aborted))
	s.hastily(4)
	assert.Equal(t, old, s.serves())
}

func TestAWholeLookThatFindsTheCachesRightEndsTheDoubt(t *testing.T) {
	s := open(t, atRest())
	s.served(old, atRest())
	require.True(t, s.doubts.about(keyOf("images")), "after a start")
	s.looks(1)
	require.True(t, s.has(upgrade.Sync))
	require.False(t, s.doubts.about(keyOf("images")))
	s.loseReply("Deployment")
	require.NoError(t, s.server.Delete(t.Context(), s.deployment()))
	s.hastily(1)
	require.True(t, s.doubts.about(keyOf("images")), "after an answer that did not come")
}

func TestARefusalRaisesNoDoubtAndAnythingElseDoes(t *testing.T) {
	conflict := fmt.Errorf("update Deployment images: %w", apierrors.NewConflict(appsv1.Resource("deployments"), "images", nil))
	late := fmt.Errorf("create job images-db-sync: %w", apierrors.NewTimeoutError("request did not complete within requested timeout", 0))
	for _, sure := range []error{nil, conflict, errors.Join(conflict, nil), errTaken} {
		assert.False(t, unsure(sure), "%v", sure)
	}
	for _, open := range []error{late, errors.Join(conflict, late), errors.New("connection reset by peer"), apierrors.NewInternalError(errors.New("etcdserver: leader changed"))} {
		assert.True(t, unsure(open), "%v", open)
	}
}

func TestAnObjectThatIsGoneOrGoingIsLeftAloneThoughTheCacheShowsIt(t *testing.T) {
	s := open(t, atRest())
	s.stop(&corev1.PodList{}, &corev1.Pod{})
	live := interceptor.NewClient(s.server, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
		return apierrors.NewNotFound(appsv1.Resource("glances"), key.Name)
	}})
	s.Live = live
	s.looks(2)
	assert.False(t, s.has(upgrade.Sync))
}

func TestContractSeesWhatSomebodyHasDoneToTheDeploymentThatTheCacheDoesNotShow(t *testing.T) {
	for name, deed := range map[string]func(s *stage, d *appsv1.Deployment) error{
		"turned back": func(s *stage, d *appsv1.Deployment) error {
			d.Spec.Template = render.Deployment(s.workload(), old, atRest()).Spec.Template
			return s.server.Update(s.t.Context(), d)
		},
		"paused": func(s *stage, d *appsv1.Deployment) error {
			d.Spec.Paused = true
			return s.server.Update(s.t.Context(), d)
		},
		"deleted": func(s *stage, d *appsv1.Deployment) error { return s.server.Delete(s.t.Context(), d) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, walking(upgrade.RollingUpdate), build.Lockstep("2026.2"))
			s.served(next, walking(upgrade.RollingUpdate))
			s.stop(&appsv1.DeploymentList{}, &appsv1.Deployment{})
			s.sure()
			d := s.deployment()
			d.Generation++
			require.NoError(t, deed(s, d))
			s.looks(3)
			assert.False(t, s.has(upgrade.Contract))
		})
	}
}

func TestNoJobIsMadeBesideThePodOfOneThatWasDeletedWhileItRanAndThatNoCacheShows(t *testing.T) {
	for _, c := range []struct {
		state upgrade.State
		task  upgrade.Task
		wish  build.GlanceOption
	}{
		{walking(upgrade.Expanding), upgrade.Expand, build.Lockstep("2026.2")},
		{walking(upgrade.Migrating), upgrade.Migrate, build.Lockstep("2026.2")},
		{atRest(), upgrade.Sync, build.Lockstep("2026.1")},
	} {
		t.Run(string(c.task), func(t *testing.T) {
			s := open(t, c.state, c.wish)
			s.served(old, atRest())
			s.stop(&corev1.PodList{}, &corev1.Pod{})
			s.looks(2)
			first := s.job(c.task)
			require.NotNil(t, first)
			s.sure()
			s.pod(first.Spec.Template, "images-working")
			require.NoError(t, s.server.Delete(t.Context(), first, client.PropagationPolicy(metav1.DeletePropagationBackground)))
			s.looks(4)
			assert.False(t, s.has(c.task))

			working := &corev1.Pod{}
			require.NoError(t, s.server.Get(t.Context(), keyOf("images-working"), working))
			require.NoError(t, s.server.Delete(t.Context(), working))
			s.looks(2)
			assert.True(t, s.has(c.task), "it has ended")
		})
	}
}

func TestAPodOfAJobThatWasThereBeforeSaysNothingOfHowFarThisOneIs(t *testing.T) {
	s := open(t, walking(upgrade.Contracting), build.Lockstep("2026.2"))
	s.served(next, walking(upgrade.RollingUpdate))
	s.made(walking(upgrade.Contracting), upgrade.Contract)
	job := s.job(upgrade.Contract)
	s.pod(job.Spec.Template, "images-db-contract-left", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded })
	s.pod(job.Spec.Template, "images-db-contract-waits", func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
		pod.Status.Phase = corev1.PodPending
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}
	})
	s.looks(3)
	assert.Contains(t, s.glance().Status.Conditions[0].Message, "ImagePullBackOff")
	s.edit(build.Lockstep("2026.1"))
	s.looks(3)
	assert.False(t, s.has(upgrade.Contract), "nothing of it ever ran, so the abort does not come too late")
}

// What caches do not show may be gone before they ever do.
func TestWhoWaitsForWhatNoCacheShowsLooksAgain(t *testing.T) {
	of := func(t *testing.T, state upgrade.State, wish build.GlanceOption, image string, noted upgrade.State) *stage {
		s := open(t, state, wish)
		s.served(image, noted)
		s.stop(&corev1.PodList{}, &corev1.Pod{})
		return s
	}
	abort := of(t, walking(upgrade.Expanding), build.Lockstep("2026.1"), old, atRest())
	job := render.Job(abort.workload(), upgrade.WorkOf(walking(upgrade.Expanding), abort.Service.Wish(abort.glance()), upgrade.Expand))
	abort.pod(job.Spec.Template, "images-db-expand-left")
	gate := of(t, walking(upgrade.RollingUpdate), build.Lockstep("2026.2"), next, walking(upgrade.RollingUpdate))
	gate.pod(render.Deployment(gate.workload(), old, atRest()).Spec.Template, "images-old")
	sync := of(t, atRest(), build.Tag("2026.1-p1"), old, atRest())
	sync.pod(render.Deployment(sync.workload(), next, walking(upgrade.RollingUpdate)).Spec.Template, "images-strange")
	for name, s := range map[string]*stage{"abort": abort, "gate": gate, "sync": sync} {
		t.Run(name, func(t *testing.T) {
			s.looks(3)
			for _, sure := range []bool{false, true} {
				if sure {
					s.sure()
				}
				result, err := s.look()
				require.NoError(t, err)
				assert.NotZero(t, result.RequeueAfter, "the caches are believed: %t", sure)
				assert.LessOrEqual(t, result.RequeueAfter, foreignPause)
			}
		})
	}
	run := open(t, walking(upgrade.Expanding), build.Lockstep("2026.2"))
	run.served(old, atRest())
	for !run.has(upgrade.Expand) {
		result, err := run.look()
		require.NoError(t, err)
		require.NotZero(t, result.RequeueAfter)
	}
}

func TestACacheThatStaysBehindIsAskedLessAndLess(t *testing.T) {
	s := open(t, atRest(), build.Lockstep("2026.2"))
	s.refuses = func(object client.Object) error {
		return apierrors.NewConflict(appsv1.Resource("glances"), object.GetName(), nil)
	}
	last := conflictPause / 2
	for last < longestRace {
		result, err := s.look()
		require.NoError(t, err)
		require.Equal(t, min(2*last, longestRace), result.RequeueAfter)
		last = result.RequeueAfter
	}
	s.refuses = func(client.Object) error { return nil }
	s.looks(1)
	pause, again := s.races.pause(keyOf("images"))
	require.Equal(t, conflictPause, pause, "once something is done it is forgotten")
	require.False(t, again)
}
