package hash

// Writing fields.

import (
	"math"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/packed"
	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server/command"
)

const updateKey = command.RW | command.Update

func (f *family) hsetRow() *command.Command {
	return &command.Command{
		Name: "hset", Arity: -4, Group: command.GroupHash, Since: "2.0.0",
		Flags:      fastWrite,
		ACL:        hashACL,
		Keys:       []command.KeySpec{command.Key(1, updateKey)},
		Summary:    "Sets fields.",
		Complexity: "O(N) in the number of fields set",
		Syntax:     "key data={field:string value:string}...",
		Run: func(c *command.Ctx) {
			if created, ok := f.hset(c); ok {
				c.Int(int64(created))
			}
		},
	}
}

func (f *family) hmsetRow() *command.Command {
	return &command.Command{
		Name: "hmset", Arity: -4, Group: command.GroupHash, Since: "2.0.0",
		Flags:           fastWrite,
		ACL:             hashACL,
		Keys:            []command.KeySpec{command.Key(1, updateKey)},
		Summary:         "Sets fields.",
		Complexity:      "O(N) in the number of fields set",
		Syntax:          "key data={field:string value:string}...",
		DeprecatedSince: "4.0.0", ReplacedBy: "`HSET` with multiple field-value pairs",
		Run: func(c *command.Ctx) {
			if _, ok := f.hset(c); ok {
				c.OK()
			}
		},
	}
}

// hset sets pairs and returns how many fields are new.
func (f *family) hset(c *command.Ctx) (created int, ok bool) {
	pairs := c.Args[2:]
	if len(pairs)%2 != 0 {
		c.Error(command.ErrArity(c.Cmd.FullName()))
		return 0, false
	}
	key := c.Args[1]
	h, ok := lookupWrite(c, key)
	if !ok {
		return 0, false
	}
	if h == nil {
		h = c.NewHash(key)
	}
	lim := f.limits(c)
	prepare(h, pairs, len(pairs)/2, lim)
	if h.Len() == 0 {
		h.Reserve(pairs)
	}
	before := h.NextDue()
	for i := 0; i < len(pairs); i += 2 {
		if h.Set(pairs[i], pairs[i+1], lim) {
			created++
		}
	}
	if before != h.NextDue() {
		deadlinesChanged(c, key)
	}
	c.Changed(key, engine.EventHash, "hset")
	return created, true
}

// prepare converts a hash to its large form when Redis does so because of the arguments.
func prepare(h *hash.Hash, args [][]byte, fields int, lim hash.Limits) {
	longest, total := 0, 0
	for _, a := range args {
		longest = max(longest, len(a))
		total += len(a)
	}
	h.Prepare(fields, longest, total, lim)
}

func (f *family) hsetnxRow() *command.Command {
	return &command.Command{
		Name: "hsetnx", Arity: 4, Group: command.GroupHash, Since: "2.0.0",
		Flags:      fastWrite,
		ACL:        hashACL,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Insert)},
		Summary:    "Sets a field that is missing.",
		Complexity: "O(1)",
		Syntax:     "key field:string value:string",
		Run:        f.hsetnx,
	}
}

func (f *family) hsetnx(c *command.Ctx) {
	key := c.Args[1]
	h, ok := lookupWrite(c, key)
	if !ok {
		return
	}
	if h != nil && h.Exists(c.Args[2]) {
		c.Int(0)
		return
	}
	if h == nil {
		h = c.NewHash(key)
	}
	lim := f.limits(c)
	prepare(h, c.Args[2:], 1, lim)
	h.Set(c.Args[2], c.Args[3], lim)
	c.Changed(key, engine.EventHash, "hset")
	c.Int(1)
}

var hdelRow = &command.Command{
	Name: "hdel", Arity: -3, Group: command.GroupHash, Since: "2.0.0",
	Flags:      command.Write | command.Fast,
	ACL:        hashACL,
	Keys:       []command.KeySpec{command.Key(1, command.RW|command.Delete)},
	Summary:    "Removes fields.",
	Complexity: "O(N) in the number of fields removed",
	Syntax:     "key field:string...",
	Run: func(c *command.Ctx) {
		key := c.Args[1]
		h, ok := lookupWrite(c, key)
		if !ok {
			return
		}
		n := 0
		if h != nil {
			before := h.NextDue()
			for _, field := range c.Args[2:] {
				if h.Delete(field) {
					n++
				}
			}
			if before != h.NextDue() {
				deadlinesChanged(c, key)
			}
		}
		if n > 0 {
			c.Changed(key, engine.EventHash, "hdel")
			dropEmpty(c, key, h)
		}
		c.Int(int64(n))
	},
}

func (f *family) hincrbyRow() *command.Command {
	return &command.Command{
		Name: "hincrby", Arity: 4, Group: command.GroupHash, Since: "2.0.0",
		Flags:      fastWrite,
		ACL:        hashACL,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Access|command.Update)},
		Summary:    "Adds a number to a field, which starts at 0.",
		Complexity: "O(1)",
		Syntax:     "key field:string increment:integer",
		Run:        f.hincrby,
	}
}

func (f *family) hincrby(c *command.Ctx) {
	a := c.Cursor(3)
	by := a.Int()
	if a.Failed(c) {
		return
	}
	key, field := c.Args[1], c.Args[2]
	h, ok := lookupWrite(c, key)
	if !ok {
		return
	}
	var n int64
	if h != nil {
		var s packed.Scratch
		if value, found := h.Get(field, &s); found {
			if n, ok = number.ParseInt(value); !ok {
				c.Error("ERR hash value is not an integer")
				return
			}
		}
	}
	if by < 0 && n < math.MinInt64-by || by > 0 && n > math.MaxInt64-by {
		c.Error(command.ErrOverflow)
		return
	}
	n += by
	var buf [20]byte
	f.setKeep(c, key, h, field, command.AppendInt(buf[:0], n))
	c.Changed(key, engine.EventHash, "hincrby")
	c.Int(n)
}

// setKeep sets a field and leaves its deadline.
func (f *family) setKeep(c *command.Ctx, key []byte, h *hash.Hash, field, value []byte) {
	if h == nil {
		h = c.NewHash(key)
	}
	h.SetKeepDeadline(field, value, f.limits(c))
}

func (f *family) hincrbyfloatRow() *command.Command {
	return &command.Command{
		Name: "hincrbyfloat", Arity: 4, Group: command.GroupHash, Since: "2.6.0",
		Flags:      fastWrite,
		ACL:        hashACL,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Access|command.Update)},
		Summary:    "Adds a number with a fraction to a field, which starts at 0.",
		Complexity: "O(1)",
		Syntax:     "key field:string increment:double",
		Run:        f.hincrbyfloat,
	}
}

func (f *family) hincrbyfloat(c *command.Ctx) {
	by, ok := number.ParseLongDouble(c.Args[3])
	if !ok {
		c.Error(command.ErrNotFloat)
		return
	}
	if !by.Finite() {
		c.Error("ERR value is NaN or Infinity")
		return
	}
	key, field := c.Args[1], c.Args[2]
	h, ok := lookupWrite(c, key)
	if !ok {
		return
	}
	var n number.LongDouble
	if h != nil {
		var s packed.Scratch
		if value, found := h.Get(field, &s); found {
			if n, ok = number.ParseLongDouble(value); !ok {
				c.Error("ERR hash value is not a float")
				return
			}
		}
	}
	n = n.Add(by)
	if !n.Finite() {
		c.Error(command.ErrNaNInfinity)
		return
	}
	var buf [64]byte
	text := n.AppendHuman(buf[:0])
	f.setKeep(c, key, h, field, text)
	c.Changed(key, engine.EventHash, "hincrbyfloat")
	c.Effect([]byte("HSETEX"), key, []byte("KEEPTTL"), []byte("FIELDS"), []byte("1"), field, text)
	c.Bulk(text)
}
