package resp

// Trials: whether a thread of its own is of use to a loop shows when it has one. Idle time is not enough to go by. Where
// commands hold the whole keyspace, as scripts do whose keys are not known, two threads wait for each other; and where the
// clients' processes are on the same machine, they take what was idle as soon as they get their replies. So the supervisor
// compares what was read from clients in the tenth of a second before a loop got its thread with what is read in a fifth
// of a second after. A thread that brings too little is given back, and is tried again after a second, later after two,
// and so on, or when clients send something else. One with which less is read than without is given back as soon as that
// shows.
//
// Bytes stand for work. Of commands there are several in a read, and of reads fewer the longer they have to wait.

const (
	settleTicks = 5  // that a trial leaves out
	trialTicks  = 20 // that it takes
	lossTicks   = 5  // after which a loss shows
	// gainWanted is what a second thread has to bring. Of a third one half of it is wanted, of a fourth a third: what they
	// can bring is less by as much.
	gainWanted = 0.15
	holdMin    = 1_000_000 // microseconds without a trial after one that failed
	holdMax    = 32_000_000
	// otherFactor is by how much reads have to change for clients to send something else, otherTicks for how long while
	// there are several threads.
	otherFactor = 1.4
	otherTicks  = 100
)

// trial is what the supervisor knows of threads that it gave.
type trial struct {
	loop   *loop // that has a thread on trial, nil for none
	ticks  int   // since it got it
	before flow  // while it had none
	start  flow  // when its time began

	proven flow // with the threads that have proven themselves; empty if none has
	spent  flow // when the present comparison with that began
	other  int  // ticks for which it has been another

	failed flow  // before a trial that failed
	until  int64 // no other trial of the same before that
	hold   int64
}

// flow is what was read, in how many reads, and how long threads were busy with it, in some time or up to a moment.
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

// since is what came after an earlier moment.
func (f flow) since(g flow) flow {
	return flow{f.at - g.at, f.bytes - g.bytes, f.reads - g.reads, f.busy - g.busy}
}

// rate is bytes in a microsecond.
func (f flow) rate() float64 { return float64(f.bytes) / float64(max(f.at, 1)) }

// like says whether reads are about as long, and take about the same time.
func (f flow) like(g flow) bool {
	alike := func(a, b int64) bool {
		x, y := float64(a)/float64(max(f.reads, 1)), float64(b)/float64(max(g.reads, 1))
		return x < y*otherFactor && y < x*otherFactor
	}
	return alike(f.bytes, g.bytes) && alike(f.busy, g.busy)
}

// may says whether a thread may be tried, after some time without it.
func (t *trial) may(was flow, now int64) bool {
	return t.loop == nil && (now >= t.until || !was.like(t.failed))
}

// begin begins a trial.
func (t *trial) begin(l *loop, was flow) { t.loop, t.ticks, t.before = l, 0, was }

// unproven says whether threads that are there, since a command kept the first one, have yet to show their use.
func (t *trial) unproven() bool { return t.loop == nil && t.proven == flow{} }

// void ends a trial without a result: a command keeps its thread.
func (t *trial) void() { t.loop = nil }

// tick goes on with a trial, or looks whether what was proven is still so. alone is how many threads there are beside the
// first. It returns which loop is to give its thread back, and whether all are.
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
