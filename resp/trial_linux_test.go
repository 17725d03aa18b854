package resp

// Trials of threads, judged by the bytes read before and after.

import "testing"

// trialOf steps a trial: each tick reads arrive, of so many bytes, that keep threads busy for so long.
type trialOf struct {
	trial
	now flow
}

func (o *trialOf) step(reads, bytes, busy int64, alone int) (back *loop, all bool) {
	o.now.at += superviseEvery.Microseconds()
	o.now.reads += reads
	o.now.bytes += reads * bytes
	o.now.busy += reads * busy
	return o.tick(o.now, alone)
}

// run is a trial that follows on 100 reads a tick with as many as are given. It returns whether the thread is given back.
func (o *trialOf) run(t *testing.T, l *loop, reads int64, alone int) bool {
	t.Helper()
	was := o.now
	for range hotTicks {
		o.step(100, 50, 100, alone-1)
	}
	if !o.may(o.now.since(was), o.now.at) {
		t.Fatal("the trial is not allowed")
	}
	o.begin(l, o.now.since(was))
	ticks := settleTicks + trialTicks
	if reads < 100 {
		ticks = settleTicks + lossTicks
	}
	for i := range ticks {
		if o.loop == nil {
			t.Fatalf("the trial ends after %d ticks", i)
		}
		if back, all := o.step(reads, 50, 100, alone); back != nil || all {
			if i != ticks-1 || all || back != l {
				t.Fatalf("tick %d: %v, %v", i, back, all)
			}
			return true
		}
	}
	if o.loop != nil {
		t.Fatal("the trial does not end")
	}
	return false
}

func TestTrialGains(t *testing.T) {
	l := &loop{}
	for _, x := range []struct {
		reads int64
		alone int
		back  bool
	}{{80, 1, true}, {99, 1, true}, {100, 1, true}, {114, 1, true}, {116, 1, false}, {200, 1, false}, {107, 2, true}, {108, 2, false}, {104, 3, true}, {106, 3, false}} {
		var o trialOf
		if back := o.run(t, l, x.reads, x.alone); back != x.back {
			t.Errorf("%d %% with %d threads beside the first: given back is %v", x.reads, x.alone, back)
		}
		if o.proven == (flow{}) != x.back || o.unproven() != x.back {
			t.Errorf("%d %%: proven is %v", x.reads, o.proven)
		}
	}
}

// TestTrialHolds: after each failure the next trial comes later, and at once if clients send other commands.
func TestTrialHolds(t *testing.T) {
	var o trialOf
	l := &loop{}
	want := int64(holdMin)
	for range 8 {
		if !o.run(t, l, 100, 1) {
			t.Fatal("it gained nothing")
		}
		end := o.now.at + want
		same, shorter, slower := o.before, o.before, o.before
		shorter.bytes /= 2
		slower.busy *= 2
		if o.may(same, end-1) || !o.may(same, end) {
			t.Fatalf("the next trial is not after %d µs", want)
		}
		if !o.may(shorter, o.now.at+1) || !o.may(slower, o.now.at+1) {
			t.Error("something else has to wait, too")
		}
		for o.now.at < end {
			o.step(100, 50, 100, 0)
		}
		want = min(2*want, holdMax)
	}
	if want != holdMax {
		t.Errorf("the longest wait was not reached: %d", want)
	}
	if o.run(t, l, 200, 1) {
		t.Fatal("it gained")
	}
	o.step(100, 50, 100, 0) // too little to do: the thread is gone
	if !o.run(t, l, 100, 1) || o.until-o.now.at != holdMin {
		t.Errorf("after success the wait is %d µs", o.until-o.now.at)
	}
}

// TestTrialChanges: a successful trial is valid as long as clients send the same kind of commands.
func TestTrialChanges(t *testing.T) {
	var o trialOf
	if o.run(t, &loop{}, 200, 1) {
		t.Fatal("it gained")
	}
	for i := range 10 * otherTicks {
		busy := int64(100)
		if i/coolTicks%4 == 0 {
			busy = 300 // now and then something takes longer
		}
		if back, all := o.step(200, 50, busy, 1); back != nil || all {
			t.Fatalf("given back at tick %d", i)
		}
	}
	for i := range 2 * otherTicks {
		if _, all := o.step(200, 50, 300, 1); all {
			if i < otherTicks-coolTicks || i > otherTicks+coolTicks {
				t.Errorf("all are given back after %d ticks", i)
			}
			if !o.unproven() {
				t.Error("what was proven is so still")
			}
			return
		}
	}
	t.Error("other commands change nothing")
}

// TestTrialVoid: a command that keeps its thread ends a trial, and the threads are unproven.
func TestTrialVoid(t *testing.T) {
	var o trialOf
	o.begin(&loop{}, flow{})
	o.step(1, 1, 1, 1)
	o.void()
	for range 2 * (settleTicks + trialTicks) {
		if back, all := o.step(1000, 50, 1, 1); back != nil || all {
			t.Fatal("there is no trial")
		}
	}
	if !o.unproven() {
		t.Error("nothing was proven")
	}
}
