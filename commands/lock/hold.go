package lock

// What holders do with their locks: LK.RELEASE, LK.TOUCH, LK.GUARD; and how a session learns that it lost a lock.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/lock"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/command"
)

// find finds a lock that is going to be changed. A plain lock cannot be changed here, so it counts as none.
func find(c *command.Ctx, key []byte, work *lock.Lock) (e engine.Entry, l *lock.Lock, ok bool) {
	switch e = c.GetWrite(key); e.Kind() {
	case engine.KindLock:
		return e, e.Lock(work), true
	case engine.KindNone, engine.KindString:
		return engine.Entry{}, nil, true
	}
	c.WrongType()
	return engine.Entry{}, nil, false
}

func (f *family) releaseRow() *command.Command {
	return &command.Command{
		Name: "lk.release", Arity: -3, Group: command.GroupLock, Since: since,
		Flags:      command.Write | command.Fast,
		Keys:       []command.KeySpec{command.Key(1, writeKey|command.Delete)},
		Summary:    "Lets go of a lock. Who is first in line has it then.",
		Complexity: "O(1) for a mutex; O(log N) in the holders of others",
		Syntax:     "key owner:string [fence:integer]",
		Run:        release,
	}
}

func release(c *command.Ctx) {
	key := c.Args[1]
	a := c.Cursor(2)
	owner, fence := readOwner(&a), int64(0)
	if a.More() {
		if fence = a.Int(); a.More() {
			a.Syntax()
		}
	}
	if a.Failed(c) {
		return
	}
	fenced := len(c.Args) > 3
	var work lock.Lock
	e, l, ok := find(c, key, &work)
	if !ok {
		return
	}
	if l == nil || fenced && fence == 0 || !l.Release(owner, fence) {
		c.Int(0)
		return
	}
	removed := c.PutLock(key, e, l)
	c.Changed(key, engine.EventLock, "lk.release")
	if removed {
		c.Notify(engine.EventGeneric, "del", key)
	}
	c.Int(1)
}

func (f *family) touchRow() *command.Command {
	return &command.Command{
		Name: "lk.touch", Arity: -4, Group: command.GroupLock, Since: since,
		Flags:      command.Write | command.Fast,
		Keys:       []command.KeySpec{command.KeyRange(3, -1, 1, writeKey)},
		Summary:    "Renews an owner's leases.",
		Complexity: "O(1) for each mutex; O(log N) in the holders of others",
		Syntax:     "owner:string ms:integer key...",
		Run:        touch,
	}
}

func touch(c *command.Ctx) {
	a := c.Cursor(1)
	owner := readOwner(&a)
	lease := a.IntRange(0, leaseMillisMax, errLease) * 1000
	if a.Failed(c) {
		return
	}
	n := int64(0)
	for _, key := range a.Rest() {
		e := c.GetWrite(key)
		if e.Kind() != engine.KindLock {
			continue // nothing that this owner could hold
		}
		var work lock.Lock
		l := e.Lock(&work)
		h := l.Touch(owner, c.Now, until(c.Now, lease), told(c.Session, lease))
		if h == nil {
			continue
		}
		n++
		if lease == 0 {
			c.Session.Bonds.Add(key)
		}
		logHold(c, key, l.Mode, l.Permits, *h)
		c.PutLock(key, e, l)
		c.Lessened(key, engine.EventLock, "lk.touch")
	}
	c.Int(n)
}

func (f *family) guardRow() *command.Command {
	return &command.Command{
		Name: "lk.guard", Arity: 3, Group: command.GroupLock, Since: since,
		Flags:      command.ReadOnly | command.Fast,
		Keys:       []command.KeySpec{command.Key(1, command.RO|command.Access)},
		Summary:    "Makes sure that a lock is still held by the grant of a fence. In MULTI nothing is done if it is not.",
		Complexity: "O(1) for a mutex; O(log N) in the holders of others",
		Syntax:     "key fence:integer",
		Guard:      guard,
		Run: func(c *command.Ctx) {
			if text := guard(c, c.Args); text != "" {
				c.Error(text)
				return
			}
			c.OK()
		},
	}
}

// guard returns an error text if the grant of a fence does not hold the lock.
func guard(c *command.Ctx, args [][]byte) (text string) {
	a := command.ArgsOf(args[2:]...)
	fence := a.Int()
	if a.Err() != "" {
		return a.Err()
	}
	e := c.Get(args[1])
	switch e.Kind() {
	case engine.KindLock:
		var work lock.Lock
		if e.Lock(&work).Guards(fence, c.Now) {
			return ""
		}
	case engine.KindNone, engine.KindString:
	default:
		return command.ErrWrongType
	}
	return errFenced
}

// tell tells a session that it lost a lock, if the session exists and its protocol has pushes. The key is locked.
func (f *family) tell(key []byte, session, fence int64) {
	f.lost.Add(1)
	sess := f.s.Clients.Get(session)
	if sess == nil || sess.Conn == nil || sess.Proto() != 3 {
		return
	}
	out := resp.Writer{Proto: 3}
	out.Push(3)
	out.BulkString("lklost")
	out.Bulk(key)
	out.Int(fence)
	sess.Conn.Post(func() {
		if !sess.Conn.Gone() {
			sess.Conn.Out.Raw(out.Buf)
		}
	})
}
