package delayqueue

// DQ.SET.

import (
	"bytes"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
)

func (f *family) setRow() *command.Command {
	dead := command.KeySpec{Flags: command.RW | command.Insert, Keyword: "DEAD", StartFrom: 2, Step: 1}
	return &command.Command{
		Name: "dq.set", Arity: -4, Group: command.GroupDelayQueue, Since: since,
		Flags:      command.Write | command.DenyOOM | command.Fast,
		ACL:        acl,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Update|command.Insert), dead},
		Summary:    "Sets a delay queue's defaults, which keep it when it is empty.",
		Complexity: "O(1)",
		Syntax:     "key [LEASE ms:integer] [TRIES n:integer] [DEAD dead:key@2] [backoff={BACKOFF ms:integer [MAX max:integer]}]",
		Run:        f.set,
	}
}

// readSettings reads the options over what is set already.
func readSettings(a *command.Args, s delayqueue.Settings) (delayqueue.Settings, string) {
	var lease, tries, dead, backoff bool
	for a.More() {
		switch {
		case !lease && a.IsWith("LEASE", 1):
			lease = true
			s.LeaseMicros = a.IntRange(0, delayMillisMax, errLease) * 1000
		case !tries && a.IsWith("TRIES", 1):
			tries = true
			s.Tries = a.IntRange(0, triesMax, errTries)
		case !dead && a.IsWith("DEAD", 1):
			dead = true
			s.Dead = string(a.Bytes())
		case !backoff && a.IsWith("BACKOFF", 1):
			backoff = true
			s.BackoffMicros = a.IntRange(0, delayMillisMax, errBackoff) * 1000
			s.BackoffMaxMicros = max(s.BackoffMicros, backoffMillisMax*1000)
			if a.IsWith("MAX", 1) {
				s.BackoffMaxMicros = a.IntRange(0, delayMillisMax, errBackoff) * 1000
			}
			if s.BackoffMaxMicros < s.BackoffMicros {
				a.Fail(errBackoff)
			}
		default:
			a.Syntax()
		}
	}
	return s, a.Err()
}

func (f *family) set(c *command.Ctx) {
	key := c.Args[1]
	q, ok := lookupWrite(c, key)
	if !ok {
		return
	}
	var s delayqueue.Settings
	if q != nil {
		s = q.Settings()
	}
	a := c.Cursor(2)
	s, text := readSettings(&a, s)
	if text == "" && bytes.Equal([]byte(s.Dead), key) {
		text = errOwnDead
	}
	if text != "" {
		c.Error(text)
		return
	}
	if q == nil {
		q = delayqueue.New()
		c.PutObject(key, engine.KindDelayQueue, q, 0)
	}
	q.Configure(s)
	if c.Logging() {
		w := logged(&c.View, key, wordSet, 5)
		w.Int(s.LeaseMicros)
		w.Int(s.Tries)
		w.Text(s.Dead)
		w.Int(s.BackoffMicros)
		w.Int(s.BackoffMaxMicros)
		w.End()
	}
	f.bury(&c.View, key, q, buryBatch)
	c.Changed(key, engine.EventDelayQueue, "dq.set")
	c.OK()
}
