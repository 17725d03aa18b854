package web

// Metrics in Prometheus's text format. Prometheus's own library would make the binary a quarter larger, since it contains
// another format too.

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Metrics collects metrics. Labels are names and values, one after the other.
type Metrics struct {
	families map[string]*metrics
	order    []*metrics
}

// metrics has all metrics of one name.
type metrics struct {
	name, kind, help string
	lines            []byte
}

// Gauge is a value that rises and falls.
func (m *Metrics) Gauge(name, help string, value float64, labels ...string) {
	m.family(name, "gauge", help).line("", value, labels)
}

// Counter is a value that only rises, except that it restarts with its source.
func (m *Metrics) Counter(name, help string, value float64, labels ...string) {
	m.family(name, "counter", help).line("", value, labels)
}

// Bucket is how often something took at most so many seconds.
type Bucket struct {
	UpTo  float64
	Count int64
}

// Histogram is a distribution of durations: count events, sum seconds in all. Each bucket has the number of events that took at
// most UpTo seconds; buckets are in rising order.
func (m *Metrics) Histogram(name, help string, count int64, sum float64, buckets []Bucket, labels ...string) {
	f := m.family(name, "histogram", help)
	n := len(labels)
	labels = append(slices.Clip(labels), "le", "")
	for _, b := range buckets {
		labels[n+1] = number(b.UpTo)
		f.line("_bucket", float64(b.Count), labels)
	}
	labels[n+1] = "+Inf"
	f.line("_bucket", float64(count), labels)
	f.line("_sum", sum, labels[:n])
	f.line("_count", float64(count), labels[:n])
}

func (m *Metrics) family(name, kind, help string) *metrics {
	f := m.families[name]
	if f == nil {
		f = &metrics{name: name, kind: kind, help: help}
		if m.families == nil {
			m.families = make(map[string]*metrics)
		}
		m.families[name] = f
		m.order = append(m.order, f)
	}
	return f
}

// escaped escapes the value of a label.
var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func (f *metrics) line(suffix string, value float64, labels []string) {
	b := append(append(f.lines, f.name...), suffix...)
	for i := 0; i+1 < len(labels); i += 2 {
		if i == 0 {
			b = append(b, '{')
		} else {
			b = append(b, ',')
		}
		b = append(append(b, labels[i]...), `="`...)
		b = append(append(b, escaped.Replace(labels[i+1])...), '"')
	}
	if len(labels) > 0 {
		b = append(b, '}')
	}
	b = append(append(b, ' '), number(value)...)
	f.lines = append(b, '\n')
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// text returns all metrics as text; metrics of one name are together.
func (m *Metrics) text() []byte {
	var b []byte
	for _, f := range m.order {
		b = append(append(append(append(append(b, "# HELP "...), f.name...), ' '), f.help...), '\n')
		b = append(append(append(append(append(b, "# TYPE "...), f.name...), ' '), f.kind...), '\n')
		b = append(b, f.lines...)
	}
	return b
}

func (s *Site) metrics(w http.ResponseWriter, r *http.Request) {
	c, ok := s.signIn(w, r)
	if !ok {
		return
	}
	defer c.close()
	reply, err := c.do(s.o.Ask)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	if e, refused := reply.(failure); refused {
		http.Error(w, string(e), http.StatusForbidden)
		return
	}
	var m Metrics
	s.o.Metrics(&m)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(m.text()) // an error means that the client is gone
}
