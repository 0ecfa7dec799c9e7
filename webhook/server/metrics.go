package server

import (
	"net/http"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/c5c3/openstack-upgrade/certs/serving"
	"github.com/c5c3/openstack-upgrade/webhook/admission"
)

// Names of the metrics.
const (
	MetricDecisions           = "openstack_upgrade_webhook_decisions_total"
	MetricDuration            = "openstack_upgrade_webhook_review_duration_seconds"
	MetricCertificateNotAfter = "openstack_upgrade_webhook_certificate_not_after_timestamp_seconds"
	MetricCertificateFault    = "openstack_upgrade_webhook_certificate_pair_rejected"
	MetricCertificateFaults   = "openstack_upgrade_webhook_certificate_reload_errors_total"
	MetricCrowded             = "openstack_upgrade_webhook_connections_pushed_out_total"
	MetricBuildInfo           = "openstack_upgrade_webhook_build_info"
)

type metrics struct {
	registry  *prometheus.Registry
	decisions *prometheus.CounterVec
	duration  prometheus.Histogram
	crowded   *prometheus.CounterVec
}

func newMetrics(certificate *serving.Follower, version string) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: MetricDecisions, Help: "Answers given to admission reviews.",
		}, []string{"kind", "operation", "verdict", "reason"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: MetricDuration, Help: "Time from the first byte of a review's body to its answer.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
		}),
		crowded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: MetricCrowded, Help: "Connections closed to make room for others, by port.",
		}, []string{"port"}),
	}
	m.registry.MustRegister(
		m.decisions, m.duration, m.crowded,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: MetricCertificateNotAfter, Help: "When the served certificate expires, in seconds since 1970; 0 while none is loaded.",
		}, func() float64 {
			if pair := certificate.Served(); pair != nil {
				return float64(pair.NotAfter.Unix())
			}
			return 0
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: MetricCertificateFault, Help: "1 while the key pair on disk cannot be served; the last good one, if any, is.",
		}, func() float64 {
			if certificate.Fault() != nil {
				return 1
			}
			return 0
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: MetricCertificateFaults, Help: "Looks at the certificate's directory that found no pair fit to be served; grows as long as that lasts.",
		}, func() float64 { return float64(certificate.Failures()) }),
		buildInfo(version),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

func buildInfo(version string) prometheus.Collector {
	revision := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				revision = setting.Value
			}
		}
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: MetricBuildInfo, Help: "Always 1; the labels tell what runs.",
		ConstLabels: prometheus.Labels{"version": version, "revision": revision, "go_version": runtime.Version()},
	})
	info.Set(1)
	return info
}

// crowds counts on one port, from 0.
func (m *metrics) crowds(port string) func() { return m.crowded.WithLabelValues(port).Inc }

func (m *metrics) count(d admission.Decision) {
	m.decisions.WithLabelValues(d.Kind, d.Operation, string(d.Verdict), string(d.Reason)).Inc()
}

func (m *metrics) took(elapsed time.Duration) { m.duration.Observe(elapsed.Seconds()) }

func (m *metrics) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	return mux
}
