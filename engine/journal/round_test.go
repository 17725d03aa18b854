package journal

// What event loops write, and what they leave to the writer's goroutine. The test steps the writer.

import (
	"strings"
	"testing"

	"github.com/limitkv/limitkv/engine/vfs"
	"github.com/limitkv/limitkv/engine/vfs/simfs"
)

// rounds is a writer without its goroutine, for which loops write.
type rounds struct {
	*writer
	log   *Log
	now   int64 // of its clock
	in    bool  // a loop is in a round
	runs  bool  // a sync that began has not ended
	slow  int64 // microseconds that each write takes
	holds bool  // no sync can run in the background
}

func newRounds(t *testing.T) *rounds {
	t.Helper()
	disk, o := simPlace(t)
	r := &rounds{}
	o.Monotonic = func() int64 { return r.now }
	disk.Plan(func(c simfs.Call) simfs.Accident {
		if c.Kind == simfs.Write {
			r.now += r.slow
		}
		return simfs.Accident{}
	})
	f, loaded, _ := open(t, o)
	r.log = NewAt(loaded.End)
	r.writer = newWriter(f, r.log, WriterOptions{Policy: Always, Checksums: true,
		Beside: &sometimes{&simfs.Beside{Runs: func() bool { return r.runs }}, r}, InRound: func() bool { return r.in }})
	if err := r.open(); err != nil {
		t.Fatal(err)
	}
	// The goroutine writes the first mark of a file.
	r.append(1)
	if !r.woken() {
		t.Fatal("the goroutine is not woken by what is appended outside of a round")
	}
	for r.step() == 0 {
	}
	if r.inFlight || r.Durable() != r.log.End() {
		t.Fatal("the first batch is not durable")
	}
	r.now += 10 * companyMicros
	return r
}

// sometimes is a Beside that cannot begin a sync if the test says so.
type sometimes struct {
	vfs.Beside
	r *rounds
}

func (s *sometimes) Begin(f vfs.File) bool { return !s.r.holds && s.Beside.Begin(f) }

// append appends a batch of some bytes.
func (r *rounds) append(bytes int) { r.log.Append(one("SET", "k", strings.Repeat("x", bytes))) }

// woken reports whether the goroutine was woken.
func (r *rounds) woken() bool {
	select {
	case <-r.kick:
		return true
	default:
		return false
	}
}

// TestRound checks that a loop writes at the end of its round, and again when the sync that it began has ended.
func TestRound(t *testing.T) {
	r := newRounds(t)
	r.in, r.runs = true, true
	r.append(1)
	r.in = false
	if r.woken() || r.Round() != 0 || !r.inFlight || r.woken() {
		t.Fatal("a round does not write and begin a sync by itself")
	}
	if r.Durable() == r.log.End() {
		t.Error("what is being synced counts as durable")
	}
	r.append(1) // from outside of a loop, while the sync runs
	if r.woken() {
		for r.step() == 0 {
		}
	}
	if r.Synced(); !r.inFlight {
		t.Error("a sync that runs has ended")
	}
	r.runs = false
	if r.Synced(); r.inFlight || r.Durable() != r.Written() || r.Durable() == r.log.End() {
		t.Error("a sync that ended does not make durable what was written before it, and that alone")
	}
	// The one expected batch is there already.
	if again := r.Round(); again != 0 || !r.inFlight {
		t.Errorf("what came meanwhile waits %d µs", again)
	}
	r.Synced()
	if r.Durable() != r.log.End() || r.Round() != 0 || r.woken() {
		t.Error("something is left to do")
	}
	// The next append wakes the goroutine.
	if r.append(1); !r.woken() {
		t.Error("the goroutine is not woken by what is appended outside of a round")
	}
}

// TestRoundWaits checks that a sync waits for as many batches as the last one had, but not for ever.
func TestRoundWaits(t *testing.T) {
	r := newRounds(t)
	r.in = true
	for range 3 {
		r.append(1)
	}
	r.Round()
	r.now += 100
	r.Synced()
	r.append(1)
	again := r.Round()
	if again < 1 || again > companyMicros || r.inFlight {
		t.Fatalf("one of three is synced alone, or waits for %d µs", again)
	}
	r.now += again - 1
	if left := r.Round(); left != 1 || r.inFlight {
		t.Errorf("just before its time it waits %d µs", left)
	}
	r.now++
	if r.Round(); !r.inFlight {
		t.Error("it waits for longer than it said")
	}
	r.Synced()
	r.append(1)
	if r.Round(); !r.inFlight {
		t.Error("it waits for more than came the last time")
	}
}

// TestRoundLeaves checks that loops leave slow work to the goroutine.
func TestRoundLeaves(t *testing.T) {
	leaves := func(what string, r *rounds, leaves bool) {
		t.Helper()
		r.in = true
		written := r.Written()
		r.Round()
		if left := r.Written() == written; left != leaves {
			t.Errorf("%s: left to the goroutine %v", what, left)
		}
		if r.woken() != leaves {
			t.Errorf("%s: the goroutine is woken %v", what, !leaves)
		}
		for range 10 {
			r.step()
			r.Synced()
		}
		if r.Durable() != r.log.End() {
			t.Errorf("%s: it is never durable", what)
		}
		r.woken()
		r.now += 10 * companyMicros
	}
	r := newRounds(t)
	frame := func() int { return r.Backlog() }
	r.in = true
	r.append(1)
	over := frame()
	leaves("little", r, false)
	for _, c := range []struct {
		more   int
		leaves bool
	}{{-1, false}, {0, false}, {1, true}, {1_000_000, true}} {
		const digits = 5 // more of the value's length than of one byte's
		r.in = true
		r.append(roundMax + c.more - over - digits + 1)
		if got := frame(); c.more < 2 && got != roundMax+c.more {
			t.Fatalf("%d bytes wait, not %d", got, roundMax+c.more)
		}
		leaves("much", r, c.leaves)
	}

	for _, c := range []struct {
		slow   int64
		leaves bool
	}{{slowMicros - 1, false}, {slowMicros, false}, {slowMicros + 1, true}, {1_000_000, true}} {
		r := newRounds(t)
		r.in, r.slow = true, c.slow
		r.append(1)
		leaves("the write that is slow", r, false)
		r.in, r.slow = true, 0
		r.append(1)
		leaves("the next one", r, c.leaves && c.slow < asideMicros-10*companyMicros)
		r.now += asideMicros
		r.in = true
		r.append(1)
		leaves("one a second later", r, false)
	}

	r = newRounds(t)
	r.in = true
	if _, err := r.Rotate(); err != nil {
		t.Fatal(err)
	}
	r.woken()
	r.append(1)
	leaves("what stands behind a cut", r, true)

	r = newRounds(t)
	r.in, r.holds = true, true
	r.append(1)
	r.Round()
	if !r.woken() {
		t.Error("nobody syncs what cannot be synced beside")
	}
	for r.step() == 0 {
	}
	if r.Durable() != r.log.End() {
		t.Error("what cannot be synced beside is not synced")
	}

	r = newRounds(t)
	r.in = true
	for _, policy := range []Policy{EverySecond, Never} {
		r.SetPolicy(policy)
		r.woken()
		if r.append(1); !r.woken() || r.Round() != 0 {
			t.Error("loops write without Always")
		}
		r.step()
	}
}
