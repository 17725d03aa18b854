package str

// Counters.

import (
	"math"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server/command"
)

func counterRow(name string, arity int, syntax, summary string, run func(c *command.Ctx)) *command.Command {
	return &command.Command{
		Name: name, Arity: arity, Group: command.GroupString, Since: "1.0.0",
		Flags:      fastWrite,
		ACL:        stringACL,
		Keys:       []command.KeySpec{command.Key(1, updateKey)},
		Summary:    summary,
		Complexity: "O(1)",
		Syntax:     syntax,
		Run:        run,
	}
}

var (
	incrRow = counterRow("incr", 2, "key", "Adds one to a counter, which starts at 0.",
		func(c *command.Ctx) { add(c, 1) })
	decrRow = counterRow("decr", 2, "key", "Takes one from a counter, which starts at 0.",
		func(c *command.Ctx) { add(c, -1) })
	incrbyRow = counterRow("incrby", 3, "key increment:integer", "Adds a number to a counter, which starts at 0.",
		func(c *command.Ctx) {
			a := c.Cursor(2)
			if n := a.Int(); !a.Failed(c) {
				add(c, n)
			}
		})
	decrbyRow = counterRow("decrby", 3, "key decrement:integer", "Takes a number from a counter, which starts at 0.", decrby)
)

func decrby(c *command.Ctx) {
	a := c.Cursor(2)
	n := a.Int()
	if a.Failed(c) {
		return
	}
	if n == math.MinInt64 {
		c.Error("ERR decrement would overflow")
		return
	}
	add(c, -n)
}

// add changes a counter and replies its value.
func add(c *command.Ctx, by int64) {
	key := c.Args[1]
	e, ok := c.LookupWrite(key, engine.KindString)
	if !ok {
		return
	}
	var n int64
	inPlace := false
	if e.Ok() {
		if n, inPlace = e.Int(); !inPlace {
			if n, ok = number.ParseInt(e.Bytes(nil)); !ok {
				c.Error(command.ErrNotInt)
				return
			}
		}
	}
	if by < 0 && n < math.MinInt64-by || by > 0 && n > math.MaxInt64-by {
		c.Error(command.ErrOverflow)
		return
	}
	n += by
	if inPlace {
		c.SetInt(e, n)
	} else {
		c.PutInt(key, n, e.Deadline())
	}
	c.Changed(key, engine.EventString, "incrby")
	c.Int(n)
}

var incrbyfloatRow = &command.Command{
	Name: "incrbyfloat", Arity: 3, Group: command.GroupString, Since: "2.6.0",
	Flags:      fastWrite,
	ACL:        stringACL,
	Keys:       []command.KeySpec{command.Key(1, updateKey)},
	Summary:    "Adds a number with a fraction to a counter, which starts at 0.",
	Complexity: "O(1)",
	Syntax:     "key increment:double",
	Run:        incrbyfloat,
}

func incrbyfloat(c *command.Ctx) {
	key := c.Args[1]
	e, ok := c.LookupWrite(key, engine.KindString)
	if !ok {
		return
	}
	var value number.LongDouble
	if e.Ok() {
		var scratch [20]byte
		if value, ok = number.ParseLongDouble(e.Bytes(scratch[:])); !ok {
			c.Error(command.ErrNotFloat)
			return
		}
	}
	by, ok := number.ParseLongDouble(c.Args[2])
	if !ok {
		c.Error(command.ErrNotFloat)
		return
	}
	value = value.Add(by)
	if !value.Finite() {
		c.Error(command.ErrNaNInfinity)
		return
	}
	var buf [64]byte
	text := value.AppendHuman(buf[:0])
	c.PutBytes(engine.KindString, key, text, e.Deadline()) // text even if it is an integer, as OBJECT ENCODING shows
	c.Changed(key, engine.EventString, "incrbyfloat")
	c.Effect([]byte("SET"), key, text, []byte("KEEPTTL"))
	c.Bulk(text)
}
