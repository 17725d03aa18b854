package command

// The end of the server, requested by SHUTDOWN or a signal. Until it is final it can be aborted, and it can fail. All who wait
// for it are notified then.

import (
	"strings"
	"sync"
)

// Ending is how a server ends.
type Ending int32

// The ways to end.
const (
	EndAsConfigured Ending = iota // with a snapshot if there are save points
	EndSaving                     // with a snapshot
	EndDiscarding                 // without
)

// End holds the options of SHUTDOWN.
type End struct {
	How   Ending
	Now   bool // do not wait for replicas that are behind
	Force bool // end even if the last files cannot be written
}

// ParseEnd parses the words of SHUTDOWN and of shutdown-on-sigterm.
func ParseEnd(words []string) (e End) {
	for _, w := range words {
		switch strings.ToLower(w) {
		case "save":
			e.How = EndSaving
		case "nosave":
			e.How = EndDiscarding
		case "now":
			e.Now = true
		case "force":
			e.Force = true
		}
	}
	return e
}

// Shutdown is the state of a requested end. The zero value has none.
type Shutdown struct {
	mu     sync.Mutex
	stage  stage
	end    End
	until  int64 // when waiting for replicas ends, on the monotonic clock; 0: no waiting
	failed []func()
}

type stage uint8

const (
	notAsked stage = iota
	asked
	waitsForReplicas
	final
)

// Ask requests the end. failed, which may be nil, is called if the server continues after all. If an end was requested before,
// that request stays, and first is false.
func (x *Shutdown) Ask(end End, failed func()) (first bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if failed != nil {
		x.failed = append(x.failed, failed)
	}
	if x.stage != notAsked {
		return false
	}
	x.stage, x.end = asked, end
	return true
}

// Begin returns the requested end. ok is false if it was aborted. untilMicros returns when waiting for replicas ends; 0: no
// waiting.
func (x *Shutdown) Begin(untilMicros func(End) int64) (end End, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stage != asked {
		return End{}, false
	}
	x.stage, x.until = waitsForReplicas, untilMicros(x.end)
	return x.end, true
}

// Until is when waiting for replicas ends, on the monotonic clock; 0: no waiting.
func (x *Shutdown) Until() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.until
}

// Finish makes the end final, unless it was aborted.
func (x *Shutdown) Finish() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stage != waitsForReplicas {
		return false
	}
	x.stage, x.until = final, 0
	return true
}

// Waits tells whether the end waits for replicas, or soon will.
func (x *Shutdown) Waits() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.stage == asked || x.stage == waitsForReplicas
}

// Abort aborts the end. It reports false if none was requested, or if it is final.
func (x *Shutdown) Abort() bool {
	x.mu.Lock()
	if x.stage != asked && x.stage != waitsForReplicas {
		x.mu.Unlock()
		return false
	}
	x.over()
	return true
}

// Fail is called when the end has failed and the server continues.
func (x *Shutdown) Fail() {
	x.mu.Lock()
	x.over()
}

// over resets the state and unlocks, then notifies all who wait for the end.
func (x *Shutdown) over() {
	failed := x.failed
	x.stage, x.until, x.failed = notAsked, 0, nil
	x.mu.Unlock()
	for _, fn := range failed {
		fn()
	}
}
