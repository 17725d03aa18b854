// Package transactions, internal to the server, is MULTI, EXEC, DISCARD, WATCH and UNWATCH.
//
// EXEC runs under the locks of all its commands' keys and of the watched keys, so nothing comes between. dispatch takes them
// before it runs EXEC.
package transactions

import (
	"strings"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/hashslot"
)

// Commands are the rows of the family.
func Commands(s *server.Server) []*command.Command {
	t := family{s}
	return []*command.Command{
		{
			Name: "multi", Arity: 1, Group: command.GroupTransactions, Since: "1.2.0",
			Flags:      command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy | command.InMulti,
			ACL:        []string{"transaction"},
			Summary:    "Begins a transaction.",
			Complexity: "O(1)",
			Run:        t.multi,
		},
		{
			Name: "exec", Arity: 1, Group: command.GroupTransactions, Since: "1.2.0",
			Flags:      command.NoScript | command.Loading | command.Stale | command.SkipSlowlog | command.InMulti,
			ACL:        []string{"transaction"},
			Summary:    "Runs the queued commands of a transaction, all at once.",
			Complexity: "That of the queued commands",
			Plan:       t.plan,
			Refused:    t.refused,
			Run:        t.exec,
		},
		{
			Name: "discard", Arity: 1, Group: command.GroupTransactions, Since: "2.0.0",
			Flags:      command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy | command.InMulti,
			ACL:        []string{"transaction"},
			Summary:    "Drops the queued commands of a transaction.",
			Complexity: "O(N) in the number of queued commands",
			Run:        t.discard,
		},
		{
			Name: "watch", Arity: -2, Group: command.GroupTransactions, Since: "2.2.0",
			Flags:      command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy | command.InMulti,
			ACL:        []string{"transaction"},
			Keys:       []command.KeySpec{command.KeyRange(1, -1, 1, command.RO)},
			Summary:    "Makes the next transaction depend on keys staying as they are.",
			Complexity: "O(1) for each key",
			Syntax:     "key...",
			Run:        t.watch,
		},
		{
			Name: "unwatch", Arity: 1, Group: command.GroupTransactions, Since: "2.2.0",
			Flags:      command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy,
			ACL:        []string{"transaction"},
			Summary:    "Forgets the watched keys.",
			Complexity: "O(1)",
			Run:        t.unwatch,
		},
	}
}

type family struct{ s *server.Server }

func (t family) multi(c *command.Ctx) {
	m := &c.Session.Multi
	if m.Active {
		c.Error("ERR MULTI calls can not be nested")
		return
	}
	m.Active = true
	c.OK()
}

func (t family) watch(c *command.Ctx) {
	m := &c.Session.Multi
	if m.Active {
		c.Error("ERR WATCH inside MULTI is not allowed")
		return
	}
	if !m.Watcher.Dirty() { // otherwise EXEC runs nothing, whatever becomes of these
		for _, key := range c.Args[1:] {
			before := m.Watcher.Len()
			if c.Watch(&m.Watcher, key); m.Watcher.Len() > before {
				c.Session.Shown.WatchBytes.Add(int64(len(key)))
			}
		}
	}
	c.Session.Shown.Watches.Store(int32(m.Watcher.Len()))
	c.OK()
}

func (t family) unwatch(c *command.Ctx) {
	c.Unwatch()
	c.OK()
}

func (t family) discard(c *command.Ctx) {
	if !c.Session.Multi.Active {
		c.Error("ERR DISCARD without MULTI")
		return
	}
	c.Discard()
	c.OK()
}

// plan locks what the queued commands need, and the watched keys.
func (t family) plan(c *command.Ctx, set *engine.LockSet) (long bool) {
	m := &c.Session.Multi
	if m.Failed {
		return false
	}
	exec := c.Request
	for i := range m.Queue.Requests {
		c.Request = &m.Queue.Requests[i]
		if t.s.Plan(c, set) {
			long = true
		}
	}
	c.Request = exec
	m.Watcher.AddTo(set)
	return long
}

// refused ends the transaction when EXEC itself is refused.
func (t family) refused(c *command.Ctx, text string) string {
	c.Discard()
	return "EXECABORT Transaction discarded because of: " + strings.TrimPrefix(text, "ERR ")
}

// sameSlot tells whether the keys of all queued commands are of one slot of a
// cluster.
func sameSlot(queue []command.Request) bool {
	slot, ok := hashslot.None, true
	for _, q := range queue {
		if slot, ok = q.Cmd.Slot(q.Args, slot); !ok {
			return false
		}
	}
	return true
}

// guarded checks the queued commands that have a guard before any of them runs, and returns the first error.
func guarded(c *command.Ctx, queue []command.Request) (text string) {
	exec, db := c.Request, c.DB
	for i := range queue {
		if q := &queue[i]; q.Cmd.Guard != nil && text == "" {
			c.Request = q
			c.Forget()
			if text = c.Server.Refuses(c, q.Cmd, q.Args); text == "" {
				text = q.Cmd.Guard(c, q.Args)
			}
		}
	}
	c.Request, c.DB = exec, db
	c.Forget()
	return text
}

func (t family) exec(c *command.Ctx) {
	m := &c.Session.Multi
	if !m.Active {
		c.Error("ERR EXEC without MULTI")
		return
	}
	if t.s.Cluster && !sameSlot(m.Queue.Requests) {
		c.Discard()
		c.Error(command.ErrCrossSlot)
		return
	}
	switch {
	case m.Failed:
		c.Discard()
		c.Error(command.ErrExecAbort)
		return
	case m.Watcher.Dirty() || c.WatchedExpired(&m.Watcher):
		c.Discard()
		c.NullArray()
		return
	}
	if text := guarded(c, m.Queue.Requests); text != "" {
		c.Discard()
		c.Error(text)
		return
	}
	queue := c.TakeQueue()
	c.Exec = true
	c.Array(len(queue.Requests))
	now := engine.Monotonic()
	for i := range queue.Requests {
		c.DB = c.Session.DB()
		now = t.s.Queued(c, &queue.Requests[i], now)
	}
	c.Exec = false
	queue.GiveBack(c.Worker)
}
