package replication

// WAIT and WAITAOF: waiting until replicas have a connection's writes.

import (
	"math"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/command"
)

// waiting is a client that waits for replicas.
type waiting struct {
	wait   *command.Wait
	enough func() bool
	reply  func(w command.Replier)
}

// Have counts the replicas that have acknowledged an offset, or, with synced, have it on disk.
func (n *Node) Have(offset journal.LSN, synced bool) (there int64) {
	for _, r := range n.all() {
		at := r.acked.Load()
		if synced {
			at = r.synced.Load()
		}
		if r.isOnline() && at >= int64(offset) {
			there++
		}
	}
	return there
}

// Wait blocks the session until enough reports true or the time is over; 0: no limit. It asks the replicas for an
// acknowledgement.
func (n *Node) Wait(c *command.Ctx, timeoutMillis int64, enough func() bool, reply func(w command.Replier)) *command.Wait {
	deadline := int64(0)
	if timeoutMillis > 0 {
		deadline = c.Now + min(timeoutMillis, (math.MaxInt64-c.Now)/1000)*1000
	}
	w := c.NewWait(nil, engine.KindNone, deadline)
	w.Lapsed = reply
	c.Block(w)
	n.mu.Lock()
	n.waits = append(n.waits, &waiting{w, enough, reply})
	n.mu.Unlock()
	if n.asked.CompareAndSwap(false, true) { // once for all commands of this turn
		c.Session.Conn.Post(func() {
			n.asked.Store(false)
			n.send(getAckCommand)
			n.Look()
		})
	}
	return w
}

// Look serves the waits whose enough reports true, and removes those that have ended.
func (n *Node) Look() {
	n.mu.Lock()
	if len(n.waits) == 0 {
		n.mu.Unlock()
		return
	}
	waits := append([]*waiting(nil), n.waits...)
	n.mu.Unlock()
	over := map[*waiting]bool{}
	for _, x := range waits {
		if x.wait.Gone() {
			over[x] = true
		} else if x.enough() {
			x.wait.Unblock(func(w *resp.Writer) { x.reply(w) }, false)
			over[x] = true
		}
	}
	if len(over) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	rest := n.waits[:0]
	for _, x := range n.waits {
		if !over[x] {
			rest = append(rest, x)
		}
	}
	clear(n.waits[len(rest):])
	n.waits = rest
}
