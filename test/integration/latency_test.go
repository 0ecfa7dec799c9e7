package integration

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

const (
	transitions = 100
	atATime     = 4
)

// BenchmarkJobCompleteToNextJob measures what a walk loses between two Jobs: from the moment in which the API server has
// taken note that expand is Complete to the one in which it has accepted the Job of migrate, by its own log. A status
// write lies in between. The resync is the default of ten hours, so nothing but the watch can be the cause.
func BenchmarkJobCompleteToNextJob(b *testing.B) {
	var took []time.Duration
	for b.Loop() {
		took = append(took, measure(b)...)
	}
	slices.Sort(took)
	b.ReportMetric(float64(len(took)), "transitions")
	b.ReportMetric(milliseconds(took[(len(took)-1)/2]), "p50-ms")
	b.ReportMetric(milliseconds(took[(len(took)*99+99)/100-1]), "p99-ms")
	b.ReportMetric(milliseconds(took[len(took)-1]), "max-ms")
	b.ReportMetric(0, "ns/op")
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// measure lets so many Glances go through one transition each, few at a time.
func measure(b *testing.B) []time.Duration {
	s := stage(b)
	s.script(upgrade.Migrate, harness.Hang())
	var glances []*v1alpha1.Glance
	for i := range transitions {
		// Release and image out of step hold it until its turn.
		g := build.Glance(fmt.Sprintf("images-%03d", i), build.In(s.ns), build.Replicas(0), build.Tag("2026.2"))
		s.Create(b, g)
		g.Record().SetState(installed2026)
		require.NoError(b, s.Client.Status().Update(b.Context(), g))
		glances = append(glances, g)
	}
	s.start()
	for _, g := range glances {
		harness.Await(b, s.Env, g, "its turn", says(upgrade.ImageReleaseMismatch))
	}
	mark := s.Mark(b)
	slots := make(chan struct{}, atATime)
	var all sync.WaitGroup
	for _, g := range glances {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			s.transit(g)
		})
	}
	all.Wait()
	jobs := s.CallsSince(b, mark, harness.Actor{}).Where(harness.In(s.ns), accepted)
	completions := jobs.Where(harness.On("jobs/status"), harness.By("update"))
	var took []time.Duration
	for _, created := range jobs.Where(harness.On("jobs"), harness.By("create")) {
		object, isMigrate := strings.CutSuffix(created.Name, "-"+string(upgrade.Migrate))
		if !isMigrate {
			continue
		}
		var complete time.Time
		for _, c := range completions {
			if c.Name == v1alpha1.JobName(object, upgrade.Expand) && c.At.Before(created.At) {
				complete = c.At // the last one before
			}
		}
		if complete.IsZero() {
			b.Fatalf("nobody has written that expand of %s is complete", object)
		}
		took = append(took, created.At.Sub(complete))
	}
	if len(took) != transitions {
		b.Fatalf("%d transitions were seen, not %d", len(took), transitions)
	}
	return took
}

// transit asks for the release and waits until the Job of migrate is there.
func (s *scene) transit(g *v1alpha1.Glance) {
	before := &v1alpha1.Glance{}
	err := s.Client.Get(s.t.Context(), s.key(g.Name), before)
	if err == nil {
		err = s.Client.Patch(s.t.Context(), build.Change(before.DeepCopy(), build.Release("2026.2")), client.MergeFrom(before))
	}
	if err != nil {
		s.t.Errorf("ask for the release: %v", err)
		return
	}
	job := &batchv1.Job{}
	for deadline := time.Now().Add(harness.Patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if s.Client.Get(s.t.Context(), s.key(v1alpha1.JobName(g.Name, upgrade.Migrate)), job) == nil {
			return
		}
	}
	s.t.Errorf("%s did not come to migrate", g.Name)
}
