// Package hyperloglog, internal to the server, is the family of HyperLogLogs: strings that count distinct elements. They
// equal Redis's byte for byte, so GET and SET can move them between servers.
package hyperloglog

import (
	"sync/atomic"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/hyperloglog"
	"github.com/limitkv/limitkv/server/command"
)

type family struct{ sparseMax *atomic.Int64 }

// Commands are the rows of the family.
func Commands(s *command.Server) []*command.Command {
	f := &family{s.Config.Memory("hll-sparse-max-bytes", hyperloglog.DefaultSparseMax, 0, 1<<63-1, "longest sparse HyperLogLog")}
	return []*command.Command{f.pfaddRow(), pfcountRow, f.pfmergeRow(), pfdebugRow, pfselftestRow}
}

var hyperLogLogACL = []string{"hyperloglog"}

const (
	errNotCounter = "WRONGTYPE Key is not a valid HyperLogLog string value."
	errCorrupt    = "INVALIDOBJ Corrupted HLL object detected"
)

// counter returns the bytes of an entry that must be a HyperLogLog, without spare capacity. If it is none, counter replies
// the error and reports false.
func counter(c *command.Ctx, e engine.Entry) (b []byte, ok bool) {
	if e.Kind() != engine.KindString {
		c.WrongType()
		return nil, false
	}
	if _, isInt := e.Int(); !isInt {
		b = e.Bytes(nil)
	}
	if !hyperloglog.Valid(b) {
		c.Error(errNotCounter)
		return nil, false
	}
	return b[:len(b):len(b)], true
}

// put makes b the value of the key, as a string that was edited in place.
func put(c *command.Ctx, key, b []byte) { copy(c.EditString(key, 0, len(b)), b) }

func (f *family) pfaddRow() *command.Command {
	return &command.Command{
		Name: "pfadd", Arity: -2, Group: command.GroupHyperLogLog, Since: "2.8.9",
		Flags:      command.Write | command.DenyOOM | command.Fast,
		ACL:        hyperLogLogACL,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Insert)},
		Summary:    "Adds elements to a HyperLogLog.",
		Complexity: "O(1) for each element",
		Syntax:     "key [element:string...]",
		Run:        f.pfadd,
	}
}

func (f *family) pfadd(c *command.Ctx) {
	key := c.Args[1]
	e := c.GetWrite(key)
	var b []byte
	updated := !e.Ok()
	if updated {
		b = hyperloglog.New()
	} else {
		was, ok := counter(c, e)
		if !ok {
			return
		}
		b = c.EditString(key, 0, len(was)) // in place, where it keeps its length
		b = b[:len(b):len(b)]
	}
	first, length, sparseMax := &b[0], len(b), int(f.sparseMax.Load())
	var err error
	for _, element := range c.Args[2:] {
		var changed bool
		if b, changed, err = hyperloglog.Add(b, element, sparseMax); err != nil {
			break
		}
		updated = updated || changed
	}
	if !e.Ok() {
		hyperloglog.Invalidate(b)
	}
	if !e.Ok() || &b[0] != first || len(b) != length {
		put(c, key, b)
	}
	switch {
	case err != nil:
		c.Error(errCorrupt)
	case updated:
		c.Changed(key, engine.EventString, "pfadd")
		c.Int(1)
	default:
		c.Int(0)
	}
}

var pfcountRow = &command.Command{
	Name: "pfcount", Arity: -2, Group: command.GroupHyperLogLog, Since: "2.8.9",
	Flags: command.ReadOnly | command.MayReplicate,
	ACL:   hyperLogLogACL,
	Keys: []command.KeySpec{{
		Flags: command.RW | command.Access, Index: 1, Last: -1, Step: 1,
		Notes: "RW: the count may be stored in the value.",
	}},
	Summary:    "Estimates how many distinct elements HyperLogLogs have seen together.",
	Complexity: "O(1), or O(N) for N keys with a much larger constant",
	Syntax:     "key...",
	Run:        pfcount,
}

func pfcount(c *command.Ctx) {
	if len(c.Args) > 2 {
		var union hyperloglog.Registers
		if _, ok := merge(c, &union); ok {
			c.Int(int64(union.Count()))
		}
		return
	}
	key := c.Args[1]
	e := c.Get(key)
	if !e.Ok() {
		c.Int(0)
		return
	}
	b, ok := counter(c, e)
	if !ok {
		return
	}
	b = c.EditString(key, 0, len(b))
	n, cached := hyperloglog.Cached(b)
	if !cached {
		var err error
		if n, err = hyperloglog.Count(b); err != nil {
			c.Error(errCorrupt)
			return
		}
		hyperloglog.SetCached(b, n)
		c.Modified(key)
	}
	c.Int(int64(n))
}

// merge adds all keys of the command to a union and reports whether any of them is dense. If there is an error, it replies
// that and ok is false.
func merge(c *command.Ctx, union *hyperloglog.Registers) (dense, ok bool) {
	for _, key := range c.Args[1:] {
		e := c.Get(key)
		if !e.Ok() {
			continue
		}
		b, ok := counter(c, e)
		if !ok {
			return false, false
		}
		dense = dense || hyperloglog.Encoding(b) == "dense"
		if union.Merge(b) != nil {
			c.Error(errCorrupt)
			return false, false
		}
	}
	return dense, true
}

func (f *family) pfmergeRow() *command.Command {
	return &command.Command{
		Name: "pfmerge", Arity: -2, Group: command.GroupHyperLogLog, Since: "2.8.9",
		Flags: command.Write | command.DenyOOM,
		ACL:   hyperLogLogACL,
		Keys: []command.KeySpec{
			command.Key(1, command.RW|command.Access|command.Insert),
			command.KeyRange(2, -1, 1, command.RO|command.Access),
		},
		Summary:    "Adds HyperLogLogs to one.",
		Complexity: "O(N) for N keys, with a large constant",
		Syntax:     "destkey:key [sourcekey:key@1...]",
		Run:        f.pfmerge,
	}
}

func (f *family) pfmerge(c *command.Ctx) {
	var union hyperloglog.Registers
	dense, ok := merge(c, &union)
	if !ok {
		return
	}
	key := c.Args[1]
	var b []byte
	if e := c.GetWrite(key); e.Ok() {
		b, _ = counter(c, e)
		b = append(make([]byte, 0, len(b)+8), b...)
	} else {
		b = hyperloglog.New()
	}
	b, err := union.Store(b, dense, int(f.sparseMax.Load()))
	if err != nil {
		c.Error(errCorrupt)
		return
	}
	put(c, key, b)
	c.Changed(key, engine.EventString, "pfadd")
	c.OK()
}
