// Tests of the answers to requests, over gRPC.
package service

import (
	"fmt"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/limitkv/limitkv/rls/config"
)

// show formats an answer in a line: the overall code, and of each status the code, the limit, the remaining hits, and the time
// until all are back.
func show(a *rls.RateLimitResponse) string {
	out := []string{a.OverallCode.String()}
	for _, s := range a.Statuses {
		text := s.Code.String()
		if l := s.CurrentLimit; l != nil {
			text += fmt.Sprintf(" %d/%s", l.RequestsPerUnit, strings.ToLower(l.Unit.String()))
		}
		if l := s.CurrentLimit; l != nil || s.LimitRemaining > 0 {
			text += fmt.Sprintf(" left %d", s.LimitRemaining)
		}
		if s.DurationUntilReset != nil {
			text += fmt.Sprintf(" for %v", s.DurationUntilReset.AsDuration())
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func (g *gate) want(hits uint32, list []*ratelimit.RateLimitDescriptor, want string) {
	g.Helper()
	if got := show(g.ask(hits, list...)); got != want {
		g.Errorf("%v\n got %s\nwant %s", list, got, want)
	}
}

type list = []*ratelimit.RateLimitDescriptor

func TestUnits(t *testing.T) {
	g := start(t, `
domain: test
descriptors:
  - {key: s, rate_limit: {unit: second, requests_per_unit: 2}}
  - {key: m, rate_limit: {unit: MINUTE, requests_per_unit: 2}}
  - {key: h, rate_limit: {unit: hour, requests_per_unit: 2}}
  - {key: d, rate_limit: {unit: day, requests_per_unit: 2}}
  - {key: w, rate_limit: {unit: week, requests_per_unit: 2}}
  - {key: o, rate_limit: {unit: month, requests_per_unit: 2}}
  - {key: y, rate_limit: {unit: year, requests_per_unit: 4294967295}}
`).connected()
	for _, c := range []struct{ key, limit, reset string }{
		{"s", "2/second", "1s"}, {"m", "2/minute", "1m0s"},
		{"h", "2/hour", "46m40s"}, {"d", "2/day", "1h46m40s"}, // until the full hour, until midnight, in UTC
		{"w", "2/week", "121h46m40s"}, {"o", "2/month", "385h46m40s"},
	} {
		d := list{desc(c.key, "x")}
		g.want(0, d, fmt.Sprintf("OK; OK %s left 1 for %s", c.limit, c.reset))
		g.want(1, d, fmt.Sprintf("OK; OK %s left 0 for %s", c.limit, c.reset))
		g.want(1, d, fmt.Sprintf("OVER_LIMIT; OVER_LIMIT %s left 0 for %s", c.limit, c.reset))
		g.want(0, list{desc(c.key, "y")}, fmt.Sprintf("OK; OK %s left 1 for %s", c.limit, c.reset))
	}
	g.want(4294967295, list{desc("y", "x")}, "OK; OK 4294967295/year left 0 for 8760h0m0s")
	g.want(0, list{desc("y", "x")}, "OVER_LIMIT; OVER_LIMIT 4294967295/year left 0 for 8760h0m0s")
	g.kv.Advance(time.Second)
	g.want(0, list{desc("s", "x")}, "OK; OK 2/second left 1 for 1s")
	g.want(0, list{desc("m", "x")}, "OVER_LIMIT; OVER_LIMIT 2/minute left 0 for 59s")
	g.kv.Advance(59 * time.Second)
	g.want(0, list{desc("m", "x")}, "OK; OK 2/minute left 1 for 1m0s")
}

// The limit that refuses is charged, and the others are not.
func TestAllOrNothing(t *testing.T) {
	const yaml = `
domain: test
descriptors:
  - {key: user, rate_limit: {unit: minute, requests_per_unit: 2}}
  - {key: tenant, rate_limit: {unit: minute, requests_per_unit: 100}}
`
	both := list{desc("user", "ann"), desc("tenant", "a")}
	g := start(t, yaml).connected()
	g.want(0, both, "OK; OK 2/minute left 1 for 1m0s; OK 100/minute left 99 for 1m0s")
	g.want(0, both, "OK; OK 2/minute left 0 for 1m0s; OK 100/minute left 98 for 1m0s")
	for range 5 {
		g.want(0, both, "OVER_LIMIT; OVER_LIMIT 2/minute left 0 for 1m0s; OK 100/minute left 98 for 1m0s")
	}
	g.want(0, list{desc("user", "bob"), desc("tenant", "a")}, "OK; OK 2/minute left 1 for 1m0s; OK 100/minute left 97 for 1m0s")

	g = start(t, yaml, func(o *Options) { o.Alone = true }).connected()
	for i := range 5 {
		user := []string{"OK; OK 2/minute left 1", "OK; OK 2/minute left 0", "OVER_LIMIT; OVER_LIMIT 2/minute left 0"}[min(i, 2)]
		g.want(0, both, fmt.Sprintf("%s for 1m0s; OK 100/minute left %d for 1m0s", user, 99-i))
	}
}

// A cost above what is left uses that up, as in envoyproxy/ratelimit, whose counter continues.
func TestHitsAddend(t *testing.T) {
	g := start(t, `
domain: test
descriptors:
  - {key: a, rate_limit: {unit: hour, requests_per_unit: 10}}
  - {key: b, rate_limit: {unit: hour, requests_per_unit: 100}}
  - {key: bucket, rate_limit: {unit: hour, requests_per_unit: 3600, algorithm: gcra, burst: 10}}
`).connected()
	const until = " for 46m40s"
	a := list{desc("a", "x")}
	g.want(7, a, "OK; OK 10/hour left 3"+until)
	g.want(3, list{desc("a", "x"), desc("b", "x")}, "OK; OK 10/hour left 0"+until+"; OK 100/hour left 97"+until)
	a = list{desc("a", "y"), desc("b", "y")}
	g.want(8, a, "OK; OK 10/hour left 2"+until+"; OK 100/hour left 92"+until)
	g.want(3, a, "OVER_LIMIT; OVER_LIMIT 10/hour left 0"+until+"; OK 100/hour left 92"+until)
	g.want(1, a, "OVER_LIMIT; OVER_LIMIT 10/hour left 0"+until+"; OK 100/hour left 92"+until)
	// more than the capacity
	a = list{desc("a", "z"), desc("b", "z")}
	g.want(11, a, "OVER_LIMIT; OVER_LIMIT 10/hour left 0"+until+"; OK 100/hour left 100 for 0s")
	g.want(1, a, "OVER_LIMIT; OVER_LIMIT 10/hour left 0"+until+"; OK 100/hour left 100 for 0s")
	// a descriptor's own cost overrides the request's; 0 only reads
	a = list{costing(desc("a", "w"), 4), desc("b", "w")}
	g.want(2, a, "OK; OK 10/hour left 6"+until+"; OK 100/hour left 98"+until)
	look := list{costing(desc("a", "w"), 0)}
	for range 3 {
		g.want(2, look, "OK; OK 10/hour left 6"+until)
	}
	g.want(2, list{costing(desc("a", "w"), 500)}, "OVER_LIMIT; OVER_LIMIT 10/hour left 0"+until)
	g.want(2, look, "OVER_LIMIT; OVER_LIMIT 10/hour left 0"+until)
	// a client that waits for a bucket finds what was left, unless its cost is in the descriptor
	g.want(8, list{desc("bucket", "x")}, "OK; OK 3600/hour left 2 for 8s")
	g.want(5, list{desc("bucket", "x")}, "OVER_LIMIT; OVER_LIMIT 3600/hour left 2 for 8s")
	g.want(0, list{costing(desc("bucket", "x"), 5)}, "OVER_LIMIT; OVER_LIMIT 3600/hour left 0 for 10s")
	g.want(0, list{desc("bucket", "x")}, "OVER_LIMIT; OVER_LIMIT 3600/hour left 0 for 10s")
}

func TestWhatIsNotCounted(t *testing.T) {
	g := start(t, `
domain: test
descriptors:
  - {key: free, rate_limit: {unlimited: true}}
  - {key: banned, rate_limit: {unit: minute, requests_per_unit: 0}}
  - {key: listed}
  - {key: a, rate_limit: {unit: hour, requests_per_unit: 10}}
`).connected()
	g.want(0, list{desc("free", "x")}, "OK; OK left 4294967295")
	g.want(0, list{desc("listed", "x"), desc("unknown", "x"), {}}, "OK; OK; OK; OK")
	answer := g.ask(0, desc("banned", "x"), desc("a", "x"))
	if s := answer.Statuses[0]; answer.OverallCode != rls.RateLimitResponse_OVER_LIMIT || s.Code != answer.OverallCode ||
		s.DurationUntilReset.AsDuration() <= 0 || s.DurationUntilReset.AsDuration() > time.Minute {
		t.Error(answer)
	}
	g.want(0, list{desc("free", "x"), desc("a", "x"), desc("unknown", "x")}, "OK; OK left 4294967295; OK 10/hour left 9 for 46m40s; OK")
	if keys := g.kv.Do("KEYS", "*"); keys != "*1\r\n$15\r\nrls:test|a=x|hour\r\n" && !strings.Contains(keys, "rls:test|a=x|hour") || strings.Count(keys, "rls:") != 1 {
		t.Errorf("keys: %q", keys)
	}
	answer, err := g.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "other", Descriptors: list{desc("a", "x")}})
	if err != nil || show(answer) != "OK; OK" {
		t.Error(answer, err)
	}
	for _, bad := range []*rls.RateLimitRequest{{Domain: "test"}, {Descriptors: list{desc("a", "x")}}, {}} {
		if answer, err := g.ShouldRateLimit(t.Context(), bad); err == nil {
			t.Errorf("%v: %v", bad, answer)
		}
	}
}

func TestShadowMode(t *testing.T) {
	const yaml = `
domain: test
descriptors:
  - {key: user, value: trial, shadow_mode: true, rate_limit: {unit: hour, requests_per_unit: 1}}
  - {key: user, rate_limit: {unit: hour, requests_per_unit: 1}}
`
	const until = " for 46m40s"
	g := start(t, yaml).connected()
	trial := list{desc("user", "trial")}
	g.want(0, trial, "OK; OK 1/hour left 0"+until)
	g.want(0, trial, "OK; OK 1/hour left 0"+until)
	g.want(9, trial, "OK; OK 1/hour left 0"+until)
	both := list{desc("user", "ann"), desc("user", "trial")}
	g.want(0, both, "OK; OK 1/hour left 0"+until+"; OK 1/hour left 0"+until)
	g.want(0, both, "OVER_LIMIT; OVER_LIMIT 1/hour left 0"+until+"; OK 1/hour left 0"+until)
	g.metric(`limitkv_rls_shadow_mode_total{domain="test",limit="user_trial"} 12`)

	g = start(t, yaml, func(o *Options) { o.Shadow = true }).connected()
	ann := list{desc("user", "ann")}
	g.want(0, ann, "OK; OK 1/hour left 0"+until)
	g.want(0, ann, "OK; OVER_LIMIT 1/hour left 0"+until)
	g.metric(`limitkv_rls_global_shadow_mode_total 1`)
}

func TestReplaces(t *testing.T) {
	g := start(t, `
domain: test
descriptors:
  - {key: reads, rate_limit: {name: reads, unit: hour, requests_per_unit: 5}}
  - {key: path, value: /big, rate_limit: {replaces: [{name: reads}], unit: hour, requests_per_unit: 10}}
`).connected()
	const until = " for 46m40s"
	g.want(0, list{desc("reads", "u"), desc("path", "/big")}, "OK; OK; OK 10/hour left 9"+until)
	g.want(0, list{desc("path", "/big"), desc("reads", "u")}, "OK; OK 10/hour left 8"+until+"; OK")
	g.want(0, list{desc("reads", "u")}, "OK; OK 5/hour left 4"+until)
	if name := g.ask(0, desc("reads", "u")).Statuses[0].CurrentLimit.Name; name != "reads" {
		t.Errorf("name %q", name)
	}
}

// overriding is a descriptor with its own limit.
func overriding(d *ratelimit.RateLimitDescriptor, count uint32, unit int32) *ratelimit.RateLimitDescriptor {
	d.Limit = &ratelimit.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: count, Unit: typev3.RateLimitUnit(unit)}
	return d
}

func TestOverrides(t *testing.T) {
	g := start(t, `
domain: test
descriptors:
  - {key: user, shadow_mode: true, rate_limit: {unit: hour, requests_per_unit: 5}}
`).connected()
	const until = " for 46m40s"
	of := func(count uint32) *ratelimit.RateLimitDescriptor {
		return overriding(desc("user", "x"), count, int32(config.Hour))
	}
	g.want(0, list{of(2)}, "OK; OK 2/hour left 1"+until)
	g.want(0, list{of(2)}, "OK; OK 2/hour left 0"+until)
	g.want(0, list{of(2)}, "OVER_LIMIT; OVER_LIMIT 2/hour left 0"+until)
	g.want(0, list{of(3)}, "OK; OK 3/hour left 0"+until) // a higher limit: what was used stays used
	// two limits of one descriptor in a request are counted separately
	two := list{overriding(desc("user", "y"), 2, int32(config.Hour)), overriding(desc("user", "y"), 1, int32(config.Hour))}
	g.want(0, two, "OK; OK 2/hour left 1"+until+"; OK 1/hour left 0"+until)
	g.want(0, two, "OVER_LIMIT; OK 2/hour left 1"+until+"; OVER_LIMIT 1/hour left 0"+until)
	if answer, err := g.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "test", Descriptors: list{overriding(desc("a", "b"), 1, 0)}}); err == nil {
		t.Errorf("a limit without a unit: %v", answer)
	}
}

// A descriptor that occurs twice in a request costs twice.
func TestTwice(t *testing.T) {
	g := start(t, `
domain: test
descriptors:
  - {key: a, rate_limit: {unit: hour, requests_per_unit: 5}}
  - {key: shared, value: x*, share_threshold: true, rate_limit: {unit: hour, requests_per_unit: 3}}
`).connected()
	const until = " for 46m40s"
	two := list{desc("a", "x"), desc("a", "x")}
	g.want(0, two, "OK; OK 5/hour left 3"+until+"; OK 5/hour left 3"+until)
	g.want(0, two, "OK; OK 5/hour left 1"+until+"; OK 5/hour left 1"+until)
	g.want(0, two, "OVER_LIMIT; OVER_LIMIT 5/hour left 1"+until+"; OVER_LIMIT 5/hour left 1"+until)
	g.want(3, list{desc("a", "y"), desc("a", "y")}, "OVER_LIMIT; OK 5/hour left 5 for 0s; OVER_LIMIT 5/hour left 0"+until)
	g.want(0, list{desc("a", "y")}, "OVER_LIMIT; OVER_LIMIT 5/hour left 0"+until)
	g.want(0, list{desc("shared", "x1"), desc("shared", "x2")}, "OK; OK 3/hour left 1"+until+"; OK 3/hour left 1"+until)
	g.want(0, list{desc("shared", "x3")}, "OK; OK 3/hour left 0"+until)
	g.want(0, list{desc("shared", "x4")}, "OVER_LIMIT; OVER_LIMIT 3/hour left 0"+until)
}

func TestAlgorithms(t *testing.T) {
	g := start(t, `
domain: test
descriptors:
  - {key: bucket, rate_limit: {unit: second, requests_per_unit: 10, algorithm: gcra, burst: 2}}
  - {key: even, rate_limit: {unit: second, requests_per_unit: 2, algorithm: GCRA}}
  - {key: log, rate_limit: {unit: minute, requests_per_unit: 2, algorithm: log}}
  - {key: window, rate_limit: {unit: minute, requests_per_unit: 2, algorithm: window}}
`).connected()
	b, l := list{desc("bucket", "x")}, list{desc("log", "x")}
	g.want(0, b, "OK; OK 10/second left 1 for 100ms")
	g.want(0, b, "OK; OK 10/second left 0 for 200ms")
	g.want(0, b, "OVER_LIMIT; OVER_LIMIT 10/second left 0 for 200ms")
	g.want(0, list{desc("even", "x")}, "OK; OK 2/second left 1 for 500ms")
	g.want(0, list{desc("window", "x")}, "OK; OK 2/minute left 1 for 2m0s") // the window before counts by its weight
	g.want(0, l, "OK; OK 2/minute left 1 for 1m0s")
	g.kv.Advance(100 * time.Millisecond)
	g.want(0, b, "OK; OK 10/second left 0 for 200ms")
	g.kv.Advance(30 * time.Second)
	g.want(0, l, "OK; OK 2/minute left 0 for 1m0s")
	g.want(0, l, "OVER_LIMIT; OVER_LIMIT 2/minute left 0 for 1m0s")
	g.kv.Advance(29900 * time.Millisecond)
	g.want(0, l, "OK; OK 2/minute left 0 for 1m0s")
}

// A changed limit keeps what was used.
func TestLimitChanges(t *testing.T) {
	const yaml = "domain: test\ndescriptors: [{key: a, rate_limit: {unit: hour, requests_per_unit: %d}}]"
	g := start(t, fmt.Sprintf(yaml, 10)).connected()
	a := list{desc("a", "x")}
	g.want(7, a, "OK; OK 10/hour left 3 for 46m40s")
	g.configure(fmt.Sprintf(yaml, 20))
	g.want(1, a, "OK; OK 20/hour left 12 for 46m40s")
	g.configure(fmt.Sprintf(yaml, 5))
	g.want(1, a, "OVER_LIMIT; OVER_LIMIT 5/hour left 0 for 46m40s")
}

func TestManyDescriptors(t *testing.T) {
	g := start(t, "domain: test\ndescriptors: [{key: a, rate_limit: {unit: hour, requests_per_unit: 256}}]").connected()
	var many, one list
	for i := range descriptorsMax {
		many, one = append(many, desc("a", fmt.Sprint(i))), append(one, desc("a", "x"))
	}
	for _, s := range g.ask(0, many...).Statuses {
		if s.LimitRemaining != 255 {
			t.Fatal(s)
		}
	}
	for _, s := range g.ask(0, one...).Statuses {
		if s.LimitRemaining != 0 {
			t.Fatal(s)
		}
	}
	many = append(many, desc("a", "more"))
	if answer, err := g.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "test", Descriptors: many}); err == nil {
		t.Error(answer)
	}
}
