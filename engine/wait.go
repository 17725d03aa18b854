package engine

// Waiting for a key. Those who wait for a key stand in line, first come first
// served whatever connection they came by, and are served under the key's lock by the
// write, or the timer, that makes it ready. A waiter costs no CPU.

import (
	"sync"
)

// Served is what serving a waiter came to.
type Served uint8

const (
	// ServedDone: the waiter has what it waited for and leaves the line.
	ServedDone Served = iota
	// ServedHold: nothing for it, nor for those behind it.
	ServedHold
	// ServedSkip: nothing for it, but perhaps for those behind it.
	ServedSkip
	// ServedMove: nothing for it here; it has gone to the line of another key (Move).
	ServedMove
	// ServedSame: as ServedDone, and so are the other places of the same Name.
	ServedSame
)

// Ends tells whether the waiter leaves the line.
func (x Served) Ends() bool { return x == ServedDone || x == ServedSame }

// Waiter is somebody who waits for one of some keys: its places in their lines, and
// its timer.
type Waiter struct {
	KS *Keyspace
	DB int
	// Keys are waited for; the waiter stands in the line of each. They belong
	// to the waiter.
	Keys [][]byte
	// Also are keys that serving needs locked besides (where BLMOVE pushes).
	Also [][]byte
	// Kind is what is waited for, Weight how much of it (a limiter's cost), Weights so of each of several keys: for
	// those who ask about the line.
	Kind    Kind
	Weight  int64
	Weights []int64
	// Name is who asks, where one may stand in a line twice, as on a second connection after the first one hung: when
	// one of its places is served (ServedSame), the others are, too. Empty: nobody else is the same.
	Name string
	// Order is how it chooses where several of its keys have something.
	Order Order
	// NoKey: it is to be tried when the key goes, or becomes something else, too,
	// even if somebody before it holds the line.
	NoKey bool
	// Deadline ends the wait, in Unix microseconds; 0 = never.
	Deadline int64
	// Who waits.
	Who Asker

	next       []byte // see Move
	nextWeight int64

	mu     sync.Mutex
	gone   bool
	timer  Timer
	places []place
	place  [1]place // is what most have for places
}

// Order is how a waiter for several keys chooses among those that have something when it is served: one transaction may
// have made them ready in any order.
type Order uint8

const (
	// OrderReady: the first that became ready is served.
	OrderReady Order = iota
	// OrderKeys: serving looks at all keys in the waiter's order, whoever else is in their lines, as Redis does. They are
	// held as far as their locks can be had at once.
	OrderKeys
	// OrderLines: the lines of the keys that come before in the waiter's order are served first, each from its beginning.
	OrderLines
)

// Asker is who has a Waiter.
type Asker interface {
	// Serve tries to give it what it wants of a key, under the key's lock.
	// againMicros, if not 0, is when it is worth another try.
	Serve(v *View, key []byte) (result Served, againMicros int64)
	// TimedOut is called when the deadline has come, from the scheduler's goroutine
	// and with no lock held. The waiter has left.
	TimedOut()
}

// place is a waiter's place in one line.
type place struct {
	w          *Waiter
	list       *waitList
	next, prev *place
	weight     int64
}

type waitList struct {
	head, tail *place
	n          int
	noKey      int              // of them
	kinds      [kindCount]int32 // of them, by what they wait for
	names      map[string]int   // of those who say who they are, nil until there are any
	weight     int64
	alarm      *Timer
	alarmAt    int64
	walk       *lineWalk // who goes through it now
	also       LockSet   // what was busy, and is needed to serve it
	shard      *waiterCounts
}

// lineWalk is a going through a line. Who is served may take others out of it, and have it gone through again before it is over.
type lineWalk struct {
	next  *place
	again int64     // when the line is worth another walk, 0 if nothing tells
	outer *lineWalk // which this one is a part of
}

// begin begins to go through a line, and returns the first place. At the end, walk is x.outer again.
func (l *waitList) begin(x *lineWalk) *place {
	x.outer, x.next = l.walk, l.head
	l.walk = x
	return x.step()
}

// step goes on to the place that comes next by now.
func (x *lineWalk) step() *place {
	n := x.next
	if n != nil {
		x.next = n.next
	}
	return n
}

// note notes when to go through the line again, if not 0.
func (x *lineWalk) note(at int64) {
	if at != 0 && (x.again == 0 || at < x.again) {
		x.again = at
	}
}

// waiterCounts is what a shard counts of those who wait for its keys.
type waiterCounts struct {
	kinds [kindCount]int // waiters, by what they wait for, each at its first key
	noKey int            // keys that somebody waits for who is told when they go
}

// count notes that a node joins its line, by 1, or leaves it, by -1.
func (l *waitList) count(n *place, by int) {
	l.n += by
	l.weight += int64(by) * n.weight
	if n == &n.w.places[0] {
		l.shard.kinds[n.w.Kind] += by
	}
	l.kinds[n.w.Kind] += int32(by)
	if n.w.Name != "" {
		l.countName(n.w.Name, by)
	}
	if n.w.NoKey {
		if had := l.noKey; had == 0 || had+by == 0 {
			l.shard.noKey += by
		}
		l.noKey += by
	}
}

func (l *waitList) countName(name string, by int) {
	if l.names == nil {
		l.names = make(map[string]int)
	}
	if l.names[name] += by; l.names[name] == 0 {
		delete(l.names, name)
	}
}

func (l *waitList) push(n *place) {
	n.list, n.prev, n.next = l, l.tail, nil
	if l.tail != nil {
		l.tail.next = n
	} else {
		l.head = n
	}
	l.tail = n
	l.count(n, 1)
}

func (l *waitList) remove(n *place) {
	if n.list != l {
		return
	}
	for x := l.walk; x != nil; x = x.outer {
		if x.next == n {
			x.next = n.next
		}
	}
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		l.head = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		l.tail = n.prev
	}
	n.list, n.next, n.prev = nil, nil, nil
	l.count(n, -1)
}

// Wait puts a waiter at the end of the lines of its keys, whose shards are held.
func (v *View) Wait(w *Waiter) {
	v.doubt = true
	if w.places = w.place[:]; len(w.Keys) != 1 {
		w.places = make([]place, len(w.Keys))
	}
	for i, key := range w.Keys {
		_, s := v.locate(key)
		l, _ := s.line(w.DB, key)
		w.places[i].w, w.places[i].weight = w, w.Weight
		if w.Weights != nil {
			w.places[i].weight = w.Weights[i]
		}
		l.push(&w.places[i])
	}
	// No shard's lock keeps a waiter without keys from leaving meanwhile.
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Deadline != 0 && !w.gone {
		w.timer = Timer{at: w.Deadline, fn: w.timedOut}
		w.KS.Sched.start(&w.timer)
	}
}

// line is the line of a key, which is begun if nobody waits yet.
func (s *shard) line(db int, key []byte) (*waitList, waitKey) {
	if s.waits == nil {
		s.waits = make(map[waitKey]*waitList)
	}
	k := waitKey{db, string(key)}
	l := s.waits[k]
	if l == nil {
		l = &waitList{shard: &s.waiters}
		s.waits[k] = l
	}
	return l, k
}

func (w *Waiter) timedOut(int64) {
	if w.Leave() {
		w.Who.TimedOut()
	}
}

// Alarm has the line of a key served at a time, unless it is served before.
func (v *View) Alarm(key []byte, atMicros int64) {
	_, s := v.locate(key)
	k := waitKey{v.DB, string(key)}
	if l := s.waits[k]; l != nil && (l.alarm == nil || atMicros < l.alarmAt) {
		v.KS.setAlarm(s, k, l, atMicros)
	}
}

func (ks *Keyspace) setAlarm(s *shard, k waitKey, l *waitList, atMicros int64) {
	if l.alarm != nil {
		if l.alarmAt == atMicros {
			return
		}
		ks.Sched.Cancel(l.alarm)
		l.alarm = nil
	}
	if atMicros == 0 {
		return
	}
	l.alarmAt = atMicros
	l.alarm = ks.Sched.At(atMicros, func(int64) { ks.ring(k, LockSet{}) })
}

// ring serves a line whose alarm went off, under its own lock and those of a set.
func (ks *Keyspace) ring(k waitKey, set LockSet) {
	key := []byte(k.key)
	set.AddKey(key)
	var also LockSet
	h := ks.TryUpdate(set, func(v *View) {
		_, s := v.locate(key)
		switch l := s.waits[k]; {
		case l == nil:
		case !l.also.Within(set):
			also = l.also
		default:
			l.alarm, l.also = nil, LockSet{}
			v.DB, v.ready = k.db, append(v.ready, k)
		}
	})
	switch {
	case h != nil:
		h.OnRelease(func() { ks.ring(k, set) })
	case also != LockSet{}:
		ks.ring(k, also)
	}
}

// Waiting is how many stand in line for a value of a kind under a key, whose shard is held, and the sum of the weights,
// which only those have who wait for limiters.
func (v *View) Waiting(key []byte, kind Kind) (n int, weight int64) {
	_, s := v.locate(key)
	if len(s.waits) == 0 {
		return 0, 0
	}
	return s.waiting(waitKey{v.DB, string(key)}, kind)
}

// WaitingForLock is Waiting for locks.
func (v *View) WaitingForLock(key []byte) int {
	n, _ := v.Waiting(key, KindLock)
	return n
}

func (s *shard) waiting(k waitKey, kind Kind) (n int, weight int64) {
	if l := s.waits[k]; l != nil {
		return int(l.kinds[kind]), l.weight
	}
	return 0, 0
}

// First tells whether a waiter stands in the line of a key, whose shard is held, before all others who wait for the same kind of value.
func (v *View) First(key []byte, w *Waiter) bool {
	_, s := v.locate(key)
	if l := s.waits[waitKey{v.DB, string(key)}]; l != nil {
		for n := l.head; n != nil; n = n.next {
			if n.w.Kind == w.Kind {
				return n.w == w
			}
		}
	}
	return false
}

// Line calls fn with those who stand in line for a key, whose shard is held, until it returns false.
func (v *View) Line(key []byte, fn func(who Asker) bool) {
	_, s := v.locate(key)
	l := s.waits[waitKey{v.DB, string(key)}]
	if l == nil {
		return
	}
	for n := l.head; n != nil && fn(n.w.Who); n = n.next {
	}
}

// Leave takes a waiter out of all its lines. It reports whether it was still
// waiting: if not, it has been served or has left before. No lock is held by
// the caller.
func (w *Waiter) Leave() bool {
	was := w.Depart()
	if was {
		w.Unlist()
	}
	return was
}

// Depart is the first part of Leave, for callers who hold locks: the waiter is
// not served any more. If it reports true, Unlist has to follow.
func (w *Waiter) Depart() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return false
	}
	w.end()
	return true
}

// Gone tells whether it waits no more.
func (w *Waiter) Gone() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone
}

// end has the waiter wait no more. Its lock is held.
func (w *Waiter) end() {
	w.gone = true
	if w.Deadline != 0 {
		w.KS.Sched.Cancel(&w.timer)
	}
}

// Unlist removes a departed waiter from its lines, one shard after the other. No
// lock is held by the caller.
func (w *Waiter) Unlist() {
	ks := w.KS
	for i, key := range w.Keys {
		_, sh := locate(key)
		ks.unreserved(&ks.shards[sh], func(s *shard) {
			if k := (waitKey{w.DB, string(key)}); ks.unlist(s, k, &w.places[i]) {
				ks.setAlarm(s, k, s.waits[k], ks.Clock.Now())
			}
		})
	}
}

// unreserved calls fn under the shard's lock, once nobody has it reserved: who has
// does not take the lock to look at those who wait.
func (ks *Keyspace) unreserved(s *shard, fn func(s *shard)) {
	ks.enter(s)
	if h := s.holder; h != nil {
		s.mu.Unlock()
		h.OnRelease(func() { ks.unreserved(s, fn) })
		return
	}
	fn(s)
	s.mu.Unlock()
}

// unlist takes a place out of its line. It reports whether those behind it are to be tried: who is first now may want less than who
// left (a limiter's cost), or be first in all its lines.
func (ks *Keyspace) unlist(s *shard, k waitKey, n *place) (tried bool) {
	l := n.list
	if l == nil {
		return false
	}
	// Who is first, of those who wait for the same, is not known without a walk.
	first := l.head == n || int(l.kinds[n.w.Kind]) != l.n
	l.remove(n)
	if l.n == 0 && l.walk == nil { // else who goes through it ends it
		ks.setAlarm(s, k, l, 0)
		ks.endLine(s, k)
	}
	return first && l.n > 0
}

// other tells whether anybody in the line waits for something else than kinds that are held up.
func (l *waitList) other(held *[kindCount]bool) bool {
	for kind, n := range l.kinds {
		if n > 0 && !held[kind] {
			return true
		}
	}
	return false
}

// endLine forgets a line in which nobody is left.
func (ks *Keyspace) endLine(s *shard, k waitKey) {
	delete(s.waits, k)
	if ks.LineLeft != nil {
		ks.LineLeft(ks, k.db, k.key)
	}
}
