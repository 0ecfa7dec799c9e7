package metrics

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

func TestAJobIsCountedOnceAndForgottenWithItsObject(t *testing.T) {
	m, now := New(prometheus.NewRegistry(), "test", time.Unix(100, 0)), time.Unix(200, 0)
	for range 3 {
		m.Job("Glance", "ns", "images", upgrade.Expand, "a", "complete", now)
	}
	m.Job("Glance", "ns", "images", upgrade.Expand, "b", "complete", now)
	m.Job("Glance", "ns", "images", upgrade.Migrate, "c", "complete", time.Unix(99, 0))
	assert.InDelta(t, 2, testutil.ToFloat64(m.jobs.WithLabelValues("Glance", string(upgrade.Expand), "complete")), 0)
	for i := range 1000 {
		name := fmt.Sprint(i)
		for _, task := range upgrade.Tasks {
			m.Job("Glance", "ns", name, task, name+string(task), "complete", now)
		}
		m.Gone("Glance", "ns", name)
	}
	assert.Len(t, m.counted, 1)
}
