package lock

// The effects of locks: who holds a lock since when, and who lost it. Journals store them as LK.APPLY, which clients cannot
// call. LK.RELEASE is logged as it is. Times are in microseconds.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/lock"
	"github.com/limitkv/limitkv/server/command"
)

// The words of LK.APPLY.
const (
	wordHold = "HOLD" // owner fence until delay mode permits take
	wordLost = "LOST" // fence...
)

var (
	wordApply     = []byte("LK.APPLY")
	wordLostBytes = []byte(wordLost)
)

// logHold logs a grant or a renewal. The running command itself is then not logged.
func logHold(c *command.Ctx, key []byte, mode lock.Mode, permits int64, h lock.Holder) {
	c.NoEffect() // only the effect that follows
	if !c.Logging() {
		return
	}
	w := c.Words(11)
	w.Bytes(wordApply)
	w.Bytes(key)
	w.Int(c.Now)
	w.Text(wordHold)
	w.Bytes(h.Owner)
	w.Int(h.Fence)
	w.Int(h.UntilMicros)
	w.Int(h.DelayMicros)
	w.Int(int64(mode))
	w.Int(permits)
	w.Int(h.Take)
	w.End()
}

// logLost logs what the keyspace did by itself: leases or a delay ended.
func (f *family) logLost(v *engine.View, key []byte, lost []lock.Holder) {
	w := v.Words(4 + len(lost))
	w.Bytes(wordApply)
	w.Bytes(key)
	w.Int(v.Now)
	w.Bytes(wordLostBytes)
	for i := range lost {
		w.Int(lost[i].Fence)
	}
	w.End()
}

func (f *family) applyRow() *command.Command {
	return &command.Command{
		Name: "lk.apply", Arity: -4, Group: command.GroupLock, Since: since,
		Flags:      command.Write | command.Applied,
		Keys:       []command.KeySpec{command.Key(1, writeKey)},
		Summary:    "Does again what a journal tells of a lock.",
		Complexity: "O(log N) for each holder",
		Syntax:     "key unix-us:integer word:string argument:string...",
		Run:        apply,
	}
}

// errApply is the error for arguments that no journal of this server contains.
const errApply = "ERR this is no effect of a lock"

func apply(c *command.Ctx) {
	key := c.Args[1]
	a := c.Cursor(2)
	now, word := a.IntRange(0, lock.TimeMax, errApply), string(a.Bytes())
	if a.Failed(c) {
		return
	}
	var work lock.Lock
	l := &work
	e, ok := c.LookupWrite(key, engine.KindLock)
	if !ok {
		return
	}
	if e.Ok() {
		l = e.Lock(&work)
	}
	switch {
	case word == wordHold:
		h := lock.Holder{Owner: a.Bytes(), Fence: a.Int(), UntilMicros: a.Int(), DelayMicros: a.Int()}
		mode, permits := lock.Mode(a.IntRange(0, int64(lock.Permits), errApply)), a.Int()
		h.Take = a.Int()
		if a.Err() == "" && !l.Put(h, mode, permits) {
			a.Fail(errApply)
		}
		if a.Err() == "" {
			c.KS.Fences.After(h.Fence)
		}
	case word == wordLost && e.Ok():
		for a.More() {
			if h := l.ByFence(a.Int()); h != nil {
				l.Lose(h, now)
			}
		}
		l.Open(now)
	default:
		a.Fail(errApply)
	}
	if a.Failed(c) {
		return
	}
	c.PutLock(key, e, l)
	c.Changed(key, engine.EventLock, "lk.apply")
	c.OK()
}

func (f *family) fenceRow() *command.Command {
	return &command.Command{
		Name: "lk.fence", Arity: 2, Group: command.GroupLock, Since: since,
		Flags:      command.Write | command.Fast | command.Applied,
		Summary:    "Has the fences of grants be greater than one that a journal tells of.",
		Complexity: "O(1)",
		Syntax:     "fence:integer",
		Run: func(c *command.Ctx) {
			a := c.Cursor(1)
			fence := a.IntRange(0, lock.FenceMax, errApply)
			if a.Failed(c) {
				return
			}
			c.KS.Fences.After(fence)
			c.OK()
		},
	}
}
