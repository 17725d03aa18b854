// Package scan is what SCAN, HSCAN, SSCAN and ZSCAN share: options, cursors, the reply.
package scan

import (
	"strconv"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/commands/glob"
	"github.com/limitkv/limitkv/resp/number"
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

// scanCountMax bounds the work of one call; a larger COUNT is taken for it.
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

// Cursor reads the cursor of HSCAN, SSCAN and ZSCAN.
func Cursor(c *command.Ctx) (cursor uint64, ok bool) {
	if cursor, ok = number.ParseUint(c.Args[2]); !ok {
		c.Error(command.ErrInvalidCursor)
	}
	return cursor, ok
}

// ReplyNone replies that there is nothing to scan: the key is missing.
// Redis does not look at the options then.
func ReplyNone(c *command.Ctx) {
	c.Array(2)
	c.BulkString("0")
	c.Array(0)
}

// Wants tells whether the pattern lets a name through.
func (o *Options) Wants(name []byte) bool { return o.Pattern == nil || glob.Match(o.Pattern, name) }

// ReplyCursor replies a cursor, which is text.
func ReplyCursor(c *command.Ctx, cursor uint64) {
	var b [20]byte
	c.Bulk(strconv.AppendUint(b[:0], cursor, 10))
}
