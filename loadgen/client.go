package main

// A connection under load, as a state machine without I/O: it decides what to send and evaluates replies. The driver moves the
// bytes.

import (
	"sync/atomic"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The phases of a run.
const (
	warming int32 = iota
	measuring
	ended
)

// load is a run: the state that all connections share.
type load struct {
	work     *workload
	setup    *setup
	pipeline int
	// limit is the number of requests, 0: no limit.
	limit uint64
	// interval is the time between requests in nanoseconds if they are sent at a fixed rate (an open loop). It is 0 if each
	// connection waits for its replies before it sends more (a closed loop).
	interval float64
	phase    atomic.Int32
	enough   atomic.Bool   // the measurement may end
	seq      atomic.Uint64 // requests made
	done     atomic.Uint64 // requests answered, in all phases
}

// take reserves up to n requests and returns the number of the first.
func (l *load) take(n int) (first uint64, count int) {
	end := l.seq.Add(uint64(n))
	first = end - uint64(n)
	if l.limit == 0 || end <= l.limit {
		return first, n
	}
	if first >= l.limit {
		return 0, 0
	}
	return first, int(l.limit - first)
}

// tally holds the counters of a thread. Except for errorsAll and malformedAll, they count only the measuring phase.
type tally struct {
	latency                 *hdrhistogram.Histogram
	answers, errors         uint64
	refused                 uint64
	firstError              string
	lastLatency, lastCount  int64
	unsent                  uint64 // due before the end, and never sent
	errorsAll, malformedAll uint64
}

// latencyMax is the highest latency that is recorded, in nanoseconds.
const latencyMax = 100_000_000_000

func newTally() *tally {
	return &tally{latency: hdrhistogram.New(1, latencyMax, 3)}
}

// record counts a reply. Replies of one batch have the same latency and are recorded together.
func (t *tally) record(nanos int64) {
	nanos = min(max(nanos, 1), latencyMax)
	if nanos == t.lastLatency {
		t.lastCount++
		return
	}
	t.flush()
	t.lastLatency, t.lastCount = nanos, 1
}

func (t *tally) flush() {
	if t.lastCount > 0 {
		_ = t.latency.RecordValues(t.lastLatency, t.lastCount)
		t.lastCount = 0
	}
}

// client is one connection.
type client struct {
	load  *load
	tally *tally
	next  maker
	// flight is a ring of the due times of requests without a reply.
	flight []int64
	head   int
	count  int
	// waiting is the due times of requests that wait because the maximum is in flight.
	waiting []int64
	in      []byte // an incomplete reply
	judge   func(*reply) (wrong string)
}

func newClient(l *load, t *tally, id uint64) *client {
	c := &client{load: l, tally: t, next: l.work.maker(l.setup, id), flight: make([]int64, l.pipeline)}
	if l.work.judge != nil {
		c.judge = l.work.judge()
	}
	return c
}

// send appends one request with its due time.
func (c *client) send(b []byte, seq uint64, due int64) []byte {
	i := c.head + c.count
	if i >= len(c.flight) {
		i -= len(c.flight)
	}
	c.flight[i] = due
	c.count++
	return c.next(b, seq)
}

// batch appends the next requests of a closed loop.
func (c *client) batch(b []byte, now int64) []byte {
	first, n := c.load.take(c.load.pipeline)
	for i := range n {
		b = c.send(b, first+uint64(i), now)
	}
	return b
}

// due makes a request of an open loop, now or when there is room for it.
func (c *client) due(b []byte, at int64) []byte {
	if c.count == len(c.flight) || len(c.waiting) > 0 {
		c.waiting = append(c.waiting, at)
		return b
	}
	return c.one(b, at)
}

func (c *client) one(b []byte, at int64) []byte {
	if first, n := c.load.take(1); n == 1 {
		b = c.send(b, first, at)
	}
	return b
}

// answers processes data from the server, and appends the next requests. It returns false if the data is not valid.
func (c *client) answers(data, b []byte, now int64) (out []byte, ok bool) {
	if len(c.in) > 0 {
		c.in = append(c.in, data...)
		data = c.in
	}
	var r reply
	answered := uint64(0)
	for len(data) > 0 {
		n := scan(data, &r)
		if n < 0 || n > 0 && c.count == 0 {
			c.tally.malformedAll++
			return b, false
		}
		if n == 0 {
			break
		}
		data = data[n:]
		at := c.flight[c.head]
		if c.head++; c.head == len(c.flight) {
			c.head = 0
		}
		c.count--
		answered++
		wrong := ""
		if c.judge != nil {
			wrong = c.judge(&r)
		}
		if r.kind == '-' {
			wrong = string(r.text)
		}
		if wrong != "" {
			c.failed(wrong)
		} else if c.load.phase.Load() == measuring {
			c.tally.answers++
			c.tally.record(now - at)
			if c.load.work.refused != nil && c.load.work.refused(&r) {
				c.tally.refused++
			}
		}
	}
	c.in = append(c.in[:0], data...)
	if answered > 0 {
		c.load.done.Add(answered)
	}
	if c.load.phase.Load() == ended {
		return b, true
	}
	if c.load.interval == 0 {
		if c.count == 0 {
			b = c.batch(b, now)
		}
		return b, true
	}
	for len(c.waiting) > 0 && c.count < len(c.flight) {
		b = c.one(b, c.waiting[0])
		c.waiting = c.waiting[1:]
	}
	if len(c.waiting) == 0 {
		c.waiting = nil
	}
	return b, true
}

// failed counts an error. An error counts neither for throughput nor for latency.
func (c *client) failed(text string) {
	c.tally.errorsAll++
	if c.load.phase.Load() == measuring {
		c.tally.errors++
	}
	if c.tally.firstError == "" {
		c.tally.firstError = text
	}
}
