// Package scan, internal to the server, is what SCAN, HSCAN, SSCAN and ZSCAN share: options, cursors, the reply.
package scan

import (
	"strconv"

	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/glob"
)

// Of says which command of the four it is.
type Of uint8

// The four.
const (
	Keys Of = iota
	Hash
	Other
)

// Options are the options of a scan.
type Options struct {
	Count    int
	Pattern  []byte // nil: all
	Type     []byte // SCAN; nil: all
	NoValues bool   // HSCAN
}

// scanCountMax bounds the work of one call; a larger COUNT is reduced to it.
const scanCountMax = 1 << 30

// Parse reads the options from an argument on. It replies the error and
// returns false if there is one.
func Parse(c *command.Ctx, from int, of Of) (o Options, ok bool) {
	o.Count = 10
	a := c.Cursor(from)
	for a.More() {
		switch {
		case a.IsWith("COUNT", 1):
			n := a.Int()
			if n < 1 {
				a.Syntax()
			}
			o.Count = int(min(n, scanCountMax))
		case a.IsWith("MATCH", 1):
			o.Pattern = a.Bytes()
			if string(o.Pattern) == "*" {
				o.Pattern = nil
			}
		case of == Keys && a.IsWith("TYPE", 1):
			o.Type = a.Bytes()
		case a.Is("NOVALUES"):
			if of != Hash {
				a.Fail("ERR NOVALUES option can only be used in HSCAN")
			}
			o.NoValues = true
		default:
			a.Syntax()
		}
	}
	return o, !a.Failed(c)
}

// sized is a value with elements, comparable with none.
type sized interface {
	comparable
	Len() int
}

// Value replies a scan of the value of a key. lookup finds the value, or returns the zero value if it is missing. walk
// continues from a cursor: it appends the elements that the pattern wants, and returns how many replies it appended and the
// next cursor.
func Value[T sized](c *command.Ctx, of Of, lookup func(c *command.Ctx, key []byte) (T, bool),
	walk func(t T, cursor uint64, o *Options, found *resp.Writer) (n int, next uint64)) {
	cursor, ok := number.ParseUint(c.Args[2])
	if !ok {
		c.Error(command.ErrInvalidCursor)
		return
	}
	t, ok := lookup(c, c.Args[1])
	if !ok {
		return
	}
	var missing T
	if t == missing { // Redis does not look at the options then
		c.Array(2)
		c.BulkString("0")
		c.Array(0)
		return
	}
	o, ok := Parse(c, 3, of)
	if !ok {
		return
	}
	c.Expect(4 * min(o.Count, t.Len()))
	mark := c.Writer.Mark()
	n, next := walk(t, cursor, &o, c.Writer)
	// The cursor comes first in the reply and is known last.
	var room [64]byte
	head := resp.Writer{Buf: room[:0]}
	head.Array(2)
	ReplyCursor(&head, next)
	head.Array(n)
	c.Insert(mark, head.Buf)
}

// Wants reports whether the pattern matches a name.
func (o *Options) Wants(name []byte) bool { return o.Pattern == nil || glob.Match(o.Pattern, name) }

// ReplyCursor replies a cursor, which is text.
func ReplyCursor(w *resp.Writer, cursor uint64) {
	var b [20]byte
	w.Bulk(strconv.AppendUint(b[:0], cursor, 10))
}
