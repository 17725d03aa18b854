package scripting

// Scripts that run off the loop: SCRIPT KILL, the time after which others are
// told BUSY, and the memory that a script may take.

import (
	"errors"
	"math"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/luavm"
	"github.com/limitkv/limitkv/luavm/budget"
)

// memoryCheck is how often the memory of long scripts is looked at.
const memoryCheck = 20 * time.Millisecond

// Why a script is stopped.
var (
	errKilled = errors.New("Script killed by user with SCRIPT KILL...")
	errMemory = errors.New("not enough memory")
)

// watch makes a script that runs off the loop stoppable, and watches its time
// and memory. The returned function ends that.
func (f *family) watch(c *command.Ctx, vm *luavm.VM) (end func()) {
	run := c.Long
	if run == nil {
		return func() {}
	}
	var stop atomic.Pointer[error]
	run.Mu.Lock()
	run.Cancel = func() { stop.CompareAndSwap(nil, &errKilled) }
	run.Mu.Unlock()
	vm.Watch(func() (int, error) {
		if err := stop.Load(); err != nil {
			return 0, *err
		}
		return budget.Steps, nil
	})
	slow := time.AfterFunc(time.Duration(min(f.timeLimit.Load(), math.MaxInt64/int64(time.Millisecond)))*time.Millisecond, func() { f.s.Long.MarkSlow(run) })
	done := make(chan struct{})
	go f.watchMemory(&stop, done)
	return func() {
		close(done)
		slow.Stop()
		vm.Watch(nil)
		run.Mu.Lock()
		run.Cancel = nil
		run.Mu.Unlock()
	}
}

// watchMemory stops a script while which the heap grew by more than the limit.
func (f *family) watchMemory(stop *atomic.Pointer[error], done chan struct{}) {
	tick := time.NewTicker(memoryCheck)
	defer tick.Stop()
	before := heapBytes()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			if heapBytes() > before+uint64(f.memoryMax.Load()) {
				stop.CompareAndSwap(nil, &errMemory)
				return
			}
		}
	}
}

func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// kill stops the scripts that run off the loop and have not written yet, or,
// with function, the functions: either has its own command.
func (f *family) kill(c *command.Ctx, function bool) {
	text, killed := command.ErrNotBusy, false
	for _, run := range f.s.Long.All() {
		run.Mu.Lock()
		if run.Cancel != nil {
			switch {
			case run.Wrote.Load():
				text = command.ErrUnkillable
			case (run.Function.Load() != nil) != function:
				text = run.Busy()
			default:
				run.Killed.Store(true)
				run.Cancel()
				killed = true
			}
		}
		run.Mu.Unlock()
	}
	if killed {
		c.OK()
	} else {
		c.Error(text)
	}
}
