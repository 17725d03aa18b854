// The naive queue that the model test compares with: lists, written from the definitions of the commands.
package delayqueue_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/commands/livetest"
)

// job is an entry of the naive queue. Times are in ms.
type job struct {
	id, payload     string
	due, until      int64
	order           int
	attempt, before int
	leased          bool
	options
	behind *version // waits until the lease ends
}

// options are in ms, 0 for none.
type options struct {
	expire, unique, maxwait int64
	first                   int64 // when it was added first
	reason                  string
	group                   string
	prio                    int
}

func (o options) args() (args []any) {
	for _, of := range []struct {
		name string
		ms   int64
	}{{"EXPIRE", o.expire}, {"UNIQUE", o.unique}, {"MAXWAIT", o.maxwait}} {
		if of.ms > 0 {
			args = append(args, of.name, of.ms)
		}
	}
	if o.group != "" {
		args = append(args, "GROUP", o.group)
	}
	if o.prio > 0 {
		args = append(args, "PRIO", o.prio)
	}
	return args
}

// version is a new version of a leased job.
type version struct {
	payload string
	due     int64
	options
}

// letter is a dead letter.
type letter struct {
	payload string
	attempt int
	options
}

// consumer is a waiting consumer.
type consumer struct {
	client   *livetest.Client
	count    int
	lease    int64 // -1: the default
	deadline int64 // 0: none
}

// world is the naive queue, its line and its dead letters.
type world struct {
	now      int64
	jobs     []*job
	line     []*consumer
	letters  map[string]*letter
	known    map[string]int64 // the ids that are remembered, and until when
	maxlen   int
	conc     int
	turns    map[string]int // of the groups, the last one under " "
	paused   bool
	limited  bool // the queue has a limiter, of CONC limit
	limit    int
	grants   map[string]int64 // that are open, and until when
	order    int
	lease    int64
	tries    int
	backoff  int64
	most     int64
	replies  map[*consumer]string // of those that were served
	finished []*consumer          // in order
}

func (w *world) find(id string) *job {
	for _, j := range w.jobs {
		if j.id == id {
			return j
		}
	}
	return nil
}

func (w *world) drop(j *job) { w.jobs = slices.DeleteFunc(w.jobs, func(o *job) bool { return o == j }) }

func (w *world) wait(j *job, due int64) {
	w.order++
	j.leased, j.due, j.order = false, due, w.order
}

// regroup gives new groups a turn, and removes those that are gone.
func (w *world) regroup() {
	here, ranks := map[string]bool{"": true, " ": true}, false
	for _, j := range w.jobs {
		if here[j.group] = true; j.group != "" && w.turns[j.group] == 0 {
			w.turns[" "]++
			w.turns[j.group] = w.turns[" "]
		}
		ranks = ranks || !j.leased && j.prio > 0
	}
	for g := range w.turns {
		if !here[g] || len(here) == 2 && !ranks {
			delete(w.turns, g)
		}
	}
}

// next is the job that is delivered next, nil if there is none.
func (w *world) next() (best *job) {
	out := map[string]int{}
	for _, j := range w.jobs {
		if j.leased {
			out[j.group]++
		}
	}
	for _, j := range w.ready() {
		if w.paused || w.conc > 0 && j.group != "" && out[j.group] >= w.conc {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(w.turns[j.group], w.turns[best.group]), cmp.Compare(best.prio, j.prio)) < 0 {
			best = j
		}
	}
	return best
}

// ready lists what is due, in order.
func (w *world) ready() (list []*job) {
	for _, j := range w.jobs {
		if !j.leased && j.due <= w.now {
			list = append(list, j)
		}
	}
	slices.SortFunc(list, func(a, b *job) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.order, b.order))
	})
	return list
}

// free reports whether the limiter grants something.
func (w *world) free() bool { return !w.limited || len(w.grants) < w.limit }

// needsLease reports whether a consumer's lease is an error.
func (w *world) needsLease(lease int64) bool {
	return w.limited && (lease == 0 || lease < 0 && w.lease == 0)
}

// settle ends a job's grant, if the queue knows its name.
func (w *world) settle(j *job) {
	if w.limited {
		delete(w.grants, j.name())
	}
}

func (j *job) name() string { return j.id + "#" + strconv.Itoa(j.attempt) }

// pop delivers to one consumer and returns the reply.
func (w *world) pop(count int, lease int64) string {
	w.regroup()
	if w.next() != nil && w.needsLease(lease) {
		return "-ERR the queue's limiter has CONC, so entries can be taken with a LEASE only"
	}
	if lease < 0 {
		lease = w.lease
	}
	var out []string
	for len(out) < count && w.free() {
		j := w.next()
		if j == nil {
			break
		}
		w.turns[" "]++
		w.turns[j.group] = w.turns[" "]
		j.attempt++
		name := j.id
		if lease > 0 {
			j.leased, j.until = true, w.now+lease
			name = j.name()
			if w.limited {
				w.grants[name] = j.until
			}
		} else {
			w.done(j)
		}
		w.regroup()
		out = append(out, fmt.Sprintf("[%s %s %d %d]", name, j.payload, j.due, j.attempt))
	}
	if out == nil {
		return "nil"
	}
	return "[" + strings.Join(out, " ") + "]"
}

// serve delivers due jobs to the line.
func (w *world) serve() {
	for _, j := range slices.Clone(w.jobs) {
		if at := j.late(); at != 0 && at <= w.now {
			j.reason = "expired"
			w.bury(j)
		}
	}
	for w.regroup(); len(w.line) > 0 && w.next() != nil; w.regroup() {
		c := w.line[0]
		if !w.free() && !w.needsLease(c.lease) {
			break
		}
		w.line = w.line[1:]
		w.reply(c, w.pop(c.count, c.lease))
	}
}

func (w *world) reply(c *consumer, text string) {
	w.replies[c] = text
	w.finished = append(w.finished, c)
}

func (w *world) fail(j *job, due int64) {
	switch {
	case w.dies(j):
		w.bury(j)
	case !w.succeed(j):
		w.wait(j, due)
	}
}

// succeed replaces a job by its new version.
func (w *world) succeed(j *job) bool {
	n := j.behind
	if n == nil {
		return false
	}
	j.behind, j.payload, j.options, j.before = nil, n.payload, n.options, j.attempt
	w.wait(j, n.due)
	w.regroup()
	return true
}

// lapse ends a lease.
func (w *world) lapse(j *job, at int64) {
	reason := j.reason
	j.reason = "lease ended"
	w.fail(j, at)
	if j.reason == "lease ended" { // the job continues
		j.reason = reason
	}
}

func (w *world) bury(j *job) {
	attempt := j.attempt
	if old := w.letters[j.id]; old != nil {
		attempt = max(attempt, old.attempt)
	}
	w.letters[j.id] = &letter{j.payload, attempt, options{unique: j.unique, reason: j.reason, group: j.group, prio: j.prio}}
	w.drop(j)
	w.regroup()
}

// dies reports whether a leased job fails for good when its lease ends.
func (w *world) dies(j *job) bool { return w.tries > 0 && j.attempt-j.before >= w.tries }

// done ends a job whose work is done.
func (w *world) done(j *job) {
	if w.succeed(j) {
		return
	}
	w.drop(j)
	if j.unique > 0 {
		w.known[j.id] = w.now + j.unique
	}
}

// late is when a job expires if nobody takes it.
func (j *job) late() int64 {
	if j.leased || j.expire == 0 {
		return 0
	}
	return j.due + j.expire
}

// advance moves the clock from one event to the next.
func (w *world) advance(ms int64) {
	for end := w.now + ms; ; {
		next := end
		for _, j := range w.jobs {
			if j.leased && j.until > w.now {
				next = min(next, j.until)
			} else if !j.leased && j.due > w.now {
				next = min(next, j.due)
			}
			if at := j.late(); at > w.now {
				next = min(next, at)
			}
		}
		for _, until := range w.known {
			if until > w.now {
				next = min(next, until)
			}
		}
		for _, until := range w.grants {
			next = min(next, until)
		}
		for _, c := range w.line {
			if c.deadline > w.now {
				next = min(next, c.deadline)
			}
		}
		w.now = next
		var ended []*job
		for _, j := range w.jobs {
			if j.leased && j.until <= w.now {
				ended = append(ended, j)
			}
		}
		slices.SortFunc(ended, func(a, b *job) int { return cmp.Compare(a.order, b.order) })
		for _, j := range ended {
			w.lapse(j, j.until)
		}
		for _, times := range []map[string]int64{w.known, w.grants} {
			for id, until := range times {
				if until <= w.now {
					delete(times, id)
				}
			}
		}
		w.serve()
		for _, c := range slices.Clone(w.line) {
			if c.deadline != 0 && c.deadline <= w.now {
				w.line = slices.DeleteFunc(w.line, func(o *consumer) bool { return o == c })
				w.reply(c, "nil")
				w.serve() // the first one now may ask for something wrong
			}
		}
		if w.now >= end {
			return
		}
	}
}

// held is the job that is leased under a name, with or without the attempt.
func (w *world) held(name string) *job {
	id, attempt, fenced := strings.Cut(name, "#")
	j := w.find(id)
	if j == nil || !j.leased || fenced && attempt != strconv.Itoa(j.attempt) {
		return nil
	}
	return j
}
