package delayqueue

// LIMIT: each delivery of a queue takes one unit from a limiter, which others share.
//
// With CONC, a delivery opens a named grant for as long as the entry is leased. Its name consists of the entry's id, the
// attempt and the queue's key; its lease is the entry's. Both leases end together, so neither has to notify the other.
// Whatever ends the entry's lease sooner ends the grant too.
//
// While the limiter refuses, one waiter, the queue's front, represents all waiters of the queue in the limiter's line, among
// callers of RL.ACQUIRE and the fronts of other queues. When its turn comes it serves the queue's line, and goes to the end
// of the limiter's line. So queues that share a limiter take turns.

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
	// turn is set during the front's turn; left is how many more deliveries the turn allows. The locks of both keys guard
	// them.
	turn bool
	left int
}

// queuePlace identifies a queue, which may not exist.
type queuePlace struct {
	ks  *engine.Keyspace
	db  int
	key string
}

// fronts are the fronts that stand in line.
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

// begin adds a front.
func (f *fronts) begin(w *front) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.list == nil {
		f.list = map[queuePlace]*front{}
	}
	f.list[w.place] = w
}

// end removes w, or any front of the queue if w is nil, and returns it.
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

// lineLeft makes a queue's front leave the limiter's line: nobody waits for the queue any more, or it has another limiter.
func (f *family) lineLeft(ks *engine.Keyspace, db int, key string) {
	at := queuePlace{ks, db, key}
	if w := f.fronts.find(at); w == nil || w.turn { // a front that has its turn leaves by itself
		return
	}
	if w := f.fronts.end(at, nil); w != nil {
		ks.Sched.Go(func() { w.Leave() }) // the limiter's line is in another shard
	}
}

// alsoLimits locks the limiters of the queues together with the queues.
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

// checkLimit returns an error text if a queue cannot have a limiter.
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

// popLimited is popQueue for a queue with a limiter.
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

// grantName is the name of a leased entry's grant. No id contains #, so names are unique.
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

// queueUp makes sure that a front stands in the line of a queue's limiter; the queue has something to deliver. It returns
// when to try again if the limiter's lock is busy, else 0.
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

// needed reports whether callers wait for entries of the queue that are due: only the limiter holds them back.
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

// Serve serves the queue's line if the limiter would grant something.
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
	if others > 1 { // all take turns
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

// TimedOut is never called: a front waits as long as the waiters that it represents.
func (w *front) TimedOut() {}

// over collects the grants of entries of a queue with a limiter.
type over struct {
	key, limit []byte
	q          *delayqueue.Queue
	names      [][]byte
}

// overOf is empty, and costs nothing, if the queue has no limiter.
func overOf(key []byte, q *delayqueue.Queue) (o over) {
	if q != nil && q.Limit() != "" {
		o = over{key: key, limit: []byte(q.Limit()), q: q}
	}
	return o
}

// of is the name of an entry's grant, nil if it has none.
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

// add collects a grant.
func (o *over) add(name []byte) {
	if name != nil {
		o.names = append(o.names, name)
	}
}

// settle ends the collected grants; it does so shortly after if the limiter's lock is busy.
func (f *family) settle(c *command.Ctx, o *over) {
	f.tell(c, o, func(v *engine.View) { budget.Settle(v, o.limit, o.names) })
}

// renew renews the leases of the collected grants.
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

// apart does something to a key in a transaction of its own. The caller holds no lock.
func (f *family) apart(ks *engine.Keyspace, db int, key []byte, do func(v *engine.View)) {
	h := ks.TryUpdate(engine.LocksOf(key), func(v *engine.View) {
		v.DB = db
		do(v)
	})
	if h != nil {
		h.OnRelease(func() { f.apart(ks, db, key, do) })
	}
}
