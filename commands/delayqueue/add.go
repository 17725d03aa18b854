package delayqueue

// DQ.ADD.

import (
	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
)

func (f *family) addRow() *command.Command {
	return &command.Command{
		Name: "dq.add", Arity: -3, Group: command.GroupDelayQueue, Since: since,
		Flags:      command.Write | command.DenyOOM | command.Fast,
		ACL:        acl,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Update|command.Insert)},
		Summary:    "Adds an entry to a delay queue, or replaces and reschedules the one with its id.",
		Complexity: "O(log N)",
		Syntax:     "key [condition=(NX | XX)] [when=(DELAY ms:integer | AT unix-ms:unix-time)] [ID id:string] payload:string",
		Run:        f.add,
	}
}

// addArgs are DQ.ADD's options.
type addArgs struct {
	mode    delayqueue.Mode
	due     int64 // Unix microseconds
	id      []byte
	payload []byte
}

// readAdd reads the options before the payload, which is the last argument
// whatever it looks like.
func readAdd(c *command.Ctx) (o addArgs, text string) {
	last := len(c.Args) - 1
	o.payload, o.due = c.Args[last], c.Now
	a := command.ArgsOf(c.Args[2:last]...)
	delayed, timed, conditional := false, false, false
	for a.More() {
		switch {
		case !conditional && a.Is("NX"):
			o.mode, conditional = delayqueue.OnlyNew, true
		case !conditional && a.Is("XX"):
			o.mode, conditional = delayqueue.OnlyOld, true
		case !delayed && a.IsWith("DELAY", 1):
			delayed = true
			o.due = c.Now + a.IntRange(0, delayMillisMax, errDelay)*1000
		case !timed && a.IsWith("AT", 1):
			timed = true
			o.due = a.IntRange(0, timeMillisMax, errTime) * 1000
		case o.id == nil && a.IsWith("ID", 1):
			if o.id = a.Bytes(); delayqueue.CheckID(o.id) != nil {
				a.Fail(errID)
			}
		default:
			a.Syntax()
		}
	}
	switch {
	case delayed && timed:
		a.Fail(errBothTimes)
	case o.mode == delayqueue.OnlyOld && o.id == nil:
		a.Syntax()
	}
	return o, a.Err()
}

func (f *family) add(c *command.Ctx) {
	o, text := readAdd(c)
	if text != "" {
		c.Error(text)
		return
	}
	key := c.Args[1]
	q, ok := lookupWrite(c, key)
	if !ok {
		return
	}
	if q == nil {
		if o.mode == delayqueue.OnlyOld {
			c.Null()
			return
		}
		q = delayqueue.New()
		c.PutObject(key, engine.KindDelayQueue, q, 0)
	}
	var buf [48]byte
	if o.id == nil {
		o.id = f.nextID(buf[:0], q, c.Now)
	}
	if !q.Add(o.id, o.payload, o.due, o.mode) {
		c.Null()
		return
	}
	c.Changed(key, engine.EventDelayQueue, "dq.add")
	if c.Logging() {
		w := logged(&c.View, key, wordAdd, 3)
		w.Bytes(o.id)
		w.Int(o.due)
		w.Bytes(o.payload)
		w.End()
	}
	c.Bulk(o.id)
}

// nextID makes an id that the queue does not have.
func (f *family) nextID(dst []byte, q *delayqueue.Queue, now int64) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		f.serial = f.serial.Next(now)
		id := f.serial.Append(dst)
		if !q.Has(id) {
			return id
		}
	}
}
