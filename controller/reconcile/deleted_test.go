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
	assert.Zero(t, d.quiet("ns", job.Name, now), "a name that was never in use")
	d.seen(job, false)
	assert.Equal(t, quietTime, d.quiet("ns", job.Name, now))
	assert.Equal(t, time.Second, d.quiet("ns", job.Name, now.Add(quietTime-time.Second)))
	assert.Zero(t, d.quiet("ns", job.Name, now.Add(quietTime)))
	assert.Zero(t, d.quiet("ns", job.Name, now.Add(quietTime)), "and it stays over")
	d.seen(job, false)
	d.seen(job, true)
	assert.Zero(t, d.quiet("ns", job.Name, now), "a finished Job gets no more pods")
}
