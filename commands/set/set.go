// Package set is the family of sets.
package set

import (
	"sync/atomic"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/set"
)

type family struct{ intset, entries, value *atomic.Int64 }

// Commands are the rows of the family.
func Commands(s *command.Server) []*command.Command {
	f := &family{
		intset:  s.Config.Int("set-max-intset-entries", int64(set.DefaultLimits.MaxIntset), 0, 1<<62, "most members of a set of integers"),
		entries: s.Config.Int("set-max-listpack-entries", int64(set.DefaultLimits.MaxPacked), 0, 1<<62, "most members of a packed set"),
		value:   s.Config.Int("set-max-listpack-value", int64(set.DefaultLimits.MaxPackedBytes), 0, 1<<62, "longest member of a packed set"),
	}
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

func (f *family) limits() set.Limits {
	return set.Limits{
		MaxIntset:      int(f.intset.Load()),
		MaxPacked:      int(f.entries.Load()),
		MaxPackedBytes: int(f.value.Load()),
	}
}

// lookup finds a set for reading, nil if the key is missing.
func lookup(c *command.Ctx, key []byte) (*set.Set, bool) {
	return command.Object[*set.Set](c, key, engine.KindSet)
}

// lookupWrite finds a set that is going to be changed.
func lookupWrite(c *command.Ctx, key []byte) (*set.Set, bool) {
	return command.ObjectWrite[*set.Set](c, key, engine.KindSet)
}

// removed tells of a removal, and deletes the key if nothing is left.
func removed(c *command.Ctx, key []byte, s *set.Set, event string) {
	c.Changed(key, engine.EventSet, event)
	if s.Len() == 0 {
		c.Delete(key)
		c.Changed(key, engine.EventGeneric, "del")
	}
}
