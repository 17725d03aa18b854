package lock

// LK.INFO.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/lock"
	"github.com/limitkv/limitkv/server/command"
)

var infoRow = &command.Command{
	Name: "lk.info", Arity: 2, Group: command.GroupLock, Since: since,
	Flags:      command.ReadOnly,
	Keys:       []command.KeySpec{command.Key(1, command.RO|command.Access)},
	Summary:    "Shows how a lock stands: who holds it, with which fence and for how long, and who waits.",
	Complexity: "O(N) in the holders and waiters that are shown, at most 100 of each",
	Syntax:     "key",
	Run:        info,
}

// plainMode is the mode of a lock that is a string.
const plainMode = "plain"

func info(c *command.Ctx) {
	key := c.Args[1]
	var work lock.Lock
	l, mode, e := &work, "free", c.Get(key)
	switch e.Kind() {
	case engine.KindNone:
	case engine.KindString:
		mode = plainMode
	case engine.KindLock:
		l = e.Lock(&work)
		if mode = l.Mode.String(); l.Len() == 0 {
			mode = "closed"
		}
	default:
		c.WrongType()
		return
	}
	c.Map(8)
	c.BulkString("mode")
	c.BulkString(mode)
	c.BulkString("permits")
	c.Int(l.Permits)
	c.BulkString("taken")
	c.Int(l.Taken)
	c.BulkString("closed")
	c.Int(left(l.ClosedMicros, c.Now))
	c.BulkString("held")
	if mode == plainMode {
		c.Int(1)
	} else {
		c.Int(int64(l.Len()))
	}
	c.BulkString("holders")
	holders(c, e, l, mode)
	c.BulkString("waiters")
	c.Int(int64(c.WaitingForLock(key)))
	c.BulkString("line")
	line(c, key)
}

// left is how long it is until a time in ms, 0 if it has come.
func left(at, now int64) int64 { return ceilMillis(max(at-now, 0)) }

// holders replies the name, fence, lease in ms and permits of each holder. A lease of -1 has no end, or lasts as long as a
// connection.
func holders(c *command.Ctx, e engine.Entry, l *lock.Lock, mode string) {
	if mode == plainMode {
		ms := int64(-1)
		if at := e.Deadline(); at != 0 {
			ms = left((at+1)*1000, c.Now)
		}
		c.Array(1)
		holder(c, e.Bytes(nil), 0, ms, 1)
		return
	}
	n := min(l.Len(), lineShown)
	c.Array(n)
	l.Each(func(h lock.Holder) bool {
		ms := int64(-1)
		if !h.Bound() {
			ms = left(h.UntilMicros, c.Now)
		}
		holder(c, h.Owner, h.Fence, ms, h.Take)
		n--
		return n > 0
	})
}

func holder(c *command.Ctx, owner []byte, fence, ms, take int64) {
	c.Array(4)
	c.Bulk(owner)
	c.Int(fence)
	c.Int(ms)
	c.Int(take)
}

// line replies for each waiter its name, its mode, how long it has waited in ms, and its permits.
func line(c *command.Ctx, key []byte) {
	n := min(c.WaitingForLock(key), lineShown)
	c.Array(n)
	c.Line(key, func(who engine.Asker) bool {
		w, ok := who.(*command.Wait)
		if !ok {
			return true
		}
		q, ok := w.Trier.(*asking)
		if !ok {
			return true
		}
		c.Array(4)
		c.Bulk(q.Owner)
		c.BulkString(q.Mode.String())
		c.Int((c.Now - w.Since) / 1000)
		c.Int(q.Take)
		n--
		return n > 0
	})
}
