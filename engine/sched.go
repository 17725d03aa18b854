package engine

// The scheduler: one goroutine that sleeps until the next deadline of any kind: a turn of a shard's wheel, a blocked
// client's timeout, the alarm of a line. While the clock is frozen it serves only what is due already; Advance serves
// what falls due, in order of time.

import (
	"container/heap"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitkv/limitkv/engine/alarm"
)

// Timer is a function to be called at a time. It belongs to one Scheduler.
type Timer struct {
	at    int64 // Unix microseconds
	seq   uint64
	place int // in the heap, from 1; 0 when not in it
	fn    func(nowMicros int64)
}

type timerHeap []*Timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].seq < h[j].seq
}
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i+1, j+1
}
func (h *timerHeap) Push(x any) {
	t := x.(*Timer)
	*h = append(*h, t)
	t.place = len(*h)
}
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.place = 0
	return t
}

// Scheduler serves deadlines.
type Scheduler struct {
	clock *Clock
	all   atomic.Pointer[[]*Keyspace]
	mu    sync.Mutex // guards heap
	heap  timerHeap
	seq   uint64
	until atomic.Int64 // until when the goroutine sleeps, microseconds
	alarm *alarm.Alarm // what wakes the goroutine
	stop  chan struct{}
	done  chan struct{}
	// run is held while deadlines are served, so that Advance and the
	// goroutine do not serve at once.
	run sync.Mutex
	// breathed is when breathe last let others run, on the monotonic clock.
	breathed int64
	// followed is when the system's clock was last looked at, on the monotonic clock.
	followed int64
	// Stepped is called after the scheduler has followed a step of the system's clock, with the step in microseconds:
	// less than 0 if the clock went back. No lock is held.
	Stepped func(micros int64)
	// changing is locked while the list all changes.
	changing sync.Mutex
	// Panicked is called on the stack of a panic in what the keyspace does by itself, and ends the process: no client
	// is there to get an error, and locks are held.
	Panicked func(r any)
	// Spawn, if not nil, runs what Go is given, in place of a goroutine: a test that decides when these run controls
	// all that can happen.
	Spawn func(fn func())
}

// Go runs a function that changes keys, on another goroutine than its caller and without the caller's locks. Apart
// from these, only the scheduler's own goroutine and those of commands change keys.
func (s *Scheduler) Go(fn func()) {
	run := func() {
		defer s.caught()
		fn()
	}
	if s.Spawn != nil {
		s.Spawn(run)
		return
	}
	go run()
}

// caught is deferred by the keyspace's goroutines.
func (s *Scheduler) caught() { s.ends(recover()) }

// ends ends the process for a panic, if there is one. Without Panicked, as in tests, the panic goes on.
func (s *Scheduler) ends(r any) {
	if r != nil && s.Panicked != nil {
		s.Panicked(r)
	} else if r != nil {
		panic(r)
	}
}

func newScheduler(ks *Keyspace) *Scheduler {
	s := &Scheduler{clock: ks.Clock, alarm: alarm.New(), stop: make(chan struct{}), done: make(chan struct{})}
	s.until.Store(never)
	s.all.Store(&[]*Keyspace{ks})
	return s
}

// Start begins to serve deadlines.
func (s *Scheduler) Start() { go s.loop() }

// Stop ends the serving of deadlines.
func (s *Scheduler) Stop() {
	close(s.stop)
	s.alarm.Ring()
	<-s.done
	s.alarm.Close()
}

// Wake makes the scheduler look at the deadlines again.
func (s *Scheduler) Wake() { s.alarm.Ring() }

// At calls fn at a time, in Unix microseconds, from the scheduler's goroutine
// and with no lock held.
func (s *Scheduler) At(atMicros int64, fn func(nowMicros int64)) *Timer {
	t := &Timer{at: atMicros, fn: fn}
	s.start(t)
	return t
}

// start is At for a timer that is a field of something.
func (s *Scheduler) start(t *Timer) {
	at := t.at
	s.mu.Lock()
	s.seq++
	t.seq = s.seq
	heap.Push(&s.heap, t)
	s.mu.Unlock() // from here on a step of the clock may move it
	if at < s.until.Load() {
		s.Wake()
	}
}

// Cancel stops a timer. It reports whether the timer had not fired yet.
func (s *Scheduler) Cancel(t *Timer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.place == 0 {
		return false
	}
	heap.Remove(&s.heap, t.place-1)
	return true
}

// shardDue notes that a shard's wheel must be turned at a time.
func (s *Scheduler) shardDue(sh *shard, atMillis int64) {
	atMillis = min(atMillis, never/1000) // it is compared in microseconds
	if atMillis < sh.nextDue.Load() {
		sh.nextDue.Store(atMillis) // under the shard's lock
		if atMillis*1000 < s.until.Load() {
			s.Wake()
		}
	}
}

// next is the earliest deadline in microseconds.
func (s *Scheduler) next() int64 {
	best := never
	for _, ks := range s.keyspaces() {
		if ks.expiryOff.Load() != 0 {
			continue
		}
		for i := range ks.shards {
			best = min(best, ks.shards[i].nextDue.Load())
		}
	}
	if best != never {
		best *= 1000
	}
	s.mu.Lock()
	if len(s.heap) > 0 {
		best = min(best, s.heap[0].at)
	}
	s.mu.Unlock()
	return best
}

// breatheMicros is how long deadlines are served at a stretch. Then goroutines that wait for a processor get it;
// otherwise Go would take it from this one only after 10 ms.
const breatheMicros = 100

// breathe lets other goroutines run now and then.
func (s *Scheduler) breathe() {
	if now := Monotonic(); now-s.breathed > breatheMicros {
		runtime.Gosched()
		s.breathed = Monotonic()
	}
}

// serve does what is due at now. It serves each shard a batch at a time, and unlocks it in between. A key whose time
// is over is invisible even before its turn comes.
func (s *Scheduler) serve(now int64) {
	for again := true; again; {
		again = false
		for _, ks := range s.keyspaces() {
			if ks.expiryOff.Load() != 0 {
				continue
			}
			for i := range ks.shards {
				sh := &ks.shards[i]
				if sh.nextDue.Load() <= now/1000 {
					if ks.expireShard(sh, now) {
						again = true
					}
					s.breathe()
				}
			}
		}
	}
	for {
		s.mu.Lock()
		if len(s.heap) == 0 || s.heap[0].at > now {
			s.mu.Unlock()
			return
		}
		t := heap.Pop(&s.heap).(*Timer)
		s.mu.Unlock()
		t.fn(now)
		s.breathe()
	}
}

func (s *Scheduler) loop() {
	defer close(s.done)
	defer s.caught()
	for {
		s.follow()
		// A caller that adds an earlier deadline from here on wakes this goroutine.
		s.until.Store(never)
		wait := int64(followMicros)
		next := s.next()
		s.until.Store(next)
		switch now := s.clock.Now(); {
		case next <= now: // also while the clock is frozen: a waiter may have left a line
			s.run.Lock()
			s.serve(s.clock.Now()) // the clock may have been set back meanwhile
			s.run.Unlock()
			continue
		case next != never && !s.clock.Frozen():
			wait = min(wait, next-now)
		}
		if s.next() < s.until.Load() {
			continue // an earlier deadline came in between
		}
		select {
		case <-s.stop:
			return
		default:
			s.alarm.Wait(time.Duration(wait) * time.Microsecond)
		}
	}
}

// Freeze stops the clock at a time. If that is later than now, all that falls due up to then happens as in Advance.
// If it is earlier, the clock just jumps.
func (s *Scheduler) Freeze(atMicros int64) {
	now := s.clock.Now()
	if atMicros >= now {
		s.clock.Freeze(now)
		s.Advance(atMicros - now)
		return
	}
	s.run.Lock()
	s.clock.Freeze(atMicros)
	s.rewind()
	s.run.Unlock()
	s.Wake()
}

// Few tells whether at most so many deadlines could fall due in an advance, which then takes hardly any time.
func (s *Scheduler) Few(most int) bool {
	n := 0
	for _, ks := range s.keyspaces() {
		for i := range ks.shards {
			sh := &ks.shards[i]
			ks.enter(sh)
			if sh.holder != nil {
				n += most + 1 // the holder may make any number
			} else {
				n += sh.pending()
			}
			sh.mu.Unlock()
		}
		if n > most {
			return false
		}
	}
	return true
}

// pending is how many things may fall due in a shard.
func (s *shard) pending() int {
	n := s.wheel.count + len(s.waits)
	for db := range s.tables {
		n += s.tables[db].ofKind(KindLimiter)
	}
	return n
}

// Advance moves a frozen clock forward. It serves what falls due on the way, in order of time, before it returns.
func (s *Scheduler) Advance(micros int64) {
	s.run.Lock()
	defer s.run.Unlock()
	defer s.Wake() // the deadline that the goroutine sleeps until has been served
	target := s.clock.Now() + micros
	for {
		next := s.next()
		if next > target {
			break
		}
		s.clock.Freeze(max(next, s.clock.Now()))
		s.serve(s.clock.Now())
	}
	s.clock.Freeze(target)
	s.serve(target)
	for _, ks := range s.keyspaces() {
		ks.sweepAll(target)
	}
}

// catchUp serves what is due in a keyspace whose contents were replaced. No lock is held.
func (s *Scheduler) catchUp(ks *Keyspace) {
	s.run.Lock()
	now := s.clock.Now()
	s.serve(now)
	if s.clock.Frozen() {
		ks.sweepAll(now)
	}
	s.run.Unlock()
	s.Wake()
}

// Resume lets a frozen clock run again.
func (s *Scheduler) Resume() {
	s.run.Lock()
	s.clock.Resume()
	s.rewind()
	s.run.Unlock()
	s.Wake()
}

// followMicros is how often the scheduler looks whether the system's clock has stepped. It also finds that the
// machine was suspended, since Monotonic stands still meanwhile.
const followMicros = 500_000

// follow takes over a step of the system's clock. After a step forward, all that has become due is served next, in
// order of time. After a step back, what lasts for a length of time still ends after that length.
func (s *Scheduler) follow() {
	now := Monotonic()
	if now-s.followed < followMicros {
		return
	}
	s.followed = now
	if s.clock.stepped() == 0 {
		return
	}
	s.run.Lock()
	step := s.clock.stepped() // read again: the clock may be frozen by now
	switch {
	case step > 0:
		s.clock.step(step)
	case step < 0 && !s.back(step):
		s.followed, step = 0, 0
	}
	s.run.Unlock()
	if step != 0 && s.Stepped != nil {
		s.Stepped(step)
	}
}

// rewind makes the shards follow a clock that was set back or resumed: their wheels and sweeps may have worked for
// times that are to come.
func (s *Scheduler) rewind() {
	for _, ks := range s.keyspaces() {
		for i := range ks.shards {
			ks.unreserved(&ks.shards[i], func(s *shard) {
				s.rewind(ks.Clock.Now() / 1000)
				ks.noteDue(s)
				ks.Sched.Wake()
			})
		}
	}
}

// rewind makes the shard, which is held, follow a clock that was set back to a time.
func (s *shard) rewind(nowMillis int64) {
	s.wheel.rewind(nowMillis)
	s.sweep.notBefore = min(s.sweep.notBefore, nowMillis)
}
