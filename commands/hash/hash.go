// Package hash, internal to the server, is the family of hashes, the deadlines of fields included.
package hash

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/packed"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/params"
)

type family struct{ forms *params.HashLimits }

// Commands are the rows of the family.
func Commands(s *command.Server) []*command.Command {
	f := &family{s.Config.Hash()}
	rows := []*command.Command{
		hgetRow, hmgetRow, hgetallRow, hkeysRow, hvalsRow, hexistsRow, hlenRow, hstrlenRow,
		hrandfieldRow, hscanRow, hdelRow, hgetdelRow, hpersistRow, hgetexRow,
		f.hsetRow(), f.hmsetRow(), f.hsetnxRow(), f.hincrbyRow(), f.hincrbyfloatRow(), f.hsetexRow(),
	}
	rows = append(rows, expireRows...)
	return append(rows, ttlRows...)
}

var hashACL = []string{"hash"}

const (
	readKey   = command.RO | command.Access
	fastRead  = command.ReadOnly | command.Fast
	fastWrite = command.Write | command.DenyOOM | command.Fast
)

// limits are how large a packed hash may be, and the room for the one that the command works on.
func (f *family) limits(c *command.Ctx) hash.Limits {
	lim := f.forms.Now()
	lim.Room = c.EditRoom()
	return lim
}

// lookup finds a hash for reading, nil if the key is missing.
func lookup(c *command.Ctx, key []byte) (*hash.Hash, bool) {
	e, ok := c.Lookup(key, engine.KindHash)
	return c.ReadHash(e), ok
}

// lookupWrite finds a hash that is going to be changed. It is stored when the change is announced.
func lookupWrite(c *command.Ctx, key []byte) (*hash.Hash, bool) {
	e, ok := c.LookupWrite(key, engine.KindHash)
	return c.EditHash(key, e), ok
}

// deadlinesChanged lets the keyspace know that fields' deadlines changed.
func deadlinesChanged(c *command.Ctx, key []byte) {
	c.StoreEdit()
	if e := c.Peek(key); e.Ok() {
		c.InnerDue(e)
	}
}

// dropEmpty deletes the key if nothing is left.
func dropEmpty(c *command.Ctx, key []byte, h *hash.Hash) {
	if h.Len() == 0 {
		c.Delete(key)
		c.Notify(engine.EventGeneric, "del", key) // the change was announced
	}
}

// replyField replies a field's value, null if it is missing.
func replyField(c *command.Ctx, h *hash.Hash, field []byte) bool {
	if h != nil {
		var s packed.Scratch
		if value, ok := h.Get(field, &s); ok {
			c.Bulk(value)
			return true
		}
	}
	c.Null()
	return false
}
