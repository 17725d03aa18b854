package resp

// Trials: only a trial shows whether a loop gains from its own thread. Idle time alone does not tell. If commands lock the
// whole keyspace, as scripts with unknown keys do, two threads wait for each other. If the clients run on the same machine,
// they use the idle time as soon as they get their replies. So the supervisor compares the bytes read from clients per time:
// in the tenth of a second before a loop got its thread, and in a fifth of a second after. A thread with too little gain is
// given back. The next trial comes after one second, then after two, and so on, or as soon as clients send other commands. A
// thread with which less is read than without is given back earlier, after lossTicks.
//
// Bytes measure the work. The number of reads does not, since a read contains several commands, and the longer reads have to
// wait, the fewer there are.

const (
	settleTicks = 5  // ticks that a trial ignores at its start
	trialTicks  = 20 // ticks that a trial measures
	lossTicks   = 5  // ticks after which a loss is visible
	// gainWanted is the gain that a second thread must bring. A third thread must bring half of it, a fourth a third,
	// since the gain that they can bring is smaller in the same proportion.
	gainWanted = 0.15
	holdMin    = 1_000_000 // microseconds without a trial after a failed one
	holdMax    = 32_000_000
	// otherFactor is how much reads must change for us to say that clients send other commands. otherTicks is how long the
	// change must last while there are several threads.
	otherFactor = 1.4
	otherTicks  = 100
)

// trial is what the supervisor knows of the threads that it gave to loops.
type trial struct {
	loop   *loop // the loop with a thread on trial, nil for none
	ticks  int   // ticks since it got the thread
	before flow  // flow in the time before the trial
	start  flow  // totals when the measured time began

	proven flow // flow with the threads whose trials succeeded; empty if none has
	spent  flow // totals when the present comparison with proven began
	other  int  // ticks for which the flow has differed from proven

	failed flow  // flow before the trial that failed last
	until  int64 // before that moment there is no other trial with the same flow
	hold   int64 // how long that pause is
}

// flow is how many bytes were read, in how many reads, and how long threads were busy: within some time, or in total up to
// the moment at.
type flow struct{ at, bytes, reads, busy int64 }

func (s *Server) flow(now int64) flow {
	f := flow{at: now}
	for _, l := range s.loops {
		f.bytes += l.run.taken.Load()
		f.reads += l.io.reads.Load()
		f.busy += l.run.busy.Load()
	}
	return f
}

// since is the difference to the totals of an earlier moment.
func (f flow) since(g flow) flow {
	return flow{f.at - g.at, f.bytes - g.bytes, f.reads - g.reads, f.busy - g.busy}
}

// rate is bytes per microsecond.
func (f flow) rate() float64 { return float64(f.bytes) / float64(max(f.at, 1)) }

// like says whether the reads of f and g are about equally long and take about the same time.
func (f flow) like(g flow) bool {
	alike := func(a, b int64) bool {
		x, y := float64(a)/float64(max(f.reads, 1)), float64(b)/float64(max(g.reads, 1))
		return x < y*otherFactor && y < x*otherFactor
	}
	return alike(f.bytes, g.bytes) && alike(f.busy, g.busy)
}

// may says whether a trial may begin. was is the flow of the time before it.
func (t *trial) may(was flow, now int64) bool {
	return t.loop == nil && (now >= t.until || !was.like(t.failed))
}

// begin begins a trial.
func (t *trial) begin(l *loop, was flow) { t.loop, t.ticks, t.before = l, 0, was }

// unproven says that no thread is on trial and none has succeeded: loops with a thread got it because a command kept the
// first loop's thread.
func (t *trial) unproven() bool { return t.loop == nil && t.proven == flow{} }

// void ends a trial without a result: a command keeps its thread.
func (t *trial) void() { t.loop = nil }

// tick continues a trial, or checks whether the flow is still like proven. alone is how many loops have their own thread
// besides the first. It returns the loop that must give its thread back, if any, and whether all must.
func (t *trial) tick(now flow, alone int) (back *loop, all bool) {
	switch {
	case alone == 0:
		t.loop, t.proven = nil, flow{}
	case t.loop != nil:
		return t.judge(now, alone), false
	case t.unproven() || now.at-t.spent.at < coolTicks*superviseEvery.Microseconds():
	default:
		if now.since(t.spent).like(t.proven) {
			t.other = 0
		} else {
			t.other += coolTicks
		}
		t.spent = now
		if t.other >= otherTicks {
			t.proven, t.until, t.hold = flow{}, 0, 0
			return nil, true
		}
	}
	return nil, false
}

// judge ends a trial when its time is over.
func (t *trial) judge(now flow, alone int) (back *loop) {
	switch t.ticks++; t.ticks {
	case settleTicks:
		t.start = now
	case settleTicks + lossTicks, settleTicks + trialTicks:
		is := now.since(t.start)
		if t.ticks == settleTicks+lossTicks && is.rate() >= t.before.rate() {
			return nil
		}
		back, t.loop = t.loop, nil
		if is.rate() >= t.before.rate()*(1+gainWanted/float64(alone)) {
			t.proven, t.spent, t.other, t.hold = is, now, 0, 0
			return nil
		}
		if !t.before.like(t.failed) {
			t.hold = 0
		}
		t.hold = min(max(2*t.hold, holdMin), holdMax)
		t.until, t.failed = now.at+t.hold, t.before
	}
	return back
}
