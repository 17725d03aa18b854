// Package str, internal to the server, is the family of strings: text, counters and parts of strings.
package str

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
	"sync/atomic"
)

// family is what the commands share: the longest string that may be made.
type family struct{ lengthMax *atomic.Int64 }

// Commands are the rows of the family.
func Commands(s *command.Server) []*command.Command {
	f := &family{lengthMax: s.Config.MaxBulk()}
	return []*command.Command{
		getRow, setRow, setnxRow, setexRow, psetexRow, getsetRow, getdelRow, getexRow,
		mgetRow, msetRow, msetnxRow, strlenRow, getrangeRow, substrRow, lcsRow,
		incrRow, decrRow, incrbyRow, decrbyRow, incrbyfloatRow,
		f.appendRow(), f.setrangeRow(),
	}
}

var stringACL = []string{"string"}

const (
	readKey   = command.RO | command.Access
	updateKey = command.RW | command.Access | command.Update
	fastWrite = command.Write | command.DenyOOM | command.Fast
)

// replyString replies the value of a string, null for a missing key.
func replyString(c *command.Ctx, e engine.Entry) {
	if !e.Ok() {
		c.Null()
		return
	}
	if n, ok := e.Int(); ok {
		c.BulkInt(n)
		return
	}
	if c.Shares(e.Len()) {
		c.BulkShared(c.ShareString(e))
		return
	}
	b := e.Bytes(nil)
	c.ExpectBytes(len(b))
	c.Bulk(b)
}

// tooLong replies the error for a string that would exceed the limit.
func (f *family) tooLong(c *command.Ctx, size, more int64) bool {
	if more > c.StringMax(f.lengthMax.Load())-size {
		c.Error(command.ErrStringTooLong)
		return true
	}
	return false
}
