package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAfterAJobWithWorkLeftVanishesItIsQuiet(t *testing.T) {
	var d deleted
	now := time.Unix(100, 0)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "images-db-expand"}}
	quiet := func(now time.Time) time.Duration {
		left, _ := d.quiet("ns", job.Name, now)
		return left
	}
	known := func() bool {
		_, known := d.quiet("ns", job.Name, now)
		return known
	}
	assert.Zero(t, quiet(now), "a name that was never in use")
	assert.False(t, known())
	d.seen(job, false)
	assert.Equal(t, quietTime, quiet(now))
	assert.Equal(t, time.Second, quiet(now.Add(quietTime-time.Second)))
	assert.Zero(t, quiet(now.Add(quietTime)))
	assert.True(t, known(), "until it is found out that it is gone")
	d.forget("ns", job.Name)
	assert.False(t, known())
	d.seen(job, false)
	d.part("ns", job.Name, now)
	assert.Equal(t, time.Second, quiet(now.Add(quietTime-time.Second)), "its object is gone, and a namesake keeps to the quiet time")
	d.part("ns", "another", now.Add(10*partedFor))
	assert.True(t, known(), "which has come to ask")
	d.part("ns", job.Name, now)
	d.part("ns", "another", now.Add(partedFor))
	assert.Len(t, d.jobs, 1)
	d.part("ns", "another", now.Add(partedFor+1))
	assert.Empty(t, d.jobs, "nobody has come to ask")
	d.seen(job, false)
	d.part("ns", "another", now.Add(10*partedFor))
	assert.True(t, known(), "its object is there")
	d.seen(job, true)
	assert.Zero(t, quiet(now), "a finished Job gets no more pods")
}
