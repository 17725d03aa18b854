package service

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
)

// seriesMax limits how many limits have their own metrics, since detailed_metric puts clients' values into names. All further
// limits are counted together, as "other".
const seriesMax = 10_000

// nameMax is the longest name of a limit with its own metrics. With detailed_metric names contain values of headers.
const nameMax = 1024

// Metrics are the metrics for Prometheus.
type Metrics struct {
	requests *prometheus.CounterVec
	duration prometheus.Histogram
	errors   prometheus.Counter
	shadowed prometheus.Counter

	hits, over, near, within, shadow *prometheus.CounterVec
	series                           sync.Map // by domain and limit: *series
	count                            atomic.Int64

	// About the configuration; set by the code that loads it.
	ConfigLoads  *prometheus.CounterVec
	ConfigGood   prometheus.Gauge
	ConfigTime   prometheus.Gauge
	ConfigLimits prometheus.Gauge
}

// series is the counters of one limit.
type series struct{ hits, over, near, within, shadow prometheus.Counter }

type seriesKey struct{ domain, limit string }

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		r.MustRegister(c)
		return c
	}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		r.MustRegister(c)
		return c
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		r.MustRegister(g)
		return g
	}
	m.requests = vec("limitkv_rls_requests_total", "Requests by answer: ok, over_limit or error.", "code")
	for _, code := range []string{"ok", "over_limit", "error"} {
		m.requests.WithLabelValues(code)
	}
	m.duration = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "limitkv_rls_request_duration_seconds", Help: "How long requests took.",
		Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1},
	})
	r.MustRegister(m.duration)
	m.errors = counter("limitkv_rls_limitkv_errors_total", "Calls that limitkv did not answer, or not in time.")
	m.shadowed = counter("limitkv_rls_global_shadow_mode_total", "Refusals that the global shadow mode turned into OK.")
	labels := []string{"domain", "limit"}
	m.hits = vec("limitkv_rls_hits_total", "Hits of a limit.", labels...)
	m.over = vec("limitkv_rls_over_limit_total", "Hits that a limit refused, or would have in shadow mode.", labels...)
	m.near = vec("limitkv_rls_near_limit_total", "Hits that were granted above the near-limit ratio.", labels...)
	m.within = vec("limitkv_rls_within_limit_total", "Hits that a limit granted.", labels...)
	m.shadow = vec("limitkv_rls_shadow_mode_total", "Hits that shadow_mode let through above the limit.", labels...)
	m.ConfigLoads = vec("limitkv_rls_config_loads_total", "Times that a new configuration was read, by result: success or error.", "result")
	m.ConfigLoads.WithLabelValues("success")
	m.ConfigLoads.WithLabelValues("error")
	m.ConfigGood = gauge("limitkv_rls_config_last_load_successful", "1 if the configuration in the files is the one in use.")
	m.ConfigTime = gauge("limitkv_rls_config_last_load_success_timestamp_seconds", "When the configuration in use was read.")
	m.ConfigLimits = gauge("limitkv_rls_config_limits", "How many limits the configuration in use has.")
	return m
}

// answered counts a request.
func (m *Metrics) answered(r *rls.RateLimitResponse, err error, took time.Duration) {
	code := "error"
	switch {
	case err != nil:
	case r.OverallCode == rls.RateLimitResponse_OVER_LIMIT:
		code = "over_limit"
	default:
		code = "ok"
	}
	m.requests.WithLabelValues(code).Inc()
	m.duration.Observe(took.Seconds())
}

// of returns the counters of a limit.
func (m *Metrics) of(domain, limit string) *series {
	k := seriesKey{domain, limit}
	if s, ok := m.series.Load(k); ok {
		return s.(*series)
	}
	own := len(limit) <= nameMax
	if own && m.count.Add(1) > seriesMax {
		m.count.Add(-1)
		own = false
	}
	if !own {
		k = seriesKey{"other", "other"}
		if s, ok := m.series.Load(k); ok {
			return s.(*series)
		}
	}
	s := &series{
		m.hits.WithLabelValues(k.domain, k.limit), m.over.WithLabelValues(k.domain, k.limit), m.near.WithLabelValues(k.domain, k.limit),
		m.within.WithLabelValues(k.domain, k.limit), m.shadow.WithLabelValues(k.domain, k.limit),
	}
	had, loaded := m.series.LoadOrStore(k, s)
	if loaded && own {
		m.count.Add(-1)
	}
	return had.(*series)
}

// counted counts the decision for a limit.
func (m *Metrics) counted(domain string, a *asked, nearRatio float64) {
	s := m.of(domain, a.Metric)
	hits := float64(a.hits)
	s.hits.Add(hits)
	if a.Unlimited {
		s.within.Add(hits)
		return
	}
	if a.over {
		s.over.Add(hits)
		if a.Shadow {
			s.shadow.Add(hits)
		}
		return
	}
	s.within.Add(hits)
	capacity := float64(a.Capacity())
	used := capacity - float64(a.Remaining)
	if near := used - math.Floor(capacity*nearRatio); near > 0 {
		s.near.Add(min(near, hits))
	}
}
