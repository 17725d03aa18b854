package main

// One run of a workload on a server, and its result.

import (
	"fmt"
	"time"
)

// params are the parameters of a run.
type params struct {
	connections, pipeline, threads int
	keys                           int // 0: the workload's number
	valueBytes                     int
	duration, warmup               time.Duration
	rate                           float64 // requests per second, 0: as many as possible
	requests                       uint64  // the run ends after so many, 0: only by time
	auth, scripts                  string
}

// result is what a run measured.
type result struct {
	Server      string  `json:"server"`
	Address     string  `json:"address"`
	Workload    string  `json:"workload"`
	Connections int     `json:"connections"`
	Pipeline    int     `json:"pipeline"`
	Keys        int     `json:"keys"`
	Rate        float64 `json:"rate,omitempty"` // requested requests per second
	Seconds     float64 `json:"seconds"`
	Requests    uint64  `json:"requests"`
	PerSecond   float64 `json:"per_second"`
	Errors      uint64  `json:"errors"`
	FirstError  string  `json:"first_error,omitempty"`
	Refused     float64 `json:"refused"` // share of the replies that mean "no"
	// Unsent requests were due and could not be sent before the end, as the server could not keep up with the rate.
	Unsent uint64 `json:"unsent,omitempty"`
	// Latencies in microseconds, from when a request was due if there is a rate, otherwise from when it was sent.
	Latency latencies `json:"latency_us"`
	// CPU is the server's processor time per request in microseconds, 0 if unknown. ServerCores and GeneratorCores are the
	// numbers of busy cores.
	CPU            float64 `json:"cpu_us"`
	ServerCores    float64 `json:"server_cores"`
	GeneratorCores float64 `json:"generator_cores"`
	Resident       int64   `json:"resident_bytes"`
}

type latencies struct {
	Mean, P50, P90, P99, P999, P9999, Max float64
}

// target is a server under load.
type target struct {
	addr, auth    string
	name, version string
	pid           int
	// seq continues from run to run, as the time in a server's state does.
	seq   uint64
	setup setup
}

func newTarget(addr, auth string) (*target, error) {
	c, err := dial(addr, auth)
	if err != nil {
		return nil, err
	}
	defer c.close()
	t := &target{addr: addr, auth: auth, pid: listener(addr)}
	t.name, t.version = c.identity()
	return t, nil
}

// offers tells whether a server has the commands of a workload.
func (t *target) offers(w *workload) bool { return !w.own || t.name == "limitkv" }

// prepare empties the server and fills it for a workload.
func (t *target) prepare(w *workload, p *params) error {
	c, err := dial(t.addr, t.auth)
	if err != nil {
		return err
	}
	defer c.close()
	if _, err := c.text("FLUSHALL"); err != nil {
		return err
	}
	t.seq = 0
	t.setup = setup{keys: p.keys, value: valueOf(p.valueBytes), scripts: p.scripts}
	if t.setup.keys == 0 {
		t.setup.keys = w.keys
	}
	if w.prepare == nil {
		return nil
	}
	if err := w.prepare(c, &t.setup); err != nil {
		return fmt.Errorf("%s on %s: %w", w.name, t.addr, err)
	}
	return nil
}

// valueOf returns a value of n bytes that is not a number and hard to compress.
func valueOf(n int) string {
	rnd := random(2)
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a' + byte(rnd.below(26))
	}
	return string(b)
}

// run runs a workload on a server that was prepared for it.
func (t *target) run(w *workload, p *params) (*result, error) { return t.runUntil(w, p, nil) }

// runUntil is run with meanwhile, which, if not nil, is called on a goroutine and may end the run.
func (t *target) runUntil(w *workload, p *params, meanwhile func(end func())) (*result, error) {
	if w.drains && t.seq > 0 {
		if err := t.prepare(w, p); err != nil {
			return nil, err
		}
	}
	l := &load{work: w, setup: &t.setup, pipeline: p.pipeline}
	if w.requests != nil {
		l.limit = w.requests(t.setup.keys)
	}
	if p.requests > 0 {
		l.limit = t.seq + p.requests
	}
	if p.rate > 0 {
		l.interval = 1e9 / p.rate
	}
	l.seq.Store(t.seq)
	r := &result{
		Server: t.name + " " + t.version, Address: t.addr, Workload: w.name,
		Connections: p.connections, Pipeline: p.pipeline, Keys: t.setup.keys, Rate: p.rate,
	}
	tallies, err := drive(l, t.addr, t.auth, p.connections, p.threads, func() {
		go t.measure(l, p, r)
		if meanwhile != nil {
			go meanwhile(func() { l.enough.Store(true) })
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%s on %s: %w", w.name, t.addr, err)
	}
	t.seq = l.seq.Load()
	sum := newTally()
	for _, tally := range tallies {
		sum.latency.Merge(tally.latency)
		sum.errors += tally.errors
		sum.refused += tally.refused
		sum.answers += tally.answers
		sum.unsent += tally.unsent
		r.Errors += tally.errorsAll
		if r.FirstError == "" {
			r.FirstError = tally.firstError
		}
	}
	r.Requests -= min(r.Requests, sum.errors)
	r.PerSecond = float64(r.Requests) / r.Seconds
	r.Unsent = sum.unsent
	if sum.answers > 0 {
		r.Refused = float64(sum.refused) / float64(sum.answers)
		micros := func(percent float64) float64 { return float64(sum.latency.ValueAtPercentile(percent)) / 1000 }
		r.Latency = latencies{
			Mean: sum.latency.Mean() / 1000,
			P50:  micros(50), P90: micros(90), P99: micros(99), P999: micros(99.9), P9999: micros(99.99),
			Max: float64(sum.latency.Max()) / 1000,
		}
	}
	if r.Requests > 0 {
		r.CPU /= float64(r.Requests)
	}
	return r, nil
}

// measure controls the phases of a run: warm-up, measurement, end.
func (t *target) measure(l *load, p *params, r *result) {
	if l.limit == 0 {
		time.Sleep(p.warmup)
	}
	l.phase.Store(measuring)
	began, doneBefore := time.Now(), l.done.Load()
	serverBefore, ownBefore := processorNanos(t.pid), ownNanos()
	const step = 2 * time.Millisecond
	for left := p.duration; left > 0 && l.phase.Load() == measuring && !l.enough.Load(); left = p.duration - time.Since(began) {
		if l.limit == 0 {
			time.Sleep(min(left, 100*time.Millisecond))
			continue
		}
		if l.done.Load() >= l.limit-t.seq {
			break
		}
		time.Sleep(min(left, step))
	}
	seconds := time.Since(began).Seconds()
	r.Requests = l.done.Load() - doneBefore
	server, own := processorNanos(t.pid)-serverBefore, ownNanos()-ownBefore
	r.Resident = residentBytes(t.pid)
	r.Seconds = seconds
	r.CPU = float64(server) / 1000
	r.ServerCores = float64(server) / 1e9 / seconds
	r.GeneratorCores = float64(own) / 1e9 / seconds
	l.phase.Store(ended)
}
