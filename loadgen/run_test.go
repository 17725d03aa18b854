package main

// Every workload runs on a limitkv in this process: without an error, with replies of both kinds if it has two, and to its end
// if it has one.

import (
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands"
	"github.com/limitkv/limitkv/server"
	settings "github.com/limitkv/limitkv/server/params"
)

func startServer(t *testing.T) *target {
	t.Helper()
	s, err := commands.New(server.Options{
		Loops:    1,
		Settings: []settings.Setting{{Name: "save"}, {Name: "port", Value: "0"}, {Name: "bind", Value: "127.0.0.1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	target, err := newTarget(addrs[0], "")
	if err != nil {
		t.Fatal(err)
	}
	if target.name != "limitkv" {
		t.Fatalf("the server says that it is %s %s", target.name, target.version)
	}
	return target
}

func TestWorkloads(t *testing.T) {
	target := startServer(t)
	for _, w := range workloads() {
		p := params{connections: 8, pipeline: 4, threads: 2, valueBytes: 32, duration: time.Minute}
		p.keys, p.requests = min(w.keys, 100), 8000
		if w.requests != nil {
			p.keys, p.requests = 10_000, 0 // until it is drained
		}
		if err := target.prepare(w, &p); err != nil {
			t.Error(err)
			continue
		}
		r, err := target.run(w, &p)
		if err != nil {
			t.Error(err)
			continue
		}
		if strings.Contains(r.FirstError, "global variable 'struct'") { // the server has yet to get it
			t.Logf("%s: %s", w.name, r.FirstError)
			continue
		}
		if r.Errors != 0 || r.Requests == 0 || r.PerSecond == 0 || r.Latency.P50 == 0 {
			t.Errorf("%s: %d requests, %d errors (%s)", w.name, r.Requests, r.Errors, r.FirstError)
		}
		if r.CPU == 0 {
			t.Logf("%s: processor time is not known here", w.name)
		}
		switch w.name {
		case "rl.refused", "script.refused":
			if r.Refused < 0.5 { // all replies, if those that were granted came before the measurement
				t.Errorf("%s: %.1f %% of the answers mean no", w.name, 100*r.Refused)
			}
		case "rl.cold", "script.cold":
			if r.Refused != 0 {
				t.Errorf("%s: %.1f %% of the answers mean no, of keys that nobody asked for before", w.name, 100*r.Refused)
			}
		case "rl.passing", "script.passing": // by chance
		case "get", "hget", "zrank", "zrangebyscore", "zpopmin": // these always find their keys
			if r.Refused > 0.001 {
				t.Errorf("%s: %.1f %% of the answers are empty", w.name, 100*r.Refused)
			}
		default:
			if w.refused != nil && (r.Refused < 0.001 || r.Refused > 0.999) { // the shares depend on the machine's speed
				t.Errorf("%s: %.1f %% of the answers mean no: one kind is missing", w.name, 100*r.Refused)
			}
		}
		if r.Seconds > 50 {
			t.Errorf("%s did not end", w.name)
		}
	}
}

func TestRate(t *testing.T) {
	target := startServer(t)
	w := basicWorkloads()[0]
	p := params{connections: 4, pipeline: 1, threads: 1, valueBytes: 32, keys: 100, rate: 2000, duration: 300 * time.Millisecond}
	if err := target.prepare(w, &p); err != nil {
		t.Fatal(err)
	}
	r, err := target.run(w, &p)
	if err != nil {
		t.Skip(err)
	}
	if r.Requests < 300 || r.Requests > 900 {
		t.Errorf("%d requests in %.2f s, want about 600", r.Requests, r.Seconds)
	}
}

func TestErrorsAreNoAnswers(t *testing.T) {
	target := startServer(t)
	w := &workload{name: "wrong", maker: func(*setup, uint64) maker {
		p := command("GET")
		return func(b []byte, _ uint64) []byte { return p.append(b) }
	}}
	p := params{connections: 1, pipeline: 1, threads: 1, duration: 20 * time.Millisecond}
	if err := target.prepare(w, &p); err != nil {
		t.Fatal(err)
	}
	r, err := target.run(w, &p)
	if err != nil {
		t.Fatal(err)
	}
	if r.Errors == 0 || r.Requests > r.Errors/10 || !strings.Contains(r.FirstError, "wrong number of arguments") {
		t.Errorf("%d requests and %d errors (%s), want errors alone", r.Requests, r.Errors, r.FirstError)
	}
}
