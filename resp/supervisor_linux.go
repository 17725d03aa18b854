package resp

// The supervisor decides, every 10 ms while there is work, which loops have their own thread (runner_linux.go says
// why). The rules:
//
//   - One loop gets a thread when the first loop's thread was busy for 100 ms and a third of a processor was idle meanwhile:
//     more than the idle time cannot be gained. It keeps the thread if a trial shows a gain (trial_linux.go).
//   - All loops with clients get one when a command keeps the first loop's thread for 10 to 20 ms, so that their clients need
//     not wait. A long round that still goes on from client to client does not count as such a command.
//   - A loop gives its thread back when its thread and the first loop's together were busy for less than 60 % of 200 ms, or
//     when no command kept the first loop's thread in that time and no thread has shown a gain.
//
// A tick wakes two threads for 50 µs. So while there is little to do, a tick comes only every 100 ms, until there is more to
// do or a command begins that is known to take long.
//
// A busy share is an average over several ticks, since a round of a loop counts when it ends, and 50 clients with a pipeline of
// slow commands make rounds of half a tick.

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
	lightTicks = 20   // after so many such ticks, ticks come every lightEvery
)

// supervisor is the part of the supervisor that other goroutines use.
type supervisor struct {
	mu     sync.Mutex // locked to change which loops are shared
	frozen bool       // the server stops: shared loops stay shared, others stay alone

	asleep atomic.Bool
	light  atomic.Bool // there is little to do
	wake   chan struct{}
}

// attend makes ticks frequent again: a command begins that may keep its thread.
func (s *supervisor) attend() {
	if s.light.Load() && s.light.CompareAndSwap(true, false) {
		s.wake <- struct{}{} // does not block: the channel has room for attend and for rouse
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
		s.wake <- struct{}{} // does not block, as in attend
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

// balance is what the supervisor measures.
type balance struct {
	at    int64     // when the last tick was
	last  []int64   // each loop's busy time then
	since int64     // when the first loop's round of that moment had begun
	reads int64     // reads by the first loop's thread until then
	hot   average   // busy share of the first loop's thread
	cool  []average // busy share of a loop's own thread and the first loop's together
	quiet int       // ticks without work
	light int       // ticks with little work

	meter   idleMeter
	hotIdle float64 // idle processor seconds when hot began
	hotFlow flow    // flow when hot began

	trial trial
}

// average computes the average of a share over several ticks.
type average struct {
	sum   float64
	ticks int
}

// over adds a share. After n shares it returns their average and starts again.
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

// tick measures the loops and gives them threads or takes them back.
func (b *balance) tick(s *Server) {
	now := s.opts.Now()
	elapsed := float64(now - b.at)
	b.at = now
	if elapsed <= 0 { // the clock stands still
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

// keeps says whether a command has kept the first loop's thread since the last tick. since is when the thread's round began;
// reads counts its reads.
func (b *balance) keeps(since, reads int64) bool {
	same := since == b.since && reads == b.reads
	b.since, b.reads = since, reads
	return same && since != 0
}

// firstReads counts the reads of the loops that the first loop's thread runs.
func (s *Server) firstReads() (reads int64) {
	for i, l := range s.loops {
		if i == 0 || l.run.shared.Load() {
			reads += l.io.reads.Load()
		}
	}
	return reads
}

// load is the share of the time in which a loop's thread was busy.
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
	mean, ok := b.hot.over(hotTicks+1, load) // the first share is of the tick before hotFlow
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

// giveBack makes a loop give its thread back.
func (l *loop) giveBack() {
	l.run.leave.Store(true)
	l.call(func() {}) // wakes the loop, so that it sees leave
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

// idleSeconds is the idle time of all processors together, in steps of 10 ms.
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
