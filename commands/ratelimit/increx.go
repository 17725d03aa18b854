package ratelimit

// INCREX, Redis 8.8's counter with bounds and a time to live in one command. It is a fixed window for those who need
// nothing else.

import (
	"math"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server/command"
)

var increxRow = &command.Command{
	Name: "increx", Arity: -2, Group: command.GroupString, Since: "8.8.0",
	Flags:      fastWrite,
	ACL:        []string{"string"},
	Keys:       []command.KeySpec{command.Key(1, writeKey)},
	Summary:    "Adds to a number within bounds, and sets when it expires.",
	Complexity: "O(1)",
	Syntax: "key [increment=(BYFLOAT float:double | BYINT integer:integer)] [LBOUND lowerbound:string] [UBOUND upperbound:string] [SATURATE] " +
		"[expiration=(EX seconds:integer | PX milliseconds:integer | EXAT unix-time-seconds:unix-time | PXAT unix-time-milliseconds:unix-time | PERSIST)] [ENX]",
	Run: increx,
}

// increxArgs are INCREX's options as given.
type increxArgs struct {
	by, lower, upper       []byte // nil where not given
	float, hasBy           bool
	saturate, persist, enx bool
	unit                   string // of the expiration, "" for none
	expire                 []byte
}

// readIncrex reads the options, each at most once.
func readIncrex(a *command.Args) (o increxArgs) {
	value := func(word string, slot *[]byte) bool {
		if *slot != nil || !a.IsWith(word, 1) {
			return false
		}
		*slot = a.Bytes()
		return true
	}
	for a.More() {
		switch {
		case !o.hasBy && value("BYINT", &o.by):
			o.hasBy = true
		case !o.hasBy && value("BYFLOAT", &o.by):
			o.hasBy, o.float = true, true
		case value("LBOUND", &o.lower), value("UBOUND", &o.upper):
		case !o.saturate && a.Is("SATURATE"):
			o.saturate = true
		case !o.enx && !o.persist && a.Is("ENX"):
			o.enx = true
		case !o.persist && !o.enx && o.unit == "" && a.Is("PERSIST"):
			o.persist = true
		case !o.persist && o.unit == "" && o.readExpire(a):
		default:
			a.Syntax()
		}
	}
	if o.enx && o.unit == "" {
		a.Fail("ERR ENX flag requires an expiration")
	}
	return o
}

func (o *increxArgs) readExpire(a *command.Args) bool {
	for _, unit := range [...]string{"EX", "PX", "EXAT", "PXAT"} {
		if a.IsWith(unit, 1) {
			o.unit, o.expire = unit, a.Bytes()
			return true
		}
	}
	return false
}

// deadline is the expiration in Unix milliseconds, 0 for none.
func (o *increxArgs) deadline(c *command.Ctx, a *command.Args) int64 {
	if o.unit == "" || a.Err() != "" {
		return 0
	}
	x := command.ArgsOf(o.expire)
	n := x.Int()
	if x.Err() != "" {
		a.Fail(x.Err())
		return 0
	}
	if n > 0 && o.unit[0] == 'E' {
		if n > math.MaxInt64/1000 {
			n = -1
		} else {
			n *= 1000
		}
	}
	if n > 0 && len(o.unit) == 2 {
		n += c.Now / 1000 // may wrap to a negative number
	}
	if n <= 0 {
		a.Fail(command.ErrInvalidExpire(c.Cmd.FullName()))
	}
	return n
}

const (
	errBoundsCrossed   = "ERR LBOUND can't be greater than UBOUND"
	errIncrexOverflow  = "ERR applied increment would overflow"
	errIncrexInfinity  = "ERR applied increment would be Infinity"
	errValueInfinity   = "ERR value cannot be Infinity"
	errByFloatInfinity = "ERR BYFLOAT increment cannot be Infinity"
)

func increx(c *command.Ctx) {
	a := c.Cursor(2)
	o := readIncrex(&a)
	if a.Failed(c) {
		return
	}
	if o.float {
		increxFloat(c, &o)
	} else {
		increxInt(c, &o)
	}
}

func increxInt(c *command.Ctx, o *increxArgs) {
	var a command.Args
	read := func(text []byte, name string, otherwise int64) int64 {
		if text == nil || a.Err() != "" {
			return otherwise
		}
		n, ok := number.ParseInt(text)
		if !ok {
			a.Fail("ERR " + name + " is not an integer or out of range")
		}
		return n
	}
	by := read(o.by, "Increment", 1)
	lower, upper := read(o.lower, "LBOUND", math.MinInt64), read(o.upper, "UBOUND", math.MaxInt64)
	if lower > upper {
		a.Fail(errBoundsCrossed)
	}
	deadline := o.deadline(c, &a)
	if a.Failed(c) {
		return
	}
	e, ok := c.LookupWrite(c.Args[1], engine.KindString)
	if !ok {
		return
	}
	var old int64
	if e.Ok() {
		var scratch [20]byte
		if old, ok = number.ParseInt(e.Bytes(scratch[:])); !ok {
			c.Error(command.ErrNotInt)
			return
		}
	}
	value, fits := boundedSum(old, by, lower, upper)
	if !fits && !o.saturate {
		c.Array(2)
		c.Int(old)
		c.Int(0)
		return
	}
	applied := value - old
	if (applied > 0) != (value > old) {
		c.Error(errIncrexOverflow)
		return
	}
	o.store(c, e, deadline, "incrby", func(at int64) { c.PutInt(c.Args[1], value, at) })
	c.Array(2)
	c.Int(value)
	c.Int(applied)
}

// boundedSum is old+by, or the bound that the sum exceeds.
func boundedSum(old, by, lower, upper int64) (sum int64, fits bool) {
	sum = old + by
	switch {
	case by > 0 && sum < old || by <= 0 && sum > old: // beyond 64 bits
		if by > 0 {
			return upper, false
		}
		return lower, false
	case sum > upper:
		return upper, false
	case sum < lower:
		return lower, false
	}
	return sum, true
}

func increxFloat(c *command.Ctx, o *increxArgs) {
	var a command.Args
	read := func(text []byte, name string, otherwise number.LongDouble) number.LongDouble {
		if text == nil || a.Err() != "" {
			return otherwise
		}
		n, ok := number.ParseLongDouble(text)
		if !ok {
			a.Fail("ERR " + name + " is not a valid float")
		}
		return n
	}
	by := read(o.by, "Increment", number.LongDouble{})
	if a.Err() == "" && !by.Finite() {
		a.Fail(errByFloatInfinity)
	}
	lower := read(o.lower, "LBOUND", number.MaxLongDouble().Neg())
	upper := read(o.upper, "UBOUND", number.MaxLongDouble())
	if upper.Less(lower) {
		a.Fail(errBoundsCrossed)
	}
	deadline := o.deadline(c, &a)
	if a.Failed(c) {
		return
	}
	e, ok := c.LookupWrite(c.Args[1], engine.KindString)
	if !ok {
		return
	}
	var old number.LongDouble
	if e.Ok() {
		var scratch [20]byte
		if old, ok = number.ParseLongDouble(e.Bytes(scratch[:])); !ok {
			c.Error(command.ErrNotFloat)
			return
		}
		if !old.Finite() {
			c.Error(errValueInfinity)
			return
		}
	}
	value, fits := old.Add(by), true
	switch {
	case upper.Less(value):
		value, fits = upper, false
	case value.Less(lower):
		value, fits = lower, false
	}
	var buf, more [64]byte
	if !fits && !o.saturate {
		c.Array(2)
		c.DoubleText(old.AppendHuman(buf[:0]))
		c.DoubleText(append(more[:0], '0'))
		return
	}
	applied := value.Add(old.Neg())
	if !applied.Finite() {
		c.Error(errIncrexInfinity)
		return
	}
	text := value.AppendHuman(buf[:0])
	o.store(c, e, deadline, "incrbyfloat", func(at int64) { c.PutString(c.Args[1], text, at) })
	c.Array(2)
	c.DoubleText(text)
	c.DoubleText(applied.AppendHuman(more[:0]))
}

// store writes the new value with put and sets when it expires as the options say. A time in the past deletes the
// key, unless ENX keeps the deadline that it has.
func (o *increxArgs) store(c *command.Ctx, e engine.Entry, deadline int64, event string, put func(deadline int64)) {
	key, had := c.Args[1], e.Deadline()
	set := o.unit != "" && !(o.enx && had != 0)
	if set && c.Past(deadline) {
		if c.Delete(key) {
			c.Changed(key, engine.EventGeneric, "del")
			c.EffectGone(key)
		}
		return
	}
	at := had
	switch {
	case set:
		at = deadline
	case o.persist:
		at = 0
	}
	put(at)
	c.Changed(key, engine.EventString, event)
	c.EffectImage(key)
	switch {
	case set:
		c.Notify(engine.EventGeneric, "expire", key)
	case o.persist && had != 0:
		c.Notify(engine.EventGeneric, "persist", key)
	}
}
