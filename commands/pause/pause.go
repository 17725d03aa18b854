// Package pause is CLIENT PAUSE: commands are held back, with the connections that sent them, until a time or until CLIENT
// UNPAUSE.
package pause

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/resp"
)

// Pause is the pause of the server. The zero value is none.
type Pause struct {
	until atomic.Int64 // 0 = no pause; what each command looks at

	mu         sync.Mutex
	writesOnly bool
	held       []*resp.Conn
	timer      *engine.Timer
}

// Begin pauses until a time in Unix microseconds: all commands, or those that
// may write, and nothing expires meanwhile. A pause under way is never made shorter, and one of all commands
// stays that, as in Redis.
func (p *Pause) Begin(ks *engine.Keyspace, untilMicros int64, writesOnly bool) {
	p.mu.Lock()
	was := p.until.Load()
	if was == 0 || !writesOnly {
		p.writesOnly = writesOnly
	}
	if untilMicros > was {
		if p.timer != nil {
			ks.Sched.Cancel(p.timer)
		}
		p.until.Store(untilMicros)
		p.timer = ks.Sched.At(untilMicros, func(int64) { p.end(ks, untilMicros) })
		ks.PauseExpiry(true)
	}
	p.mu.Unlock()
}

// End lets everybody go on.
func (p *Pause) End(ks *engine.Keyspace) {
	p.mu.Lock()
	if p.timer != nil {
		ks.Sched.Cancel(p.timer)
	}
	p.mu.Unlock()
	p.end(ks, 0)
}

// end is End for the pause that ends at until; 0 is any.
func (p *Pause) end(ks *engine.Keyspace, until int64) {
	p.mu.Lock()
	if until != 0 && p.until.Load() != until {
		p.mu.Unlock()
		return // it was prolonged meanwhile
	}
	p.until.Store(0)
	p.timer = nil
	held := p.held
	p.held = nil
	ks.PauseExpiry(false)
	p.mu.Unlock()
	for _, conn := range held {
		conn.Post(conn.Resume)
	}
}

// On tells whether there is a pause.
func (p *Pause) On() bool { return p.until.Load() != 0 }

// State is when the pause ends, in Unix microseconds (0 = there is none), and
// whether it is for writes alone.
func (p *Pause) State() (untilMicros int64, writesOnly bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.until.Load(), p.writesOnly
}

// Guard is the lock of all this, for who looks for locks that were left.
func (p *Pause) Guard() *sync.Mutex { return &p.mu }

// Held is how many connections are held back.
func (p *Pause) Held() int { p.mu.Lock(); defer p.mu.Unlock(); return len(p.held) }

// Hold notes a connection whose command must wait, and which is resumed when the
// pause ends. It reports false if the command need not wait.
func (p *Pause) Hold(conn *resp.Conn, mayWrite bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until.Load() == 0 || p.writesOnly && !mayWrite {
		return false
	}
	p.held = append(p.held, conn)
	return true
}

// Leave forgets a connection that is gone.
func (p *Pause) Leave(conn *resp.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = slices.DeleteFunc(p.held, func(x *resp.Conn) bool { return x == conn })
}
