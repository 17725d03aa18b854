// Tests of metrics, keys and the JSON interface.
package service

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/limitkv/limitkv/rls/config"
)

func TestMetrics(t *testing.T) {
	g := start(t, `
domain: test
descriptors:
  - {key: a, rate_limit: {unit: hour, requests_per_unit: 10}}
  - {key: d, detailed_metric: true, rate_limit: {unit: hour, requests_per_unit: 10}}
  - {key: free, rate_limit: {unlimited: true}}
`).connected()
	for range 5 {
		g.ask(2, desc("a", "x"), desc("free", "x"))
	}
	g.ask(3, desc("a", "x"))
	g.ask(0, desc("d", "ann"))
	for _, want := range []string{
		`limitkv_rls_hits_total{domain="test",limit="a"} 13`,
		`limitkv_rls_within_limit_total{domain="test",limit="a"} 10`,
		`limitkv_rls_near_limit_total{domain="test",limit="a"} 2`,
		`limitkv_rls_over_limit_total{domain="test",limit="a"} 3`,
		`limitkv_rls_hits_total{domain="test",limit="free"} 10`,
		`limitkv_rls_hits_total{domain="test",limit="d_ann"} 1`,
		`limitkv_rls_requests_total{code="ok"} 6`,
		`limitkv_rls_requests_total{code="over_limit"} 1`,
		`limitkv_rls_requests_total{code="error"} 0`,
		`limitkv_rls_request_duration_seconds_count 7`,
		`limitkv_rls_limitkv_errors_total 0`,
	} {
		g.metric(want)
	}
	families, err := g.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 || len(families) < 10 {
		t.Errorf("%d families: %v %v", len(families), problems, err)
	}
}

// Values from clients do not make an unlimited number of series.
func TestSeriesAreBounded(t *testing.T) {
	r := prometheus.NewRegistry()
	m := NewMetrics(r)
	for i := range seriesMax + 500 {
		a := &asked{Found: config.Found{Limit: &config.Limit{Unlimited: true}, Metric: fmt.Sprint("user_", i)}, hits: 1}
		m.counted("test", a, 0.8)
	}
	m.counted("test", &asked{Found: config.Found{Limit: &config.Limit{Unlimited: true}, Metric: strings.Repeat("x", nameMax+1)}, hits: 7}, 0.8)
	if n := m.count.Load(); n != seriesMax {
		t.Errorf("%d series", n)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	other := 0.0
	for _, f := range families {
		if len(f.Metric) > seriesMax+1 {
			t.Errorf("%s has %d series", f.GetName(), len(f.Metric))
		}
		for _, s := range f.Metric {
			if f.GetName() == "limitkv_rls_hits_total" && s.Label[1].GetValue() == "other" {
				other = s.Counter.GetValue()
			}
		}
	}
	if other != 507 {
		t.Errorf("other: %v", other)
	}
}

// No value leads to the limiter of another descriptor.
func TestKeys(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	seen := map[string]string{}
	for _, x := range [][]string{
		{"a", "b"}, {"a", "b", "c", "d"}, {"a", "b|c=d"}, {"a", "b%7Cc%3Dd"}, {"a|b", ""}, {"a", "", "b", ""}, {"a=b", ""}, {"a", "=b"},
		{"a", "b|hour"}, {"a", "*"}, {"a", "%"}, {"a", "%25"}, {"a", ""}, {"a", "\x00"}, {"a", " "}, {"a", long}, {"a", long + "y"}, {"a", "y" + long},
	} {
		for _, domain := range []string{"test", "test|a=b"} {
			f := config.Found{Limit: &config.Limit{Unit: config.Hour}}
			k := key("p:", domain, desc(x...), f)
			if other, ok := seen[k]; ok {
				t.Errorf("%.80q and %.80q have the key %.80q", x, other, k)
			}
			if seen[k] = domain + strings.Join(x, ","); len(k) > keyMax || !strings.HasPrefix(k, "p:test") {
				t.Errorf("%.80q: %q", x, k)
			}
		}
	}
	if k := key("rls:", "web", desc("user", "guest"), config.Found{Limit: &config.Limit{Unit: config.Minute}}); k != "rls:web|user=guest|minute" {
		t.Error(k)
	}
	shared := config.Found{Limit: &config.Limit{Unit: config.Hour}, Shared: []string{"x*"}}
	if k := key("", "d", desc("a", "xy"), shared); k != "d|a=*x%2A|hour" {
		t.Error(k)
	}
}

func TestJSON(t *testing.T) {
	g := start(t, hourly).connected()
	post := func(method, body string) (int, string) {
		rec := httptest.NewRecorder()
		g.service.JSON(rec, httptest.NewRequest(method, "/json", strings.NewReader(body)))
		return rec.Code, rec.Body.String()
	}
	const one = `{"domain": "test", "descriptors": [{"entries": [{"key": "%s", "value": "x"}]}]}`
	code, body := post("POST", fmt.Sprintf(one, "a"))
	if code != 200 || !strings.Contains(strings.ReplaceAll(body, " ", ""), `"limitRemaining":999`) {
		t.Error(code, body)
	}
	if code, body = post("POST", fmt.Sprintf(one, "banned")); code != 429 || !strings.Contains(body, "OVER_LIMIT") {
		t.Error(code, body)
	}
	for _, x := range []struct {
		method, body string
		code         int
	}{{"GET", "", 405}, {"POST", "{", 400}, {"POST", `{"no": 1}`, 400}, {"POST", "{}", 500}, {"POST", strings.Repeat(" ", jsonMax+1), 400}} {
		if code, body := post(x.method, x.body); code != x.code {
			t.Errorf("%s %.20q: %d %s", x.method, x.body, code, body)
		}
	}
}
