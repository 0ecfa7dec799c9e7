// Package metrics exports where upgrades stand and how they went.
package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/c5c3/openstack-upgrade/shared/upgrade"
)

// Meter implements what the reconciler reports to.
type Meter struct {
	started time.Time

	mu      sync.Mutex
	current map[[3]string]upgrade.Phase
	counted map[[4]string]string // the last Job of each name, by its UID

	phase     *prometheus.GaugeVec
	since     *prometheus.GaugeVec
	durations *prometheus.HistogramVec
	upgrades  *prometheus.CounterVec
	jobs      *prometheus.CounterVec
}

// New registers the metrics. started is when the process did: Jobs that
// finished before are not counted again.
func New(registry prometheus.Registerer, version string, started time.Time) *Meter {
	object := []string{"kind", "namespace", "name"}
	m := &Meter{
		started: started, current: map[[3]string]upgrade.Phase{}, counted: map[[4]string]string{},
		phase: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "openstack_upgrade_phase",
			Help: "1 for the phase an object is in; phase is Steady when no upgrade is active."}, append(object, "phase")),
		since: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "openstack_upgrade_phase_start_timestamp_seconds",
			Help: "When the current phase began, in seconds since the epoch; absent when no upgrade is active."}, object),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "openstack_upgrade_phase_duration_seconds",
			Help: "How long a phase took, in seconds.", Buckets: prometheus.ExponentialBuckets(1, 3, 10)}, []string{"kind", "phase"}),
		upgrades: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "openstack_upgrade_upgrades_total",
			Help: "Upgrades that came to an end, by outcome."}, []string{"kind", "outcome"}),
		jobs: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "openstack_upgrade_jobs_total",
			Help: "Database Jobs that finished, by the suffix of their name and by outcome."}, []string{"kind", "suffix", "outcome"}),
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "openstack_upgrade_controller_build_info", Help: "1, labelled with the version."}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	registry.MustRegister(m.phase, m.since, m.durations, m.upgrades, m.jobs, build)
	return m
}

// Phase sets where an object stands.
func (m *Meter) Phase(kind, namespace, name string, phase upgrade.Phase, since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := [3]string{kind, namespace, name}
	if before, known := m.current[key]; known && before != phase {
		m.phase.DeleteLabelValues(kind, namespace, name, shown(before))
	}
	m.current[key] = phase
	m.phase.WithLabelValues(kind, namespace, name, shown(phase)).Set(1)
	if phase == upgrade.Steady || since.IsZero() {
		m.since.DeleteLabelValues(kind, namespace, name)
		return
	}
	m.since.WithLabelValues(kind, namespace, name).Set(float64(since.Unix()))
}

// PhaseEnded measures a phase that was left.
func (m *Meter) PhaseEnded(kind string, phase upgrade.Phase, took time.Duration) {
	m.durations.WithLabelValues(kind, shown(phase)).Observe(took.Seconds())
}

// Ended counts an upgrade.
func (m *Meter) Ended(kind, outcome string) { m.upgrades.WithLabelValues(kind, outcome).Inc() }

// Job counts a finished Job once in the life of the process.
func (m *Meter) Job(kind, namespace, name string, task upgrade.Task, uid, outcome string, finished time.Time) {
	if finished.Before(m.started) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key := [4]string{kind, namespace, name, string(task)}
	if m.counted[key] == uid {
		return
	}
	m.counted[key] = uid
	m.jobs.WithLabelValues(kind, string(task), outcome).Inc()
}

// Gone forgets an object.
func (m *Meter) Gone(kind, namespace, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.current, [3]string{kind, namespace, name})
	for _, task := range upgrade.Tasks {
		delete(m.counted, [4]string{kind, namespace, name, string(task)})
	}
	object := prometheus.Labels{"kind": kind, "namespace": namespace, "name": name}
	m.phase.DeletePartialMatch(object)
	m.since.DeletePartialMatch(object)
}

func shown(phase upgrade.Phase) string {
	if phase == upgrade.Steady {
		return "Steady"
	}
	return string(phase)
}
