package hash

// HGETDEL, HGETEX and HSETEX read or write fields, and delete them or change their deadlines, in one step.

import (
	"math"
	"slices"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
)

var hgetdelRow = &command.Command{
	Name: "hgetdel", Arity: -5, Group: command.GroupHash, Since: "8.0.0",
	Flags:      command.Write | command.Fast,
	ACL:        hashACL,
	Keys:       []command.KeySpec{command.Key(1, command.RW|command.Access|command.Delete)},
	Summary:    "Returns the values of fields and removes them.",
	Complexity: "O(N) in the number of fields named",
	Syntax:     "key FIELDS fields={numfields:integer field:string...}",
	Run:        hgetdel,
}

func hgetdel(c *command.Ctx) {
	key := c.Args[1]
	h, ok := lookupWrite(c, key)
	if !ok {
		return
	}
	a := c.Cursor(2)
	fields := parseFields(&a, errFieldCount)
	if a.Failed(c) {
		return
	}
	c.Array(len(fields))
	deleted := 0
	for _, field := range fields {
		if replyField(c, h, field) {
			h.Delete(field)
			deleted++
		}
	}
	if deleted > 0 {
		deadlinesChanged(c, key)
		c.Changed(key, engine.EventHash, "hdel")
		if c.Logging() {
			c.Effect(append([][]byte{[]byte("HDEL"), key}, fields...)...)
		}
		dropEmpty(c, key, h)
	}
}

var hgetexRow = &command.Command{
	Name: "hgetex", Arity: -5, Group: command.GroupHash, Since: "8.0.0",
	Flags:      command.Write | command.Fast,
	ACL:        hashACL,
	Keys:       []command.KeySpec{command.Key(1, command.RW|command.Access|command.Update)},
	Summary:    "Returns the values of fields and changes for how long they live.",
	Complexity: "O(N) in the number of fields named",
	Syntax:     "key [expiration=(EX seconds:integer | PX milliseconds:integer | EXAT unix-time-seconds:unix-time | PXAT unix-time-milliseconds:unix-time | PERSIST)] FIELDS fields={numfields:integer field:string...}",
	Run:        hgetex,
}

// takeTime reads EX, PX, EXAT or PXAT with its time, if one of them is next.
func takeTime(a *command.Args, c *command.Ctx) (at int64, ok bool) {
	switch {
	case a.Is("EX"):
		return parseTime(a, c, true, false), true
	case a.Is("PX"):
		return parseTime(a, c, false, false), true
	case a.Is("EXAT"):
		return parseTime(a, c, true, true), true
	case a.Is("PXAT"):
		return parseTime(a, c, false, true), true
	}
	return 0, false
}

func hgetex(c *command.Ctx) {
	key := c.Args[1]
	h, ok := lookupWrite(c, key)
	if !ok {
		return
	}
	a := c.Cursor(2)
	at, timed := takeTime(&a, c)
	persist := !timed && a.Is("PERSIST")
	if a.Left() < 2 {
		a.Fail(command.ErrArity(c.Cmd.FullName()))
	}
	fields := parseFields(&a, errFieldCount)
	if a.Failed(c) {
		return
	}
	if h != nil && (timed || persist) {
		h.PrepareDeadlines()
	}
	c.Array(len(fields))
	updated, deleted := 0, 0
	for _, field := range fields {
		if !replyField(c, h, field) {
			continue
		}
		switch { // setDeadline logs the deletion of a field whose time is over
		case persist:
			if current, _ := h.Deadline(field); current != 0 {
				h.SetDeadline(field, 0)
				updated++
			}
		case timed:
			if setDeadline(c, h, field, at, always) == deletedAt {
				deleted++
			} else {
				updated++
			}
		}
	}
	if updated+deleted == 0 {
		c.StoreEdit() // its form may have changed
		return
	}
	deadlinesChanged(c, key)
	switch {
	case updated > 0 && persist:
		c.Changed(key, engine.EventHash, "hpersist")
		if c.Logging() {
			c.Effect(append([][]byte{[]byte("HPERSIST"), key}, c.Args[3:]...)...)
		}
	case updated > 0:
		c.Changed(key, engine.EventHash, "hexpire")
		if c.Logging() {
			c.Effect(append([][]byte{[]byte("HPEXPIREAT"), key, command.Number(at)}, c.Args[4:]...)...)
		}
	default:
		c.Changed(key, engine.EventHash, "hdel")
	}
	dropEmpty(c, key, h)
}

func (f *family) hsetexRow() *command.Command {
	return &command.Command{
		Name: "hsetex", Arity: -6, Group: command.GroupHash, Since: "8.0.0",
		Flags:      fastWrite,
		ACL:        hashACL,
		Keys:       []command.KeySpec{command.Key(1, updateKey)},
		Summary:    "Sets fields, and for how long they live.",
		Complexity: "O(N) in the number of fields set",
		Syntax:     "key [condition=(FNX | FXX)] [expiration=(EX seconds:integer | PX milliseconds:integer | EXAT unix-time-seconds:unix-time | PXAT unix-time-milliseconds:unix-time | KEEPTTL)] FIELDS fields={numfields:integer data={field:string value:string}...}",
		Run:        f.hsetex,
	}
}

// setQuery is HSETEX as asked for.
type setQuery struct {
	at              int64
	timed, keep     bool
	onlyNew, onlyIf bool // FNX, FXX
	pairs           [][]byte
}

func parseSetEx(c *command.Ctx) (q setQuery, ok bool) {
	a := c.Cursor(2)
	timeWords := [...]string{"EX", "PX", "EXAT", "PXAT"}
	for a.Err() == "" && q.pairs == nil {
		if len(a.Peek()) == 0 && a.Left() == 0 {
			a.Fail(command.ErrArity(c.Cmd.FullName()))
			break
		}
		isTime := false
		for _, w := range timeWords {
			isTime = isTime || command.EqualFold(a.Peek(), w)
		}
		isKeep := command.EqualFold(a.Peek(), "KEEPTTL")
		isNew, isIf := command.EqualFold(a.Peek(), "FNX"), command.EqualFold(a.Peek(), "FXX")
		switch {
		case (isTime || isKeep) && (q.timed || q.keep):
			a.Fail("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified")
		case isTime && a.Left() < 2:
			a.Fail("ERR missing expire time")
		case isTime:
			q.at, q.timed = takeTime(&a, c)
		case isKeep:
			a.Bytes()
			q.keep = true
		case (isNew || isIf) && (q.onlyNew || q.onlyIf):
			a.Fail("ERR Only one of FXX or FNX arguments can be specified")
		case isNew, isIf:
			a.Bytes()
			q.onlyNew, q.onlyIf = isNew, isIf
		case a.Is("FIELDS"):
			if a.Left() < 3 {
				a.Fail(command.ErrArity(c.Cmd.FullName()))
				break
			}
			n := a.IntOr("ERR invalid number of fields")
			if a.Err() == "" && (n < 1 || n > math.MaxInt32) {
				a.Fail("ERR invalid number of fields")
			}
			if a.Err() == "" && (a.Left()%2 != 0 || n != int64(a.Left()/2)) {
				a.Fail(command.ErrArity(c.Cmd.FullName()))
			}
			q.pairs = a.Rest()
		default:
			a.Fail("ERR unknown argument: " + string(a.Peek()))
		}
	}
	return q, !a.Failed(c)
}

// logSetEx logs the effect of HSETEX with a time, as an absolute time.
func logSetEx(c *command.Ctx, at int64) {
	args := slices.Clone(c.Args)
	for i := 2; i < len(args) && !command.EqualFold(args[i], "FIELDS"); i++ {
		switch command.Lower(args[i]) {
		case "ex", "px", "exat":
			args[i], args[i+1] = []byte("PXAT"), command.Number(at)
			c.Effect(args...)
			return
		}
	}
}

func (f *family) hsetex(c *command.Ctx) {
	q, ok := parseSetEx(c)
	if !ok {
		return
	}
	key := c.Args[1]
	c.ExpireFields(key)
	h, ok := lookupWrite(c, key)
	if !ok {
		return
	}
	for i := 0; i < len(q.pairs); i += 2 {
		exists := h != nil && h.Exists(q.pairs[i])
		if q.onlyNew && exists || q.onlyIf && !exists {
			c.Int(0)
			if h != nil {
				dropEmpty(c, key, h)
			}
			return
		}
	}
	if h == nil {
		h = c.NewHash(key)
	}
	lim := f.limits(c)
	prepare(h, q.pairs, len(q.pairs)/2, lim)
	if q.timed {
		h.PrepareDeadlines()
	}
	updated, deleted := 0, 0
	for i := 0; i < len(q.pairs); i += 2 {
		field, value := q.pairs[i], q.pairs[i+1]
		if q.timed || q.keep {
			h.SetKeepDeadline(field, value, lim)
		} else {
			h.Set(field, value, lim)
		}
		if q.timed {
			if setDeadline(c, h, field, q.at, always) == deletedAt {
				deleted++
			} else {
				updated++
			}
		}
	}
	deadlinesChanged(c, key)
	c.Int(1)
	c.Changed(key, engine.EventHash, "hset")
	switch {
	case deleted > 0:
		c.Changed(key, engine.EventHash, "hdel")
	case updated > 0:
		c.Changed(key, engine.EventHash, "hexpire")
		if c.Logging() {
			logSetEx(c, q.at)
		}
	}
	dropEmpty(c, key, h)
}
