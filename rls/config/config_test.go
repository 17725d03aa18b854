// Tests of finding limits in a configuration, and of errors in a configuration.
package config

import (
	"fmt"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
)

func parse(t *testing.T, yaml string) *Config {
	t.Helper()
	c, err := Parse([]Text{{"t.yaml", []byte(yaml)}}, false)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The examples in the documentation of envoyproxy/ratelimit, in our own words: the limit of each request.
func TestFind(t *testing.T) {
	c := parse(t, `
domain: d
descriptors:
  - key: database
    value: users
    rate_limit: {unit: second, requests_per_unit: 500}
  - key: message_type
    value: marketing
    descriptors:
      - key: to_number
        rate_limit: {unit: day, requests_per_unit: 5}
  - key: to_number
    rate_limit: {unit: day, requests_per_unit: 100}
  - key: remote_address
    rate_limit: {unit: second, requests_per_unit: 10}
  - key: remote_address
    value: 50.0.0.5
    rate_limit: {unit: second, requests_per_unit: 0}
  - key: ldap
    rate_limit: {unlimited: true}
  - key: number
    value: 404
    rate_limit: {unit: second, requests_per_unit: 4}
  - key: path
    value: /api/*
    rate_limit: {unit: minute, requests_per_unit: 20}
  - key: path
    value: /api/*/admin
    rate_limit: {unit: minute, requests_per_unit: 1}
  - key: path
    value: /x/*/y/*/z
    rate_limit: {unit: minute, requests_per_unit: 2}
  - key: path
    value: /api/me
    rate_limit: {unit: minute, requests_per_unit: 3}
  - key: detail
    detailed_metric: true
    rate_limit: {unit: minute, requests_per_unit: 10}
  - key: route
    value_to_metric: true
    descriptors:
      - key: method
        value: read*
        value_to_metric: true
        descriptors:
          - {key: id, rate_limit: {unit: minute, requests_per_unit: 60}}
      - key: method
        value: write*
        descriptors:
          - {key: id, rate_limit: {unit: minute, requests_per_unit: 6}}
  - key: files
    value: files/*
    share_threshold: true
    value_to_metric: true
    rate_limit: {unit: hour, requests_per_unit: 7}
  - key: deep
    value: a*
    share_threshold: true
    descriptors:
      - {key: id, detailed_metric: true, rate_limit: {unit: hour, requests_per_unit: 8}}
`)
	for _, x := range []struct{ entries, want string }{
		{"database=users", "500/SECOND database_users"},
		{"database=other", "none"},
		{"Database=users", "none"},
		{"message_type=marketing", "none"},
		{"message_type=marketing to_number=1", "5/DAY message_type_marketing.to_number"},
		{"message_type=other to_number=1", "none"},
		{"to_number=1", "100/DAY to_number"},
		{"to_number=", "100/DAY to_number"},
		{"to_number=1 more=2", "none"},
		{"remote_address=50.0.0.1", "10/SECOND remote_address"},
		{"remote_address=50.0.0.5", "0/SECOND remote_address_50.0.0.5"},
		{"ldap=x", "unlimited ldap"},
		{"number=404", "4/SECOND number_404"},
		{"path=/api/v1", "20/MINUTE path_/api/*"},
		{"path=/api/", "20/MINUTE path_/api/*"},
		{"path=/api", "none"},
		{"path=/api/v1/admin", "20/MINUTE path_/api/*"}, // the first one that matches
		{"path=/api/me", "3/MINUTE path_/api/me"},       // but an exact value has precedence
		{"path=/x/1/y/2/z", "2/MINUTE path_/x/*/y/*/z"},
		{"path=/x//y//z", "2/MINUTE path_/x/*/y/*/z"},
		{"path=/x/y/z", "none"},
		{"path=/x/1/y/z", "none"},
		{"detail=some", "10/MINUTE detail_some"},
		{"route=api method=readfile id=1", "60/MINUTE route_api.method_readfile.id"},
		{"route=api method=writefile id=1", "6/MINUTE route_api.method_write*.id"},
		{"files=files/a", "7/HOUR files_files/* shares files/*"},
		{"files=file", "none"},
		{"deep=abc id=9", "8/HOUR deep_a*.id_9 shares a*,"},
		{"", "none"},
	} {
		d := &ratelimit.RateLimitDescriptor{}
		for _, e := range strings.Fields(x.entries) {
			k, v, _ := strings.Cut(e, "=")
			d.Entries = append(d.Entries, &ratelimit.RateLimitDescriptor_Entry{Key: k, Value: v})
		}
		f := c.Find("d", d)
		got := "none"
		switch {
		case f.Limit == nil:
		case f.Unlimited:
			got = "unlimited " + f.Metric
		default:
			got = fmt.Sprintf("%d/%v %s", f.Count, f.Unit, f.Metric)
		}
		if f.Shared != nil {
			got += " shares " + strings.Join(f.Shared, ",")
		}
		if got != x.want {
			t.Errorf("%s: %s, want %s", x.entries, got, x.want)
		}
		if f := c.Find("other", d); f.Limit != nil {
			t.Errorf("%s has a limit in another domain", x.entries)
		}
	}
	if c.Limits != 16 || c.Domains() != 1 {
		t.Errorf("%d limits, %d domains", c.Limits, c.Domains())
	}
}

// An invalid file gives an error with its place, and what envoyproxy/ratelimit ignores gives a warning.
func TestBadFiles(t *testing.T) {
	const limit = "domain: d\ndescriptors:\n  - {key: k, value: 'v', rate_limit: {unit: second, requests_per_unit: 1}"
	for _, x := range []struct{ yaml, want string }{
		{"", "t.yaml: the file has no domain"},
		{"# nothing", "t.yaml: the file has no domain"},
		{"domain: ''", "t.yaml: the file has no domain"},
		{"descriptors: []", "t.yaml: the file has no domain"},
		{"- domain: d", "t.yaml: yaml: unmarshal errors:\n  line 1: cannot unmarshal !!seq into config.yamlRoot"},
		{"domain: d\ndescriptor: []", "t.yaml: line 2: unknown key 'descriptor'"},
		{"domain: [", "t.yaml: yaml: line 1: did not find expected node content"},
		{"domain: d\n3: []", "t.yaml: line 2: a key is not of type string"},
		{"domain: d\n[a]: []", "t.yaml: line 2: a key is not of type string"},
		{"domain: d\ndescriptors: [a]", "t.yaml: line 2: the list has something else than a mapping"},
		{"domain: d\ndescriptors: [{value: v}]", "t.yaml: a descriptor under 'd' has no key"},
		{"domain: d\ndescriptors: [{key: a, descriptors: [{}]}]", "t.yaml: a descriptor under 'd.a' has no key"},
		{"domain: d\ndescriptors: [{key: a, value: b}, {key: a, value: b}]", "t.yaml: duplicate descriptor 'd.a_b'"},
		{"domain: d\ndescriptors: [{key: a}, {key: a}]", "t.yaml: duplicate descriptor 'd.a'"},
		{"domain: d\ndescriptors: [{key: a, value: b*}, {key: a, value: b*}]", "t.yaml: duplicate descriptor 'd.a_b*'"},
		{"domain: d\ndescriptors: [{key: a, rate_limit: {requests_per_unit: 1}}]", `t.yaml: 'd.a': invalid rate limit unit "", it can be second, minute, hour, day, week, month or year`},
		{"domain: d\ndescriptors: [{key: a, rate_limit: {unit: unknown}}]", `t.yaml: 'd.a': invalid rate limit unit "unknown", it can be second, minute, hour, day, week, month or year`},
		{"domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, unlimited: true}}]", "t.yaml: 'd.a': should not specify a unit when unlimited"},
		{"domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: -1}}]", "t.yaml: yaml: unmarshal errors:\n  line 2: cannot unmarshal !!int `-1` into uint32"},
		{"domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: 4294967296}}]", "t.yaml: yaml: unmarshal errors:\n  line 2: cannot unmarshal !!int `4294967296` into uint32"},
		{"domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, name: n, replaces: [{name: n}]}}]", "t.yaml: 'd.a': replaces has the name of the limit itself"},
		{"domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, replaces: [{}]}}]", "t.yaml: 'd.a': an entry of replaces has no name"},
		{"domain: d\ndescriptors: [{key: a, value: b, share_threshold: true}]", "t.yaml: 'd.a_b': share_threshold is for values with a wildcard"},
		{"domain: d\ndescriptors: [{key: a, quota_mode: true}]", "t.yaml: line 2: quota_mode is not supported"},
		{"domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, algorithm: leaky}}]", `t.yaml: 'd.a': unknown algorithm "leaky", it can be fixed, gcra, log or window`},
		{"domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, burst: 3}}]", "t.yaml: 'd.a': burst is for the algorithm gcra"},
		{"domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, algorithm: gcra, burst: 0}}]", "t.yaml: 'd.a': burst has to be at least 1"},
		{limit + ", x: 1}", "t.yaml: line 3: unknown key 'x'"},
		{limit + ", name: n}", "warning t.yaml: line 3: 'name' has no effect here"},
		{"domain: d\ndescriptors: [{key: a, shadow_mode: true}]", "warning t.yaml: 'd.a': shadow_mode and detailed_metric have no effect without a rate_limit"},
		{limit + "}", ""},
		{"domain: d\ndescriptors: [{key: a, rate_limit: &l {unit: day, requests_per_unit: 2}}, {key: b, rate_limit: *l}, {key: c, rate_limit: {<<: *l, unit: hour}}]", ""},
		{"domain: d\ndescriptors: &a [{key: x, descriptors: *a}]", "t.yaml: yaml: anchor 'a' value contains itself"},
	} {
		c, err := Parse([]Text{{"t.yaml", []byte(x.yaml)}}, false)
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case len(c.Warnings) > 0:
			got = "warning " + strings.Join(c.Warnings, ", ")
		}
		if got != x.want {
			t.Errorf("%s\n got %s\nwant %s", x.yaml, got, x.want)
		}
	}
}

func TestMerge(t *testing.T) {
	files := []Text{{"a", []byte("domain: d\ndescriptors: [{key: a}]")}, {"b", []byte("domain: d\ndescriptors: [{key: b}]")}}
	if _, err := Parse(files, false); err == nil || err.Error() != "b: duplicate domain 'd'" {
		t.Error(err)
	}
	if c, err := Parse(files, true); err != nil || c.Domains() != 1 || c.Files != 2 {
		t.Error(c, err)
	}
	files[1].Data = files[0].Data
	if _, err := Parse(files, true); err == nil || err.Error() != "b: duplicate descriptor 'd.a'" {
		t.Error(err)
	}
}

// Parsing any file ends, and its result can be searched.
func FuzzParse(f *testing.F) {
	f.Add([]byte("domain: d\ndescriptors:\n  - {key: a, value: b*, rate_limit: {unit: day, requests_per_unit: 2}, descriptors: [{key: c}]}"))
	f.Add([]byte("domain: d\ndescriptors: [{key: a, rate_limit: &l {unit: day}}, {key: b, rate_limit: *l}, {key: c, rate_limit: {<<: *l}}]"))
	f.Add([]byte("domain: d\ndescriptors: &a [{key: x, descriptors: *a}]"))
	f.Add([]byte("a: &a [{}]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse([]Text{{"f", data}}, false)
		if err != nil {
			if c != nil {
				t.Error("a configuration and an error")
			}
			return
		}
		for name, at := range c.domains {
			search(t, c, name, &ratelimit.RateLimitDescriptor{}, at, 0)
		}
	})
}

// search finds each node at its place, unless an earlier one matches too.
func search(t *testing.T, c *Config, domain string, d *ratelimit.RateLimitDescriptor, at *node, depth int) {
	if depth > 4 {
		return
	}
	try := func(key, value string, to *node, sure bool) {
		below := &ratelimit.RateLimitDescriptor{Entries: append(d.Entries[:depth:depth], &ratelimit.RateLimitDescriptor_Entry{Key: key, Value: value})}
		if found := c.Find(domain, below); sure && found.Limit != to.limit {
			t.Errorf("%v leads elsewhere", below)
		}
		if sure {
			search(t, c, domain, below, to, depth+1)
		}
	}
	for p, to := range at.exact {
		try(p.key, p.value, to, true)
	}
	for i, w := range at.wild {
		try(w.key, w.value, w.to, i == 0 || !at.wild[0].matches(w.value))
	}
	for key, to := range at.any {
		next, _ := at.next(key, "")
		try(key, "", to, next == to)
	}
}
