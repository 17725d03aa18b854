package engine

// Waiting for a key. The waiters of a key stand in a line, first come first served, whatever connections they belong
// to. The write or the timer that makes the key ready serves them under the key's lock. A waiter takes no processor
// time.

import (
	"sync"
)

// Served is the result of serving a waiter.
type Served uint8

const (
	// ServedDone: the waiter has what it waited for and leaves the line.
	ServedDone Served = iota
	// ServedHold: there is nothing for it, nor for those behind it.
	ServedHold
	// ServedSkip: there is nothing for it, but perhaps for those behind it.
	ServedSkip
	// ServedMove: there is nothing for it here; it moves to the line of another key (Move).
	ServedMove
	// ServedSame: as ServedDone, and the other places with the same Name are served, too.
	ServedSame
)

// Ends tells whether the waiter leaves the line.
func (x Served) Ends() bool { return x == ServedDone || x == ServedSame }

// Waiter waits for one of several keys. It has a place in the line of each, and a timer.
type Waiter struct {
	KS *Keyspace
	DB int
	// Keys are the keys that it waits for; it stands in the line of each. They belong to the waiter.
	Keys [][]byte
	// Also are further keys whose locks serving needs (where BLMOVE pushes).
	Also [][]byte
	// Kind is the kind of value that it waits for, and Weight how much of it (a limiter's cost); Weights has one for
	// each of several keys. They are shown to those who ask about the line.
	Kind    Kind
	Weight  int64
	Weights []int64
	// Name identifies the owner, who may stand in a line twice, as on a second connection after the first one hung.
	// When one of its places is served (ServedSame), the others are, too. Empty: it stands there once.
	Name string
	// Order is how it chooses when several of its keys have something.
	Order Order
	// NoKey: serving is tried also when the key is removed or gets another kind, even if a waiter before it holds up
	// the line.
	NoKey bool
	// Deadline ends the wait, in Unix microseconds; 0 = never.
	Deadline int64
	// Who owns the waiter.
	Who Asker

	next       []byte // see Move
	nextWeight int64

	mu     sync.Mutex
	gone   bool
	timer  Timer
	places []place
	place  [1]place // the memory of places for most: those with one key
}

// Order is how a waiter for several keys chooses among those that have something when it is served: one transaction
// may have made them ready in any order.
type Order uint8

const (
	// OrderReady: the key that became ready first is served.
	OrderReady Order = iota
	// OrderKeys: serving looks at all keys in the waiter's order, whoever else is in their lines, as Redis does. It
	// holds those keys whose locks are free at that moment.
	OrderKeys
	// OrderLines: the lines of the keys that come earlier in the waiter's order are served first, each from its
	// beginning.
	OrderLines
)

// Asker is the owner of a Waiter.
type Asker interface {
	// Serve tries to give the waiter what it wants of a key, under the key's lock. againMicros, if not 0, is when
	// another try is worth it.
	Serve(v *View, key []byte) (result Served, againMicros int64)
	// TimedOut is called at the deadline, from the scheduler's goroutine and with no lock held. The waiter has left
	// its lines.
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
	kinds      [kindCount]int32 // of them, by the kind that they wait for
	names      map[string]int   // by Waiter.Name; nil until a waiter has one
	weight     int64
	alarm      *Timer
	alarmAt    int64
	walk       *lineWalk // the walk through the line that goes on now
	also       LockSet   // the locks that serving it needs and that were busy
	shard      *waiterCounts
}

// lineWalk is a walk through a line. A waiter that is served may remove others from the line, and may begin a second
// walk before this one ends.
type lineWalk struct {
	next  *place
	again int64     // when another walk is worth it, 0 if never
	outer *lineWalk // the walk during which this one began
}

// begin begins a walk through a line, and returns the first place. At the end the caller sets walk to x.outer again.
func (l *waitList) begin(x *lineWalk) *place {
	x.outer, x.next = l.walk, l.head
	l.walk = x
	return x.step()
}

// step returns the place that comes next by now.
func (x *lineWalk) step() *place {
	n := x.next
	if n != nil {
		x.next = n.next
	}
	return n
}

// note notes when to walk through the line again, if not 0.
func (x *lineWalk) note(at int64) {
	if at != 0 && (x.again == 0 || at < x.again) {
		x.again = at
	}
}

// waiterCounts counts the waiters for a shard's keys.
type waiterCounts struct {
	kinds [kindCount]int // waiters, by the kind that they wait for, each at its first key
	noKey int            // keys with a waiter that is NoKey
}

// count counts a place that joins the line (by is 1) or leaves it (-1).
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

// Wait adds a waiter at the end of the lines of its keys, whose shards are held.
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
	// A waiter without keys may leave meanwhile: no shard's lock prevents it.
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Deadline != 0 && !w.gone {
		w.timer = Timer{at: w.Deadline, fn: w.timedOut}
		w.KS.Sched.start(&w.timer)
	}
}

// line returns the line of a key. It begins one if nobody waits yet.
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

// Alarm schedules the line of a key to be served at a time, unless it is served before.
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

// ring serves a line whose alarm went off, under the lock of its key and those of a set.
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

// Waiting is how many waiters for a kind of value stand in the line of a key, whose shard is held, and the sum of the
// weights in that line. Only waiters for limiters have weights.
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

// First tells whether a waiter is the first of its kind in the line of a key, whose shard is held.
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

// Line calls fn with the owners of the waiters for a key, whose shard is held, in order, until fn returns false.
func (v *View) Line(key []byte, fn func(who Asker) bool) {
	_, s := v.locate(key)
	l := s.waits[waitKey{v.DB, string(key)}]
	if l == nil {
		return
	}
	for n := l.head; n != nil && fn(n.w.Who); n = n.next {
	}
}

// Leave removes a waiter from all its lines. It reports whether it was still waiting: if not, it has been served or
// has left before. The caller holds no lock.
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

// Gone tells whether it has stopped waiting.
func (w *Waiter) Gone() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone
}

// end stops the wait. Its lock is held.
func (w *Waiter) end() {
	w.gone = true
	if w.Deadline != 0 {
		w.KS.Sched.Cancel(&w.timer)
	}
}

// Unlist removes a departed waiter from its lines, one shard after the other. The caller holds no lock.
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

// unreserved calls fn under the shard's lock, once no reservation has the shard: the holder of one looks at the
// waiters without the lock.
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

// unlist removes a place from its line. It reports whether to try those behind it: the new first waiter may want less
// than the one that left (a limiter's cost), or be first in all its lines.
func (ks *Keyspace) unlist(s *shard, k waitKey, n *place) (tried bool) {
	l := n.list
	if l == nil {
		return false
	}
	// Only a walk could tell whether the place was the first of its kind.
	first := l.head == n || int(l.kinds[n.w.Kind]) != l.n
	l.remove(n)
	if l.n == 0 && l.walk == nil { // else the walk ends the line
		ks.setAlarm(s, k, l, 0)
		ks.endLine(s, k)
	}
	return first && l.n > 0
}

// other tells whether a waiter in the line waits for a kind that is not held up.
func (l *waitList) other(held *[kindCount]bool) bool {
	for kind, n := range l.kinds {
		if n > 0 && !held[kind] {
			return true
		}
	}
	return false
}

// endLine deletes a line in which no waiter is left.
func (ks *Keyspace) endLine(s *shard, k waitKey) {
	delete(s.waits, k)
	if ks.LineLeft != nil {
		ks.LineLeft(ks, k.db, k.key)
	}
}
