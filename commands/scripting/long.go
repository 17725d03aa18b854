package scripting

// Scripts that take long: when a script counts as long, SCRIPT KILL, and the time after which others get BUSY. heap.go limits
// the memory that a script may take.

import (
	"errors"
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/luavm"
	"github.com/limitkv/limitkv/luavm/budget"
	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/longrun"
)

const (
	// inlineMicrosMax is how long a script keeps its event loop and the locks of its keys. Handing them over costs about 20
	// microseconds.
	inlineMicrosMax = 500
	// askedMicros is how often a script should be asked whether it may go on.
	askedMicros = 50
	// slowSteps is how many steps of an interpreter's budget a command costs if it is not brief.
	slowSteps = 200
)

// Why a script is stopped.
var (
	errKilled = errors.New("Script killed by user with SCRIPT KILL...")
	errMemory = errors.New(luavm.NoMemory)
)

// watch is a worker's watch over the script or function that it runs.
type watch struct {
	f        *family
	c        *command.Ctx  // nil: nothing runs
	function *string       // its name, if it is a function
	script   *script       // if it is a script
	held     server.Script // what it may do, and whether it has called a command that writes
	began    int64         // monotonic, in microseconds: when the script began, or the first one of an EXEC
	of       int64         // Ctx.Now of the command that began then
	asked    int64
	steps    int

	// Once it takes long:
	run    *longrun.Run
	stop   atomic.Pointer[error]
	slow   *time.Timer
	looked int64 // when the memory was checked
	heap   scriptHeap
}

// begin is called before a script or function runs, at a time of the monotonic clock.
func (w *watch) begin(c *command.Ctx, function *string, now int64) {
	w.c, w.function, w.held.Wrote = c, function, false
	if !c.Exec || w.of != c.Now {
		w.began, w.of = now, c.Now
	}
	w.asked, w.steps = now, budget.Steps
	w.heap.begun = false
	if c.Long != nil {
		w.attend(now)
	}
}

// end is called after a script or function has run.
func (w *watch) end() {
	w.c, w.script = nil, nil
	if w.run != nil {
		w.leave()
	}
}

// ask is what the interpreter calls every so often. It returns the number of steps until the next call, or the error that
// ends the script.
func (w *watch) ask() (steps int, err error) {
	if w.c == nil {
		return budget.Steps, nil // no script runs: a library is loaded
	}
	now := engine.Monotonic()
	if took := now - w.asked; took > 2*askedMicros {
		w.steps = max(w.steps/4, 1)
	} else if took < askedMicros/2 {
		w.steps = min(2*w.steps, 4*budget.Steps)
	}
	w.asked = now
	if w.run == nil {
		if now-w.began < inlineMicrosMax {
			return w.steps, nil
		}
		w.attend(now)
	}
	if now-w.looked >= memoryMicros {
		w.looked = now
		if !w.room(0) {
			return 0, errMemory
		}
	}
	if err := w.stop.Load(); err != nil {
		return 0, *err
	}
	runtime.Gosched() // if all processors are busy, event loops come before long scripts
	w.asked = engine.Monotonic()
	return w.steps, nil
}

// attend makes the command that runs the script a long one, if it is not yet. From then on the script can be killed, and
// others learn of it.
func (w *watch) attend(now int64) {
	w.narrow()
	run := w.f.s.GoLong(w.c, w.began)
	w.run, w.looked = run, now
	w.room(0)
	w.stop.Store(nil)
	run.Begin(w.function, w.held.Wrote, func() { w.stop.Store(&errKilled) })
	limit := time.Duration(min(w.f.timeLimit.Load(), math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	limit -= time.Duration(now-w.began) * time.Microsecond
	name, kill := "", "SCRIPT KILL"
	if w.function != nil {
		name, kill = *w.function, "FUNCTION KILL"
	} else if w.script != nil {
		name = w.script.SHA
	}
	f, began := w.f, w.began
	w.slow = time.AfterFunc(limit, func() {
		f.s.Logf('w', "Slow script detected: still in execution after %d milliseconds. You can try killing the script using the %s command. Script name is: %s.",
			(engine.Monotonic()-began)/1000, kill, name)
		f.s.Long.MarkSlow(run)
	})
}

// narrow releases the shards that the script does not use. A script that runs for the first time has all locks, because it
// was not analysed before.
func (w *watch) narrow() {
	c := w.c
	if w.script == nil || c.Long != nil || c.Exec || !w.script.proven(w.f.finder).KeysProven {
		return
	}
	var set engine.LockSet
	n, _ := number.ParseInt(c.Args[2])
	for _, key := range c.Args[3 : 3+n] {
		set.AddKey(key)
	}
	c.KS.Unlock(c.Worker.Locked.Without(set))
	c.Worker.Locked, c.Held = set, set
}

// leave undoes attend.
func (w *watch) leave() {
	w.slow.Stop()
	w.run.End()
	w.run = nil
}

// writes records that the script calls a command that writes, so it can no longer be killed. It reports false if the script
// has been killed already.
func (w *watch) writes() bool {
	w.held.Wrote = true
	return w.run == nil || w.run.Writes()
}

// kill stops the long scripts that have not written yet or, with function, the functions. Each has its own command.
func (f *family) kill(c *command.Ctx, function bool) {
	text, killed := command.ErrNotBusy, false
	for _, run := range f.s.Long.All() {
		switch run.Kill(function) {
		case longrun.KillDone:
			killed = true
		case longrun.KillTooLate:
			text = command.ErrUnkillable
		case longrun.KillOther:
			text = run.Busy()
		}
	}
	if killed {
		c.OK()
	} else {
		c.Error(text)
	}
}
