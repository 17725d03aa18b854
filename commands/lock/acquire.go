package lock

// LK.ACQUIRE, and waiting for a lock.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/lock"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/command"
)

func (f *family) acquireRow() *command.Command {
	return &command.Command{
		Name: "lk.acquire", Arity: -4, Group: command.GroupLock, Since: since,
		Flags:      command.Write | command.DenyOOM | command.Fast | command.Blocking,
		Keys:       []command.KeySpec{command.Key(1, writeKey|command.Insert)},
		Summary:    "Takes a lock for an owner, renews its lease, or waits in line for it.",
		Complexity: "O(1) for a mutex; O(log N) in the holders of others",
		Syntax:     "key owner:string ms:integer [mode=(SHARED | permits={OF n:integer [TAKE k:integer]})] [BLOCK ms:integer] [DELAY ms:integer]",
		Spares:     renews,
		Run:        f.acquire,
	}
}

// renews reports whether the owner holds the lock already.
func renews(c *command.Ctx, args [][]byte) (held bool) {
	if len(args) < 3 {
		return false
	}
	look := func(r *engine.Reader) {
		if e := r.Find(args[1]); e.Kind() == engine.KindLock {
			var work lock.Lock
			held = e.Lock(&work).Held(args[2], c.Now) != nil
		}
	}
	if c.Held.Covers(args[1]) {
		look(c.Reader())
		return held
	}
	c.KS.TryInspect(engine.LocksOf(args[1]), func(r *engine.Reader) {
		r.DB = c.DB
		look(r)
	})
	return held
}

// asking is what LK.ACQUIRE's arguments say.
type asking struct {
	f *family
	lock.Ask
	lease int64 // microseconds, 0: as long as the connection lives
	block int64 // ms, 0 for ever, -1 not at all
	// served is set if the line serves the call, which is then first in it.
	served bool
}

// answer is what LK.ACQUIRE replies.
type answer struct {
	granted bool
	fence   int64
	left    int64 // microseconds, -1 unknown
	ahead   int
}

// readAsking reads the arguments from the owner on.
func (f *family) readAsking(a *command.Args) (q asking) {
	q = asking{f: f, block: -1}
	q.Take = 1
	q.Owner = readOwner(a)
	q.lease = a.IntRange(0, leaseMillisMax, errLease) * 1000
	delayed := false
	for a.More() {
		switch {
		case q.Mode != lock.Shared && a.Is("SHARED"):
			if q.Mode != lock.Alone {
				a.Fail(errShared)
			}
			q.Mode = lock.Shared
		case q.Mode != lock.Permits && a.IsWith("OF", 1):
			if q.Mode != lock.Alone {
				a.Fail(errShared)
			}
			q.Mode, q.Permits = lock.Permits, a.IntRange(1, lock.PermitsMax, errPermits)
			if a.IsWith("TAKE", 1) {
				q.Take = a.IntRange(1, q.Permits, errTake)
			}
		case q.block < 0 && a.IsWith("BLOCK", 1):
			if q.block = a.Int(); a.Err() == "" && q.block < 0 {
				a.Fail(command.ErrTimeoutNegative)
			} else if q.block > blockMillisMax {
				a.Fail(command.ErrTimeoutRange)
			}
		case !delayed && a.IsWith("DELAY", 1):
			delayed = true
			q.DelayMicros = a.IntRange(0, leaseMillisMax, errDelay) * 1000
		default:
			a.Syntax()
		}
	}
	return q
}

func (f *family) acquire(c *command.Ctx) {
	a := c.Cursor(2)
	q := f.readAsking(&a)
	if a.Failed(c) {
		return
	}
	waits := q.block >= 0 && c.CanBlock()
	got, text := q.decide(c, c.Args[1])
	switch {
	case text != "":
		c.Error(text)
	case !got.granted && waits:
		q.wait(c)
	default:
		f.s.Prefixes.Lock(c.Args[1], c.Session.ID, got.granted)
		got.reply(c.Writer)
	}
}

// decide decides with the entry under a key, and stores the outcome. A text is an error; nothing has changed then.
func (q *asking) decide(c *command.Ctx, key []byte) (got answer, text string) {
	var work lock.Lock
	l := &work
	e := c.GetWrite(key)
	switch e.Kind() {
	case engine.KindNone:
	case engine.KindLock:
		l = e.Lock(&work)
	case engine.KindString: // a plain lock, as other lock libraries set it
		got.left = -1
		if at := e.Deadline(); at != 0 {
			got.left = (at+1)*1000 - c.Now // it lives through its last millisecond
		}
		got.ahead = c.WaitingForLock(key)
		return got, ""
	default:
		return got, command.ErrWrongType
	}
	line := c.WaitingForLock(key)
	q.Behind = line > 0 && !q.served
	q.UntilMicros, q.Session = until(c.Now, q.lease), told(c.Session, q.lease)
	was := l.Mode
	fence, renewed, err := l.Acquire(&q.Ask, c.Now, func() int64 { return c.KS.Fences.Next(c.KS.Clock.ForNumbers(c.Now)) })
	if err != nil {
		if err != lock.ErrRefused {
			return got, textOf(err)
		}
		fence, at := l.Freed(&q.Ask)
		got = answer{fence: fence, left: -1, ahead: line}
		if at != 0 {
			got.left = max(at-c.Now, 0)
		}
		return got, ""
	}
	if q.Session != 0 && q.lease == 0 {
		c.Session.Bonds.Add(key)
	}
	c.PutLock(key, e, l)
	logHold(c, key, l.Mode, l.Permits, lock.Holder{Owner: q.Owner, Fence: fence, UntilMicros: q.UntilMicros, DelayMicros: q.DelayMicros, Take: q.Take})
	if renewed && was != q.Mode {
		c.Changed(key, engine.EventLock, "lk.acquire") // readers may join
	} else {
		c.Lessened(key, engine.EventLock, "lk.acquire")
	}
	got = answer{granted: true, fence: fence, left: q.lease}
	if q.lease == 0 {
		got.left = -1
	}
	return got, ""
}

// reply appends the four integers.
func (x answer) reply(w command.Replier) {
	granted, left := int64(0), x.left
	if x.granted {
		granted = 1
	}
	if left > 0 {
		left = ceilMillis(left)
	}
	w.Array(4)
	w.Int(granted)
	w.Int(x.fence)
	w.Int(left)
	w.Int(int64(x.ahead))
}

// wait puts the caller in line. It reads the request again from the wait's copy of the arguments.
func (q *asking) wait(c *command.Ctx) {
	deadline := int64(0)
	if q.block > 0 {
		deadline = c.Now + q.block*1000
	}
	kept := new(asking)
	w := c.NewWait(kept, engine.KindLock, deadline)
	a := command.ArgsOf(w.Args[2:]...)
	*kept = q.f.readAsking(&a)
	kept.served = true
	w.Keys, w.Name = w.Args[1:2], string(kept.Owner)
	w.Lapsed = func(out *resp.Writer) { kept.lapsed(out, w) }
	c.Block(w)
}

// Try repeats the request of the first waiter in line, or of one whose owner was just granted the lock by another call.
func (q *asking) Try(c *command.Ctx, key []byte) (engine.Served, int64) {
	got, text := q.decide(c, key)
	switch {
	case text != "":
		c.Error(text)
		return engine.ServedDone, 0
	case !got.granted:
		return engine.ServedHold, 0 // an event serves the line again, so no time is needed
	}
	q.f.s.Prefixes.Lock(key, c.Session.ID, true)
	got.reply(c.Writer)
	return engine.ServedSame, 0
}

// lapsed replies to a caller that has left the line without the lock: the lock's present state. No key is locked here.
func (q *asking) lapsed(out *resp.Writer, w *command.Wait) {
	got := answer{left: -1}
	ks, key := w.KS, w.Keys[0]
	ks.TryUpdate(engine.LocksOf(key), func(v *engine.View) { // leases may have ended
		v.DB, v.NoTouch = w.DB, true
		got.ahead = v.WaitingForLock(key)
		if e := v.Peek(key); e.Kind() == engine.KindLock {
			var work lock.Lock
			fence, at := e.Lock(&work).Freed(&q.Ask)
			if got.fence = fence; at != 0 {
				got.left = max(at-v.Now, 0)
			}
		} else if at := e.Deadline(); at != 0 {
			got.left = (at+1)*1000 - v.Now
		}
	})
	q.f.s.Prefixes.Lock(key, 0, false)
	got.reply(out)
}
