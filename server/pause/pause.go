// Package pause, internal to the server, makes commands wait, by pausing the connections that sent them. CLIENT PAUSE does so,
// and the server while it waits for replicas before its end or a failover.
package pause

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/resp"
)

// Purpose is the reason of a pause. The pauses of different purposes are independent.
type Purpose int

// The purposes.
const (
	ByClient Purpose = iota
	ForShutdown
	ForFailover
	purposes
)

// String returns the purpose as INFO names it.
func (p Purpose) String() string {
	return [...]string{"client_pause", "shutdown_in_progress", "failover_in_progress"}[p]
}

// Pause holds the pauses for all purposes. The zero value has none.
type Pause struct {
	until atomic.Int64 // when the last pause ends, 0: there is none; every command reads it

	mu    sync.Mutex
	parts [purposes]part
	held  []*resp.Conn
	timer *engine.Timer // for the first pause that ends
}

// part is the pause for one purpose.
type part struct {
	until      int64 // in Unix microseconds, 0: there is none
	writesOnly bool
}

// Begin pauses all commands, or only those that may write, until a time in Unix microseconds. No key expires meanwhile. It
// never shortens a pause, and never changes one of all commands to one of writes, as in Redis.
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

// ended applies the end of a part, and unlocks. It resumes all connections; commands that must still wait are held again.
func (p *Pause) ended(ks *engine.Keyspace) {
	p.settle(ks)
	held := p.held
	p.held = nil
	p.mu.Unlock()
	for _, conn := range held {
		conn.Post(conn.Resume)
	}
}

// lapse ends the pauses whose time is over.
func (p *Pause) lapse(ks *engine.Keyspace, now int64) {
	p.mu.Lock()
	for i := range p.parts {
		if p.parts[i].until <= now {
			p.parts[i] = part{}
		}
	}
	p.ended(ks)
}

// Moved is called after the clock was set back by so many microseconds. It makes pauses end earlier by as much.
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

// settle updates the timer and the time of the end from the parts. The caller holds mu.
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

// State returns when the pause ends, in Unix microseconds (0: there is none), its purpose, and whether it pauses writes only.
// If there are several, it returns the longest pause of all commands, or else of writes.
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

// Guard is the mutex, for the check that no lock was left locked.
func (p *Pause) Guard() *sync.Mutex { return &p.mu }

// Held returns how many connections are paused.
func (p *Pause) Held() int { p.mu.Lock(); defer p.mu.Unlock(); return len(p.held) }

// Hold adds a connection whose command must wait. It is resumed when a pause ends. Hold reports false if the command need not
// wait.
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

// Leave removes a closed connection.
func (p *Pause) Leave(conn *resp.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = slices.DeleteFunc(p.held, func(x *resp.Conn) bool { return x == conn })
}
