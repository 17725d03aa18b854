package delayqueue

// What workers do with their entries: DQ.ACK, DQ.NACK, DQ.TOUCH, DQ.REM.

import (
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/server/command"
)

func (f *family) ackRow() *command.Command {
	return &command.Command{
		Name: "dq.ack", Arity: -3, Group: command.GroupDelayQueue, Since: since,
		Flags:      command.Write | command.Fast,
		Keys:       []command.KeySpec{command.Key(1, writeKey|command.Delete)},
		Summary:    "Removes leased entries: their work is done.",
		Complexity: "O(log N) for each id",
		Syntax:     "key id:string...",
		Also:       f.alsoLimits,
		Run: func(c *command.Ctx) {
			f.each(c, c.Args[2:], "dq.ack", wordAck, func(q *delayqueue.Queue, id []byte, attempt int64) bool {
				return q.Ack(id, attempt, c.Now)
			})
		},
	}
}

func (f *family) remRow() *command.Command {
	return &command.Command{
		Name: "dq.rem", Arity: -3, Group: command.GroupDelayQueue, Since: since,
		Flags:      command.Write | command.Fast,
		Keys:       []command.KeySpec{command.Key(1, writeKey|command.Delete)},
		Summary:    "Cancels entries, whatever their state.",
		Complexity: "O(log N) for each id",
		Syntax:     "key id:string...",
		Run: func(c *command.Ctx) {
			f.each(c, c.Args[2:], "dq.rem", wordRem, func(q *delayqueue.Queue, id []byte, attempt int64) bool {
				return q.Remove(id, attempt, c.Now)
			})
		},
	}
}

// each does something to each named entry, which may end its lease, and replies for how many it worked. The effect is word,
// then the numbers before, then the names.
func (f *family) each(c *command.Ctx, names [][]byte, event, word string, do func(q *delayqueue.Queue, id []byte, attempt int64) bool, before ...int64) {
	key := c.Args[1]
	q, ok := lookupWrite(c, key)
	if !ok {
		return
	}
	n := int64(0)
	o := overOf(key, q)
	if q != nil {
		for _, name := range names {
			id, attempt := delayqueue.ParseName(name)
			held := o.of(id, c.Now)
			if do(q, id, attempt) {
				o.add(held)
				n++
			}
		}
	}
	if n > 0 {
		if c.Logging() {
			w := logged(&c.View, key, word, len(before)+len(names))
			for _, n := range before {
				w.Int(n)
			}
			for _, name := range names {
				w.Bytes(name)
			}
			w.End()
		}
		if q.Timed() {
			rearm(&c.View, key, q)
		}
		changed(&c.View, key, q, event)
		if word != wordTouch || before[0] <= c.Now {
			f.settle(c, &o)
		} else {
			f.renew(c, &o, before[0]-c.Now)
		}
	}
	c.Int(n)
}

func (f *family) touchRow() *command.Command {
	return &command.Command{
		Name: "dq.touch", Arity: -4, Group: command.GroupDelayQueue, Since: since,
		Flags:      command.Write | command.Fast,
		Keys:       []command.KeySpec{command.Key(1, writeKey)},
		Summary:    "Extends leases, or reschedules waiting entries, to a time from now.",
		Complexity: "O(log N) for each id",
		Syntax:     "key ms:integer id:string...",
		Also:       f.alsoDead,
		Run:        f.touch,
	}
}

func (f *family) touch(c *command.Ctx) {
	a := c.Cursor(2)
	until := c.Now + a.IntRange(0, delayMillisMax, errDelay)*1000
	if a.Failed(c) {
		return
	}
	names := a.Rest()
	f.each(c, names, "dq.touch", wordTouch, func(q *delayqueue.Queue, id []byte, attempt int64) bool {
		return q.Touch(id, attempt, c.Now, until)
	}, until)
	// A lease that ends at once may have been the last try.
	q, _ := c.Peek(c.Args[1]).Object().(*delayqueue.Queue)
	if q == nil {
		return
	}
	rearm(&c.View, c.Args[1], q)
	if until <= c.Now && q.Dying() > 0 {
		f.bury(&c.View, c.Args[1], q, len(c.Args))
		changed(&c.View, c.Args[1], q, "dq.dead")
	}
}

func (f *family) nackRow() *command.Command {
	return &command.Command{
		Name: "dq.nack", Arity: -3, Group: command.GroupDelayQueue, Since: since,
		Flags:      command.Write | command.Fast,
		Keys:       []command.KeySpec{command.Key(1, writeKey|command.Delete)},
		Summary:    "Puts leased entries back, after a delay, or among the dead letters.",
		Complexity: "O(log N) for each id",
		Syntax:     "key id:string... [DELAY ms:integer] [DEAD] [REASON reason:string]",
		Also:       f.alsoDead,
		Run:        f.nack,
	}
}

// nackArgs are DQ.NACK's arguments. The options follow the ids, so an argument at the end that looks like an option is one.
type nackArgs struct {
	names  [][]byte
	delay  int64 // microseconds, or delayqueue.ByBackoff
	dead   bool
	reason []byte
}

func readNack(c *command.Ctx) (o nackArgs, text string) {
	o.delay = delayqueue.ByBackoff
	rest := c.Args[2:]
	for len(rest) > 1 {
		last := len(rest) - 1
		switch {
		case o.reason == nil && last > 1 && command.EqualFold(rest[last-1], "REASON"):
			if o.reason, rest = rest[last], rest[:last-1]; len(o.reason) > delayqueue.ReasonBytesMax {
				return o, errReason
			}
			continue
		case !o.dead && command.EqualFold(rest[last], "DEAD"):
			o.dead, rest = true, rest[:last]
			continue
		case o.delay == delayqueue.ByBackoff && last > 1 && command.EqualFold(rest[last-1], "DELAY"):
			a := command.ArgsOf(rest[last])
			o.delay, rest = a.IntRange(0, delayMillisMax, errDelay)*1000, rest[:last-1]
			if a.Err() != "" {
				return o, a.Err()
			}
			continue
		}
		break
	}
	o.names = rest
	if o.dead && o.delay != delayqueue.ByBackoff {
		return o, command.ErrSyntax
	}
	return o, ""
}

func (f *family) nack(c *command.Ctx) {
	o, text := readNack(c)
	if text != "" {
		c.Error(text)
		return
	}
	key := c.Args[1]
	q, ok := lookupWrite(c, key)
	if !ok {
		return
	}
	if o.dead && q != nil && q.Settings().Dead == "" {
		c.Error(errNoDead)
		return
	}
	n := int64(0)
	held := overOf(key, q)
	for i := 0; q != nil && i < len(o.names); i++ {
		id, attempt := delayqueue.ParseName(o.names[i])
		name := held.of(id, c.Now)
		if q.Nack(id, attempt, c.Now, o.delay, o.dead, o.reason) {
			held.add(name)
			n++
		}
	}
	if n > 0 {
		if c.Logging() {
			word, n := wordNack, 2+len(o.names)
			if len(o.reason) > 0 {
				word, n = wordFail, n+1
			}
			w := logged(&c.View, key, word, n)
			if len(o.reason) > 0 {
				w.Bytes(o.reason)
			}
			w.Int(o.delay)
			w.Int(flag(o.dead))
			for _, name := range o.names {
				w.Bytes(name)
			}
			w.End()
		}
		f.bury(&c.View, key, q, len(o.names))
		if q.Timed() {
			rearm(&c.View, key, q)
		}
		changed(&c.View, key, q, "dq.nack")
		f.settle(c, &held)
	}
	c.Int(n)
}
