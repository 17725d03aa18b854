package observe

// Metrics of limiters, locks and queues by the key prefixes in metrics-prefixes, and those metrics of queues for which all
// queues must be read.

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/server/histogram"
	"github.com/limitkv/limitkv/server/params"
	"github.com/limitkv/limitkv/server/prefix"
	"github.com/limitkv/limitkv/web"
)

// prefixesParam is metrics-prefixes.
func (o *Site) prefixesParam() *params.Param {
	set := &o.s.Prefixes
	return &params.Param{
		Name: "metrics-prefixes",
		Help: "beginnings of keys, separated by blanks, whose limiters, locks and queues have metrics of their own; a key counts for the longest one",
		Get: func() string {
			var names []string
			set.Each(func(p *prefix.Prefix) { names = append(names, p.Name) })
			return strings.Join(names, " ")
		},
		Set: func(value string) error {
			names := strings.Fields(value)
			switch {
			case !utf8.ValidString(value):
				return errors.New("argument must be UTF-8 text, as the labels of metrics are")
			case len(names) > prefix.Max:
				return errors.New("there can be at most " + strconv.Itoa(prefix.Max) + " prefixes")
			}
			set.Configure(names)
			return nil
		},
	}
}

// queued is the state of queues.
type queued struct {
	queues, ready, delayed, leased int
	oldest                         int64 // microseconds since the oldest ready entry became due
}

func (q *queued) add(o *queued) {
	q.queues += o.queues
	q.ready += o.ready
	q.delayed += o.delayed
	q.leased += o.leased
	q.oldest = max(q.oldest, o.oldest)
}

// byPrefix is the state of queues by the longest prefix of their keys. nil is the prefix of keys without one.
type byPrefix map[*prefix.Prefix]*queued

func (b byPrefix) of(p *prefix.Prefix) *queued {
	q := b[p]
	if q == nil {
		q = new(queued)
		b[p] = q
	}
	return q
}

// queues reads all queues, a few at a time. For a shard that a script has reserved it returns the last known state.
func (o *Site) queues() (total byPrefix) {
	o.seen.Lock()
	defer o.seen.Unlock()
	total = byPrefix{}
	for i := range o.seen.shards {
		if got, ok := o.queuesOf(i); ok {
			o.seen.shards[i] = got
		}
		for p, q := range o.seen.shards[i] {
			total.of(p).add(q)
		}
	}
	return total
}

// queuesOf reads the queues of a shard, if the shard is not reserved.
func (o *Site) queuesOf(shard int) (got byPrefix, ok bool) {
	ks := o.s.Keyspace
	now := ks.Clock.Now()
	for db := range ks.Databases() {
		for from := math.MaxInt; from > 0; {
			from, ok = ks.Queues(shard, db, from, func(e engine.Entry) {
				q, is := e.Object().(*delayqueue.Queue)
				if !is {
					return
				}
				if got == nil {
					got = byPrefix{}
				}
				t := got.of(o.s.Prefixes.Of(e.Key()))
				t.queues++
				t.ready += q.Count(delayqueue.Ready, now)
				t.delayed += q.Count(delayqueue.Delayed, now)
				t.leased += q.Count(delayqueue.Leased, now)
				if due, has := q.NextHead(); has {
					t.oldest = max(t.oldest, now-due)
				}
			})
			if !ok {
				return nil, false
			}
		}
	}
	return got, true
}

// prefixes writes the metrics of queues that INFO lacks, and all metrics by prefix.
func (o *Site) prefixes(m *web.Metrics) {
	all, set := o.queues(), &o.s.Prefixes
	var total queued
	for _, q := range all {
		total.add(q)
	}
	m.Gauge("limitkv_queue_entries_ready", "Entries of queues that are due and wait for a worker.", float64(total.ready))
	m.Gauge("limitkv_queue_entries_delayed", "Entries of queues that are not due yet.", float64(total.delayed))
	m.Gauge("limitkv_queue_oldest_seconds", "How long the oldest entry of a queue has been ready.", float64(total.oldest)/micros)
	late(m, "limitkv_queue_lateness_seconds", &set.All)
	set.Each(func(p *prefix.Prefix) {
		granted, refused := p.Limiters.Sum()
		m.Counter("limitkv_prefix_limiter_calls_granted_total", "Calls that limiters granted, by prefix of the key.", float64(granted), "prefix", p.Name)
		m.Counter("limitkv_prefix_limiter_calls_refused_total", "Calls that limiters refused, by prefix of the key.", float64(refused), "prefix", p.Name)
		granted, refused = p.Locks.Sum()
		m.Counter("limitkv_prefix_lock_calls_granted_total", "Calls that got their lock, by prefix of the key.", float64(granted), "prefix", p.Name)
		m.Counter("limitkv_prefix_lock_calls_refused_total", "Calls that did not get their lock, by prefix of the key.", float64(refused), "prefix", p.Name)
		q := all.of(p)
		m.Gauge("limitkv_prefix_queues", "Queues, by prefix of the key.", float64(q.queues), "prefix", p.Name)
		m.Gauge("limitkv_prefix_queue_entries_ready", "Entries that are due and wait for a worker, by prefix of the queue's key.", float64(q.ready), "prefix", p.Name)
		m.Gauge("limitkv_prefix_queue_entries_delayed", "Entries that are not due yet, by prefix of the queue's key.", float64(q.delayed), "prefix", p.Name)
		m.Gauge("limitkv_prefix_queue_entries_leased", "Entries that somebody works on, by prefix of the queue's key.", float64(q.leased), "prefix", p.Name)
		m.Gauge("limitkv_prefix_queue_oldest_seconds", "How long the oldest entry has been ready, by prefix of the queue's key.", float64(q.oldest)/micros, "prefix", p.Name)
		late(m, "limitkv_prefix_queue_lateness_seconds", &p.Counts, "prefix", p.Name)
	})
}

func late(m *web.Metrics, name string, c *prefix.Counts, labels ...string) {
	var t histogram.Times
	t.Add(&c.Late.Times)
	times(m, name, "How long after their due times entries of queues were delivered.", &t, float64(c.Late.Total())/micros, labels...)
}
