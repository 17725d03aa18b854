package delayqueue

// LIMIT: deliveries of a queue that take one each from a limiter, which others share.
//
// What CONC holds for a delivery is a named grant for as long as the entry is leased: its name is the entry's, the
// attempt's and the queue's, and its lease the entry's. Both run out together, so neither has to tell the other; what
// ends a lease sooner ends the grant.
//
// Where the limiter refuses, those who wait for the queue are stood for by one more waiter, the queue's front, in the line
// of the limiter, among callers of RL.ACQUIRE and the fronts of other queues. When its turn comes it serves the queue's
// line, and goes to the end of the limiter's: of queues that share a limiter each has its turn.

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strconv"
	"sync"

	"github.com/limitkv/limitkv/commands/budget"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/server/command"
)

// front is a queue's place in the line of its limiter.
type front struct {
	engine.Waiter
	f     *family
	place queuePlace
	limit string
	// turn: it has its turn, and left is how many deliveries that still is. The locks of both keys guard it.
	turn bool
	left int
}

// queuePlace is where a queue is, whether it is there or not.
type queuePlace struct {
	ks  *engine.Keyspace
	db  int
	key string
}

// fronts are those who stand in line.
type fronts struct {
	mu   sync.Mutex
	list map[queuePlace]*front
}

// find is the front of a queue, nil if there is none.
func (f *fronts) find(at queuePlace) *front {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.list[at]
}

// begin notes a front.
func (f *fronts) begin(w *front) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.list == nil {
		f.list = map[queuePlace]*front{}
	}
	f.list[w.place] = w
}

// end forgets a front, or the one that there is if w is nil, and returns it.
func (f *fronts) end(at queuePlace, w *front) *front {
	f.mu.Lock()
	defer f.mu.Unlock()
	is := f.list[at]
	if w != nil && is != w {
		return nil
	}
	delete(f.list, at)
	return is
}

// lineLeft has a queue's front leave the limiter's line: nobody waits for the queue any more, or its limiter is another.
func (f *family) lineLeft(ks *engine.Keyspace, db int, key string) {
	at := queuePlace{ks, db, key}
	if w := f.fronts.find(at); w == nil || w.turn { // it sees to that itself
		return
	}
	if w := f.fronts.end(at, nil); w != nil {
		ks.Sched.Go(func() { w.Leave() }) // the limiter's line is in another shard
	}
}

// alsoLimits locks the limiters of the queues beside them.
func (f *family) alsoLimits(c *command.Ctx, set *engine.LockSet) {
	if !delayqueue.AnyLimited() {
		return
	}
	c.Cmd.EachKey(c.Args, func(i int) {
		f.glance(c.KS, c.DB, c.Args[i], func(q *delayqueue.Queue) {
			if limit := q.Limit(); limit != "" {
				set.AddKey([]byte(limit))
			}
		})
	})
}

// checkLimit is what is wrong with a limiter that a queue is to have.
func checkLimit(c *command.Ctx, limit []byte) (text string) {
	if len(limit) == 0 {
		return ""
	}
	switch e := c.GetLimiter(limit); {
	case e.Ok() && e.Kind() != engine.KindLimiter:
		return errLimitType
	case !e.Ok() || !limiter.Kept(e.Bytes(nil)):
		return errNoLimit
	}
	return ""
}

// popLimited is popQueue where each delivery takes one from a limiter.
func (o *popping) popLimited(c *command.Ctx, key []byte, q *delayqueue.Queue) (popped bool, text string) {
	limit := []byte(q.Limit())
	if at, ok := q.NextDelivery(c.Now); !ok || at > c.Now || !c.Reach(limit) {
		return false, ""
	}
	most := o.count
	w := o.f.fronts.find(queuePlace{c.KS, c.DB, string(key)})
	turn := w != nil && w.turn
	if turn {
		most = min(most, w.left)
	}
	lease := o.leaseOf(q)
	draw, text := budget.Begin(c, limit, lease, turn)
	if text != "" {
		return false, text
	}
	var out []delayqueue.Entry
	for len(out) < most {
		if at, ok := q.NextDelivery(c.Now); !ok || at > c.Now || !draw.Take(o.waits || len(out) > 0) {
			break
		}
		q.Pop(c.Now, lease, 1, func(e delayqueue.Entry) {
			out = append(out, e)
			if draw.Holds() {
				draw.Name(grantName(key, e.ID, e.Attempt))
			}
		})
	}
	if turn {
		w.left -= len(out)
	}
	o.took(c, key, q, lease, out)
	draw.End()
	return len(out) > 0, ""
}

// grantName is the name of what is held for a leased entry. No id has a #, so no two of it are alike.
func grantName(key, id []byte, attempt int64) []byte {
	name := make([]byte, 0, len(id)+len(key)+12)
	name = append(name, id...)
	name = strconv.AppendInt(append(name, '#'), attempt, 10)
	name = append(append(name, '@'), key...)
	if len(name) > limiter.NameBytesMax {
		sum := sha256.Sum256(name)
		return hex.AppendEncode(name[:0], sum[:])
	}
	return name
}

// queueUp sees to it that somebody stands in the line of a queue's limiter, where the queue has something to deliver. It
// returns when to try again if that cannot be done at once, or nobody has to wait.
func (f *family) queueUp(c *command.Ctx, key, limit []byte) (againMicros int64) {
	if !c.Reach(limit) {
		return c.Needs(key, limit)
	}
	at := queuePlace{c.KS, c.DB, string(key)}
	if w := f.fronts.find(at); w != nil && w.limit == string(limit) {
		return 0
	}
	w := &front{f: f, place: at, limit: string(limit)}
	w.KS, w.DB, w.Kind, w.Weight, w.Who = c.KS, c.DB, engine.KindLimiter, 1, w
	w.Keys, w.Also = [][]byte{limit}, [][]byte{[]byte(at.key)}
	f.fronts.begin(w)
	before, _ := c.Waiting(limit, engine.KindLimiter)
	c.Wait(&w.Waiter)
	if before > 0 {
		return 0
	}
	refused, again, ok := budget.Peek(&c.View, limit)
	switch {
	case !refused || !ok:
		c.Alarm(limit, c.Now)
	case again != 0:
		c.Alarm(limit, again)
	}
	return 0
}

// needed tells whether somebody waits for what the queue has, and for want of the limiter.
func (w *front) needed(v *engine.View) bool {
	key := []byte(w.place.key)
	if n, _ := v.Waiting(key, engine.KindDelayQueue); n == 0 {
		return false
	}
	q, ok := v.Peek(key).Object().(*delayqueue.Queue)
	if !ok || q.Limit() != w.limit {
		return false
	}
	at, ok := q.NextDelivery(v.Now)
	return ok && at <= v.Now
}

// Serve serves the queue's line if the limiter would let something pass.
func (w *front) Serve(v *engine.View, limit []byte) (engine.Served, int64) {
	if !w.needed(v) {
		w.f.fronts.end(w.place, w)
		return engine.ServedDone, 0
	}
	refused, again, _ := budget.Peek(v, limit)
	if refused {
		return engine.ServedHold, again
	}
	others, _ := v.Waiting(limit, engine.KindLimiter)
	most := math.MaxInt
	if others > 1 { // each has its turn
		most = 1
	}
	w.turn, w.left = true, most
	v.ServeLine([]byte(w.place.key))
	took := w.left < most
	w.turn = false
	if !w.needed(v) {
		w.f.fronts.end(w.place, w)
		return engine.ServedDone, 0
	}
	if _, again, _ = budget.Peek(v, limit); !took || others <= 1 {
		return engine.ServedHold, again
	}
	w.Move(limit, 1)
	return engine.ServedMove, again
}

// TimedOut is never called: a front waits as long as those whom it stands for.
func (w *front) TimedOut() {}

// over collects what was held for entries of a queue with a limit.
type over struct {
	key, limit []byte
	q          *delayqueue.Queue
	names      [][]byte
}

// overOf is nothing, and costs nothing, where the queue has no limit.
func overOf(key []byte, q *delayqueue.Queue) (o over) {
	if q != nil && q.Limit() != "" {
		o = over{key: key, limit: []byte(q.Limit()), q: q}
	}
	return o
}

// of is the name of what is held for an entry, nil if nothing is.
func (o *over) of(id []byte, now int64) []byte {
	if o.q == nil {
		return nil
	}
	e, ok := o.q.Look(id, now)
	if !ok || e.State != delayqueue.Leased {
		return nil
	}
	return grantName(o.key, e.ID, e.Attempt)
}

// add notes that it is to end.
func (o *over) add(name []byte) {
	if name != nil {
		o.names = append(o.names, name)
	}
}

// settle ends what was held, or has it end in a moment if the limiter's lock cannot be had.
func (f *family) settle(c *command.Ctx, o *over) {
	f.tell(c, o, func(v *engine.View) { budget.Settle(v, o.limit, o.names) })
}

// renew has it held for so long from now on.
func (f *family) renew(c *command.Ctx, o *over, leaseMicros int64) {
	f.tell(c, o, func(v *engine.View) { budget.Touch(v, o.limit, o.names, leaseMicros) })
}

func (f *family) tell(c *command.Ctx, o *over, do func(v *engine.View)) {
	if len(o.names) == 0 {
		return
	}
	if c.Reach(o.limit) {
		do(&c.View)
		return
	}
	ks, db, limit := c.KS, c.DB, o.limit
	ks.Sched.Go(func() { f.apart(ks, db, limit, do) })
}

// apart does something to a key by itself. No lock is held.
func (f *family) apart(ks *engine.Keyspace, db int, key []byte, do func(v *engine.View)) {
	h := ks.TryUpdate(engine.LocksOf(key), func(v *engine.View) {
		v.DB = db
		do(v)
	})
	if h != nil {
		h.OnRelease(func() { f.apart(ks, db, key, do) })
	}
}
