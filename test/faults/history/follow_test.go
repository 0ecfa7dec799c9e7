package history

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/c5c3/openstack-upgrade/controller/render"
	"github.com/c5c3/openstack-upgrade/controller/service"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
)

// phaseJob is an expand of the Glance "images" at a revision.
func phaseJob(uid, revision string) *batchv1.Job {
	glance := build.Glance("images", build.In("openstack"))
	glance.UID = "a-uid"
	job := render.Job(service.Glance().Workload(glance), upgrade.Work{Task: upgrade.Expand, From: "2026.1", To: "2026.2", Attempt: 1, Image: "r:2026.2"})
	job.UID, job.ResourceVersion, job.CreationTimestamp = types.UID(uid), revision, metav1.Now()
	return job
}

func TestWhatWentUnseenIsGoneAsOfTheListThatMissesIt(t *testing.T) {
	r := &Recorder{moments: map[Subject][]Moment{}, latest: map[string]uint64{}, present: map[string]map[string]origin{"Job": {}}}
	r.note("Job", watch.Event{Type: watch.Added, Object: phaseJob("one", "5")})
	r.note("Job", watch.Event{Type: watch.Added, Object: phaseJob("two", "6")})
	r.replace("Job", []runtime.Object{phaseJob("two", "6"), phaseJob("three", "8")}, 9)

	require.Len(t, r.moments, 1)
	for whose := range r.moments {
		var told []string
		for _, m := range r.Of(whose) {
			word := map[bool]string{true: " gone", false: ""}[m.Gone]
			told = append(told, string(m.UID)+word)
			if m.Gone {
				assert.EqualValues(t, 9, m.Revision, "nobody saw when it went: not before what the list shows beside it")
			}
		}
		assert.Equal(t, []string{"one", "two", "three", "one gone"}, told)
	}
	r.replace("Job", []runtime.Object{phaseJob("two", "6"), phaseJob("three", "8")}, 12)
	for whose := range r.moments {
		assert.Len(t, r.Of(whose), 4, "what is as it was is told once")
	}
}
