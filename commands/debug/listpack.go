package debug

// DEBUG LISTPACK: the elements of a packed value, in the log.

import (
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/value"
	"github.com/limitkv/limitkv/zset"
)

// debugListpack writes the elements of a packed value to the log, where Redis
// writes to its standard output.
func debugListpack(f *family, c *command.Ctx) {
	e := c.Find(c.Args[2])
	switch {
	case !e.Ok():
		c.Error(command.ErrNoSuchKey)
	case !strings.HasPrefix(value.Encoding(e), "listpack"):
		c.Error("ERR Not a listpack encoded object.")
	default:
		f.s.Logf('w', "DEBUG LISTPACK %q: %s of %d bytes, holding %s", c.Args[2], value.Encoding(e), value.MemoryUsage(e), listpackElements(e))
		c.Status("Listpack structure printed on stdout")
	}
}

// listpackElements returns all elements of a packed value in order.
func listpackElements(e engine.Entry) string {
	var b []byte
	quote := func(v []byte) { b = append(strconv.AppendQuote(b, string(v)), ' ') }
	switch o := e.Object().(type) {
	case *list.List:
		for it := o.Iter(0, false); it.Next(); {
			quote(it.Value())
		}
	case *set.Set:
		for it := o.Iter(); it.Next(); {
			quote(it.Member())
		}
	case *zset.Set:
		o.Ascend(0, o.Len(), func(member []byte, score float64) bool {
			quote(member)
			b = append(number.AppendDouble(b, score), ' ')
			return true
		})
	case *hash.Hash:
		for it := o.Iter(); it.Next(); {
			quote(it.Field())
			quote(it.Value())
			if at := it.Deadline(); at != 0 {
				b = append(strconv.AppendInt(append(b, "until "...), at, 10), ' ')
			}
		}
	}
	return strings.TrimSpace(string(b))
}
