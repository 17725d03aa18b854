// Package pause, internal to the server, holds commands back, with the connections that sent them:
// CLIENT PAUSE does, and the server while it waits for replicas, before it ends or changes places
// with one.
package pause

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/resp"
)

// Purpose is what a pause is for. Each has one of its own, which ends for itself.
type Purpose int

// The purposes.
const (
	ByClient Purpose = iota
	ForShutdown
	ForFailover
	purposes
)

// String is how INFO calls it.
func (p Purpose) String() string {
	return [...]string{"client_pause", "shutdown_in_progress", "failover_in_progress"}[p]
}

// Pause is what is paused in the server, for all purposes. The zero value is nothing.
type Pause struct {
	until atomic.Int64 // when the last one ends, 0 = there is none; what each command looks at

	mu    sync.Mutex
	parts [purposes]part
	held  []*resp.Conn
	timer *engine.Timer // for the first that ends
}

// part is the pause for one purpose.
type part struct {
	until      int64 // in Unix microseconds, 0 = there is none
	writesOnly bool
}

// Begin pauses until a time in Unix microseconds: all commands, or those that may write, and nothing expires meanwhile. A
// pause under way is never made shorter, and one of all commands stays that, as in Redis.
func (p *Pause) Begin(ks *engine.Keyspace, purpose Purpose, untilMicros int64, writesOnly bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := &p.parts[purpose]
	x.writesOnly = writesOnly && (x.until == 0 || x.writesOnly)
	x.until = max(x.until, untilMicros)
	p.settle(ks)
}

// End ends the pause for a purpose.
func (p *Pause) End(ks *engine.Keyspace, purpose Purpose) {
	p.mu.Lock()
	p.parts[purpose] = part{}
	p.ended(ks)
}

// ended takes over that a part has ended, and unlocks. All connections go on: who is still to wait is held back again.
func (p *Pause) ended(ks *engine.Keyspace) {
	p.settle(ks)
	held := p.held
	p.held = nil
	p.mu.Unlock()
	for _, conn := range held {
		conn.Post(conn.Resume)
	}
}

// lapse ends what ends at a time.
func (p *Pause) lapse(ks *engine.Keyspace, now int64) {
	p.mu.Lock()
	for i := range p.parts {
		if p.parts[i].until <= now {
			p.parts[i] = part{}
		}
	}
	p.ended(ks)
}

// Moved takes over that the clock was set back, by so many microseconds: a pause does not last longer for that.
func (p *Pause) Moved(ks *engine.Keyspace, back int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.parts {
		if x := &p.parts[i]; x.until != 0 && x.until != math.MaxInt64 {
			x.until = max(x.until-back, 1)
		}
	}
	p.settle(ks)
}

// settle takes over what the parts say.
func (p *Pause) settle(ks *engine.Keyspace) {
	first, last := int64(0), int64(0)
	for _, x := range p.parts {
		if x.until != 0 && (first == 0 || x.until < first) {
			first = x.until
		}
		last = max(last, x.until)
	}
	if p.timer != nil {
		ks.Sched.Cancel(p.timer)
		p.timer = nil
	}
	if first != 0 {
		p.timer = ks.Sched.At(first, func(int64) { p.lapse(ks, first) })
	}
	p.until.Store(last)
	ks.PauseExpiry(last != 0)
}

// On tells whether there is a pause.
func (p *Pause) On() bool { return p.until.Load() != 0 }

// State is when the pause ends, in Unix microseconds (0 = there is none), what it is for, and whether it is for writes alone.
// Of several it is the longest of those that hold the most back.
func (p *Pause) State() (untilMicros int64, purpose Purpose, writesOnly bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	writesOnly = true
	for i, x := range p.parts {
		if x.until != 0 && (writesOnly && !x.writesOnly || writesOnly == x.writesOnly && x.until > untilMicros) {
			untilMicros, purpose, writesOnly = x.until, Purpose(i), x.writesOnly
		}
	}
	return untilMicros, purpose, writesOnly
}

// Guard is the lock of all this, for who looks for locks that were left.
func (p *Pause) Guard() *sync.Mutex { return &p.mu }

// Held is how many connections are held back.
func (p *Pause) Held() int { p.mu.Lock(); defer p.mu.Unlock(); return len(p.held) }

// Hold notes a connection whose command must wait, and which is resumed when a pause ends. It reports false if the command
// need not wait.
func (p *Pause) Hold(conn *resp.Conn, mayWrite bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.parts {
		if x.until != 0 && (mayWrite || !x.writesOnly) {
			p.held = append(p.held, conn)
			return true
		}
	}
	return false
}

// Leave forgets a connection that is gone.
func (p *Pause) Leave(conn *resp.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = slices.DeleteFunc(p.held, func(x *resp.Conn) bool { return x == conn })
}
