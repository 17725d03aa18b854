// Package list, internal to the server, is the family of lists.
package list

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/params"
)

type family struct{ nodes *params.ListLimits }

// Commands are the rows of the family.
func Commands(s *command.Server) []*command.Command {
	f := &family{s.Config.List()}
	return []*command.Command{
		f.pushRow("lpush", "1.0.0", "Adds elements at the head.", true, false),
		f.pushRow("rpush", "1.0.0", "Adds elements at the tail.", false, false),
		f.pushRow("lpushx", "2.2.0", "Adds elements at the head of a list that exists.", true, true),
		f.pushRow("rpushx", "2.2.0", "Adds elements at the tail of a list that exists.", false, true),
		f.popRow("lpop", "Takes elements from the head.", true),
		f.popRow("rpop", "Takes elements from the tail.", false),
		f.lmpopRow(), f.blmpopRow(),
		f.bpopRow("blpop", "Takes the element at the head, waiting for one.", true),
		f.bpopRow("brpop", "Takes the element at the tail, waiting for one.", false),
		f.lmoveRow(), f.rpoplpushRow(), f.blmoveRow(), f.brpoplpushRow(),
		llenRow, lindexRow, lrangeRow, lposRow,
		f.lsetRow(), f.linsertRow(), f.lremRow(), f.ltrimRow(),
	}
}

var listACL = []string{"list"}

const (
	readKey = command.RO | command.Access
	popKey  = command.RW | command.Access | command.Delete
	pushKey = command.RW | command.Insert
)

// limits are how large a node may be.
func (f *family) limits() list.Limits { return f.nodes.Now() }

// lookup finds a list for reading, nil if the key is missing.
func lookup(c *command.Ctx, key []byte) (*list.List, bool) {
	return command.Object[*list.List](c, key, engine.KindList)
}

// lookupWrite finds a list that is going to be changed.
func lookupWrite(c *command.Ctx, key []byte) (*list.List, bool) {
	return command.ObjectWrite[*list.List](c, key, engine.KindList)
}

// removed announces a removal, and deletes the key if nothing is left.
func removed(c *command.Ctx, key []byte, l *list.List, event string) {
	c.Changed(key, engine.EventList, event)
	if l.Len() == 0 {
		c.Delete(key)
		c.Notify(engine.EventGeneric, "del", key) // the change was announced
	}
}

// resolve turns a range of indexes, from the end if negative, into the first
// and the number of elements.
func resolve(start, stop int64, length int) (first, n int) {
	total := int64(length)
	if start < 0 {
		start = max(start+total, 0)
	}
	if stop < 0 {
		stop += total
	}
	stop = min(stop, total-1)
	if start > stop {
		return 0, 0
	}
	return int(start), int(stop-start) + 1
}

// events of taking from and adding to an end.
func popEvent(head bool) string {
	if head {
		return "lpop"
	}
	return "rpop"
}

func pushEvent(head bool) string {
	if head {
		return "lpush"
	}
	return "rpush"
}

// fromEnd reads LEFT or RIGHT.
func fromEnd(a *command.Args) (head bool) {
	switch {
	case a.Is("LEFT"):
		return true
	case a.Is("RIGHT"):
	default:
		a.Syntax()
	}
	return false
}
