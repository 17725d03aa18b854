package command

// The end of the server: SHUTDOWN and signals ask for it. Before it is final it may be taken back, and it may fail; then
// all who wait for it are told.

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

// End is what SHUTDOWN asks for.
type End struct {
	How   Ending
	Now   bool // does not wait for replicas that are behind
	Force bool // ends although what is to be kept cannot be written
}

// ParseEnd reads the words of SHUTDOWN and of shutdown-on-sigterm.
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

// Shutdown is the end that was asked for. The zero value is none.
type Shutdown struct {
	mu     sync.Mutex
	stage  stage
	end    End
	until  int64 // on the monotonic clock: until then replicas are waited for, 0 if they are not
	failed []func()
}

type stage uint8

const (
	notAsked stage = iota
	asked
	waitsForReplicas
	final
)

// Ask asks for the end. failed, which may be nil, is called if the server goes on after all. Where an end was asked for
// already, first is false: that one counts.
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

// Begin returns what was asked for; ok is false if that was taken back. Replicas are waited for until a time, unless it is 0.
func (x *Shutdown) Begin(untilMicros func(End) int64) (end End, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stage != asked {
		return End{}, false
	}
	x.stage, x.until = waitsForReplicas, untilMicros(x.end)
	return x.end, true
}

// Until is until when replicas are waited for, on the monotonic clock, 0 if they are not.
func (x *Shutdown) Until() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.until
}

// Finish makes the end final, unless it was taken back.
func (x *Shutdown) Finish() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stage != waitsForReplicas {
		return false
	}
	x.stage, x.until = final, 0
	return true
}

// Waits tells whether replicas are waited for, or soon will be.
func (x *Shutdown) Waits() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.stage == asked || x.stage == waitsForReplicas
}

// Abort takes it back. It reports false if nothing was asked for, or it is final.
func (x *Shutdown) Abort() bool {
	x.mu.Lock()
	if x.stage != asked && x.stage != waitsForReplicas {
		x.mu.Unlock()
		return false
	}
	x.over()
	return true
}

// Fail says that the server goes on.
func (x *Shutdown) Fail() {
	x.mu.Lock()
	x.over()
}

// over tells all who wait for the end that there is none, and unlocks.
func (x *Shutdown) over() {
	failed := x.failed
	x.stage, x.until, x.failed = notAsked, 0, nil
	x.mu.Unlock()
	for _, fn := range failed {
		fn()
	}
}
