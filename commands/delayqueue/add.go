package delayqueue

// DQ.ADD.

import (
	"math"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/server/command"
)

func (f *family) addRow() *command.Command {
	return &command.Command{
		Name: "dq.add", Arity: -3, Group: command.GroupDelayQueue, Since: since,
		Flags:      command.Write | command.DenyOOM | command.Fast,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Update|command.Insert)},
		Summary:    "Adds an entry to a delay queue, or replaces and reschedules the one with its id.",
		Complexity: "O(log N)",
		Syntax: "key [condition=(NX | XX)] " +
			"[when=(DELAY ms:integer | AT unix-ms:unix-time | EVERY every-ms:integer | cron={CRON expression:string [TZ zone:string]})] [ID id:string] " +
			"[GROUP group:string] [PRIO prio:integer] [EXPIRE expire-ms:integer] [UNIQUE unique-ms:integer] [MAXWAIT maxwait-ms:integer] payload:string",
		Run: f.add,
	}
}

// addArgs are DQ.ADD's options.
type addArgs struct {
	mode    delayqueue.Mode
	due     int64 // Unix microseconds
	id      []byte
	payload []byte
	extra   delayqueue.Extra
	extras  bool // extra was given
	// every, in microseconds, or cron and zone make a schedule.
	every      int64
	cron, zone []byte
}

// again reports whether the options make a schedule.
func (o *addArgs) again() bool { return o.every > 0 || o.cron != nil }

// given is the extra, nil if there is none.
func (o *addArgs) given() *delayqueue.Extra {
	if !o.extras {
		return nil
	}
	return &o.extra
}

// readAdd reads the options before the payload, which is the last argument
// whatever it looks like.
func readAdd(c *command.Ctx) (o addArgs, text string) {
	last := len(c.Args) - 1
	o.payload, o.due = c.Args[last], c.Now
	a := command.ArgsOf(c.Args[2:last]...)
	delayed, timed, conditional, prio := false, false, false, false
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
		case o.every == 0 && a.IsWith("EVERY", 1):
			o.every = span(&a, errEvery)
		case o.cron == nil && a.IsWith("CRON", 1):
			o.cron = a.Bytes()
			if a.IsWith("TZ", 1) {
				o.zone = a.Bytes()
			}
		case o.id == nil && a.IsWith("ID", 1):
			if o.id = a.Bytes(); delayqueue.CheckID(o.id) != nil {
				a.Fail(errID)
			}
		case o.extra.Group == nil && a.IsWith("GROUP", 1):
			if o.extra.Group, o.extras = a.Bytes(), true; len(o.extra.Group) == 0 || len(o.extra.Group) > delayqueue.GroupBytesMax {
				a.Fail(errGroup)
			}
		case !prio && a.IsWith("PRIO", 1):
			o.extra.Prio, prio, o.extras = uint8(a.IntRange(0, math.MaxUint8, errPrio)), true, true
		case o.extra.ExpireMicros == 0 && a.IsWith("EXPIRE", 1):
			o.extra.ExpireMicros, o.extras = span(&a, errExpire), true
		case o.extra.UniqueMicros == 0 && a.IsWith("UNIQUE", 1):
			o.extra.UniqueMicros, o.extras = span(&a, errUnique), true
		case o.extra.MaxWaitMicros == 0 && a.IsWith("MAXWAIT", 1):
			o.extra.MaxWaitMicros, o.extras = span(&a, errMaxWait), true
		default:
			a.Syntax()
		}
	}
	switch {
	case o.every > 0 && o.cron != nil, o.again() && (delayed || timed):
		a.Fail(errManyTimes)
	case o.again() && (o.extra.UniqueMicros > 0 || o.extra.MaxWaitMicros > 0):
		a.Fail(errPlanOptions)
	case delayed && timed:
		a.Fail(errBothTimes)
	case timed && o.due < timeMillisMin*1000: // it would be due at once
		a.Fail(errSeconds)
	case o.mode == delayqueue.OnlyOld && o.id == nil:
		a.Syntax()
	}
	return o, a.Err()
}

// span reads a duration of at least 1 ms, and returns it in microseconds.
func span(a *command.Args, text string) int64 { return a.IntRange(1, delayMillisMax, text) * 1000 }

func (f *family) add(c *command.Ctx) {
	o, text := readAdd(c)
	if text != "" {
		c.Error(text)
		return
	}
	key := c.Args[1]
	if o.extra.Group != nil {
		if e := c.Peek(key); e.Kind() == engine.KindZSet {
			c.Error(errZSetGroup)
			return
		}
	}
	q, ok := lookupWrite(c, key)
	if !ok {
		return
	}
	if text := o.check(); text != "" {
		c.Error(text)
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
		o.id = f.nextID(buf[:0], q, c.KS.Clock.ForNumbers(c.Now))
	}
	if q.Full() && o.mode != delayqueue.OnlyOld && !q.Knows(o.id) && !q.Scheduled(o.id) {
		c.Error(errFull)
		return
	}
	if o.again() {
		f.plan(c, key, q, &o)
		return
	}
	if !q.Add(c.Now, o.id, o.payload, o.due, o.given(), o.mode) {
		c.Null()
		return
	}
	if o.extras {
		rearm(&c.View, key, q)
	}
	c.Changed(key, engine.EventDelayQueue, "dq.add")
	if c.Logging() {
		logAdd(&c.View, key, o.id, o.due, o.payload, o.given(), 0)
	}
	c.Bulk(o.id)
}

// logAdd logs that an entry was added. attempt is how many attempts it had in another queue. Call it only while Logging.
func logAdd(v *engine.View, key, id []byte, due int64, payload []byte, x *delayqueue.Extra, attempt int64) {
	scratch := v.Scratch()
	*scratch = x.Append((*scratch)[:0])
	n := 3
	switch {
	case attempt > 0:
		n = 5
	case len(*scratch) > 0:
		n = 4
	}
	w := logged(v, key, wordAdd, n)
	w.Bytes(id)
	w.Int(due)
	w.Bytes(payload)
	if n > 3 {
		w.Bytes(*scratch)
	}
	if n > 4 {
		w.Int(attempt)
	}
	w.End()
}

// nextID makes an id that the queue does not have.
func (f *family) nextID(dst []byte, q *delayqueue.Queue, now int64) []byte {
	for {
		f.mu.Lock()
		f.serial = f.serial.Next(now)
		serial := f.serial
		f.mu.Unlock()
		id := serial.Append(dst)
		if !q.Knows(id) && !q.Scheduled(id) {
			return id
		}
	}
}
