package resp

// The supervisor decides, every 10 ms while there is work, which loops have a thread of their own (runner_linux.go says
// what that is about). The rules:
//
//   - A loop gets a thread when the first loop's has been busy for 100 ms and a third of a processor was idle meanwhile:
//     idle time is what there is to gain. It keeps it if that is seen to gain something (trial_linux.go).
//   - All get one when a command keeps the first loop's thread for 10 to 20 ms: other loops' clients need not wait for it.
//     A round that takes as long while it goes on from client to client is none.
//   - A loop gives its thread back when its and the first loop's together were busy for less than 60 % of 200 ms, or when
//     no command kept the first loop's thread meanwhile and no thread has been seen to gain something.
//
// A tick wakes two threads for 50 µs. So while there is little to do, a tick comes every 100 ms, until there is more or a
// command begins that is known to take long.
//
// Shares are averages of all these ticks: a round of a loop counts when it ends, and 50 clients with a pipeline of slow
// commands make rounds of half a tick.

import (
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	superviseEvery = 10 * time.Millisecond
	hotShare       = 0.9
	hotTicks       = 10
	idleWanted     = 0.35 // processors
	coolShare      = 0.6  // of two threads together
	coolTicks      = 20
	restTicks      = 100 // without work, after which the supervisor sleeps

	lightEvery = 100 * time.Millisecond
	lightShare = 0.05 // of all threads together
	lightTicks = 20   // so many, after which ticks come every lightEvery
)

// supervisor is the server's.
type supervisor struct {
	mu     sync.Mutex // held to change which loops are shared
	frozen bool       // the server stops: they stay as they are

	asleep atomic.Bool
	light  atomic.Bool // there is little to do
	wake   chan struct{}
}

// attend has ticks come often again: a command begins that may keep its thread.
func (s *supervisor) attend() {
	if s.light.Load() && s.light.CompareAndSwap(true, false) {
		s.wake <- struct{}{} // has room: there is one for each
	}
}

// freeze ends all changes.
func (s *supervisor) freeze() {
	s.mu.Lock()
	s.frozen = true
	s.mu.Unlock()
}

// rouse wakes the supervisor if it sleeps: there is work.
func (s *supervisor) rouse() {
	if s.asleep.Load() && s.asleep.CompareAndSwap(true, false) {
		s.wake <- struct{}{} // has room: there is one sleep for each
	}
}

func (s *supervisor) start(server *Server) {
	s.wake = make(chan struct{}, 2)
	b := &balance{last: make([]int64, len(server.loops)), cool: make([]average, len(server.loops))}
	b.meter.open()
	go func() {
		defer server.caught()
		defer b.meter.close()
		for {
			if !b.isIdle() {
				every := superviseEvery
				if s.light.Load() {
					every = lightEvery
				}
				select {
				case <-server.done:
					return
				case <-s.wake:
				case <-time.After(every):
				}
			} else {
				s.asleep.Store(true)
				select {
				case <-server.done:
					return
				case <-s.wake:
				}
				b.begin(server)
				continue
			}
			b.tick(server)
		}
	}()
}

// balance is what the supervisor knows.
type balance struct {
	at    int64     // of the last tick
	last  []int64   // each loop's busy time then
	since int64     // when the first loop's present round began, as of the last tick
	reads int64     // by the first loop's thread until then
	hot   average   // of the first loop's thread
	cool  []average // of a loop's own thread and the first loop's together
	quiet int       // ticks without work
	light int       // ticks with little

	meter   idleMeter
	hotIdle float64 // processor seconds idle when hot began
	hotFlow flow

	trial trial
}

// average is that of the shares of some ticks.
type average struct {
	sum   float64
	ticks int
}

// over adds a share. After n of them it returns their average, and begins anew.
func (a *average) over(n int, share float64) (mean float64, ok bool) {
	a.sum += share
	a.ticks++
	if a.ticks < n {
		return 0, false
	}
	mean = a.sum / float64(n)
	*a = average{}
	return mean, true
}

func (b *balance) isIdle() bool { return b.quiet >= restTicks }

// begin starts measuring anew.
func (b *balance) begin(s *Server) {
	s.share.light.Store(false)
	b.quiet, b.light, b.hot, b.at = 0, 0, average{}, s.opts.Now()
	for i, l := range s.loops {
		b.last[i], b.cool[i] = l.run.busy.Load(), average{}
	}
}

// tick looks at the loops and has them change threads.
func (b *balance) tick(s *Server) {
	now := s.opts.Now()
	elapsed := float64(now - b.at)
	b.at = now
	if elapsed <= 0 { // a clock that stands still
		return
	}
	first := &s.loops[0].run
	load := b.load(0, first.busy.Load(), elapsed)
	stuck := b.keeps(first.since.Load(), s.firstReads())
	if stuck {
		s.replaceFirst()
		b.trial.void()
	}
	alone := 0
	for i, l := range s.loops[1:] {
		share := b.load(i+1, l.run.busy.Load(), elapsed)
		if l.run.shared.Load() {
			b.cool[i+1] = average{}
			if stuck && l.count.Load() > 0 {
				l.giveThread()
			}
			continue
		}
		alone++
		if stuck {
			b.cool[i+1] = average{}
		} else if mean, ok := b.cool[i+1].over(coolTicks, load+share); ok && (mean < coolShare || b.trial.unproven()) {
			l.giveBack()
		}
	}
	moved := s.flow(now)
	if back, all := b.trial.tick(moved, alone); back != nil || all {
		for _, l := range s.loops[1:] {
			if (all || l == back) && !l.run.shared.Load() {
				l.giveBack()
			}
		}
	}
	b.heat(s, load, moved)
	if load == 0 && !stuck && alone == 0 {
		b.quiet += max(1, int(elapsed)/int(superviseEvery.Microseconds()))
	} else {
		b.quiet = 0
	}
	switch {
	case load >= lightShare || stuck || alone > 0:
		b.light = 0
		s.share.light.Store(false)
	case b.light < lightTicks:
		if b.light++; b.light == lightTicks {
			s.share.light.Store(true)
		}
	case !s.share.light.Load(): // attend was called
		b.light = 0
	}
}

// keeps says whether a command has kept the first loop's thread since the last tick. since is when the thread's round began,
// reads is how often it has read.
func (b *balance) keeps(since, reads int64) bool {
	same := since == b.since && reads == b.reads
	b.since, b.reads = since, reads
	return same && since != 0
}

// firstReads is how often the loops have read that the first one's thread runs.
func (s *Server) firstReads() (reads int64) {
	for i, l := range s.loops {
		if i == 0 || l.run.shared.Load() {
			reads += l.io.reads.Load()
		}
	}
	return reads
}

// load is the share of the time that a loop's thread was busy.
func (b *balance) load(i int, busy int64, elapsed float64) float64 {
	share := float64(busy-b.last[i]) / elapsed
	b.last[i] = busy
	return share
}

// heat gives a loop a thread if the first loop's has too much to do and there is
// a processor for it.
func (b *balance) heat(s *Server, load float64, now flow) {
	if b.hot.ticks == 0 {
		b.hotIdle, b.hotFlow = b.meter.idleSeconds(), now
	}
	mean, ok := b.hot.over(hotTicks+1, load) // the first one is that before hotFlow
	if !ok || mean < hotShare {
		return
	}
	was := now.since(b.hotFlow)
	idle := (b.meter.idleSeconds() - b.hotIdle) / (float64(was.at) / 1e6)
	if b.meter.ok() && idle < idleWanted || !b.trial.may(was, now.at) {
		return
	}
	var most *loop
	for _, l := range s.loops[1:] {
		if l.run.shared.Load() && l.count.Load() > 0 && (most == nil || l.count.Load() > most.count.Load()) {
			most = l
		}
	}
	if most != nil && most.giveThread() {
		b.trial.begin(most, was)
	}
}

// giveBack has a loop give its thread back.
func (l *loop) giveBack() {
	l.run.leave.Store(true)
	l.call(func() {}) // so that it looks
}

// idleMeter reads how long the machine's processors have been idle.
type idleMeter struct{ file *os.File }

func (m *idleMeter) open()    { m.file, _ = os.Open("/proc/stat") }
func (m *idleMeter) ok() bool { return m.file != nil }
func (m *idleMeter) close() {
	if m.file != nil {
		m.file.Close()
	}
}

// idleSeconds is the time of all processors together, in steps of 10 ms.
func (m *idleMeter) idleSeconds() float64 {
	var buf [512]byte
	n := 0
	if m.file != nil {
		n, _ = m.file.ReadAt(buf[:], 0)
	}
	ticks, ok := parseIdle(buf[:n])
	if !ok {
		m.close()
		m.file = nil
	}
	return float64(ticks) / 100
}

// parseIdle reads idle and iowait, the 4th and 5th number of the first line.
func parseIdle(b []byte) (ticks int64, ok bool) {
	field := 0
	for i := 0; i < len(b) && b[i] != '\n'; i++ {
		if b[i] == ' ' {
			continue
		}
		start := i
		for i+1 < len(b) && b[i+1] > ' ' {
			i++
		}
		if field == 4 || field == 5 {
			v, isInt := ParseInt(b[start : i+1])
			if !isInt {
				return 0, false
			}
			ticks += v
		}
		field++
	}
	return ticks, field > 5
}
