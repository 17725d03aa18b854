// Package set, internal to the server, is the family of sets.
package set

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/params"
)

type family struct{ forms *params.SetLimits }

// Commands are the rows of the family.
func Commands(s *command.Server) []*command.Command {
	f := &family{s.Config.Set()}
	rows := []*command.Command{
		f.saddRow(), sremRow, f.smoveRow(), f.spopRow(),
		scardRow, sismemberRow, smismemberRow, smembersRow, srandmemberRow, sscanRow,
	}
	return append(rows, f.algebraRows()...)
}

var setACL = []string{"set"}

const (
	readKey  = command.RO | command.Access
	fastRead = command.ReadOnly | command.Fast
)

func (f *family) limits() set.Limits { return f.forms.Now() }

// lookup finds a set for reading, nil if the key is missing.
func lookup(c *command.Ctx, key []byte) (*set.Set, bool) {
	return command.Object[*set.Set](c, key, engine.KindSet)
}

// lookupWrite finds a set that is going to be changed.
func lookupWrite(c *command.Ctx, key []byte) (*set.Set, bool) {
	return command.ObjectWrite[*set.Set](c, key, engine.KindSet)
}

// removed announces a removal, and deletes the key if nothing is left.
func removed(c *command.Ctx, key []byte, s *set.Set, event string) {
	c.Changed(key, engine.EventSet, event)
	if s.Len() == 0 {
		c.Delete(key)
		c.Notify(engine.EventGeneric, "del", key) // the change was announced
	}
}
