package replication

// WAIT and WAITAOF: how many replicas, and this server's disk, have what a connection wrote.

import (
	"math"

	"github.com/limitkv/limitkv/server/command"
)

func (f *family) waitRow() *command.Command {
	return &command.Command{
		Name: "wait", Arity: 3, Group: command.GroupGeneric, Since: "3.0.0",
		Flags:      command.Blocking,
		ACL:        []string{"connection"},
		Summary:    "Waits until so many replicas have the connection's writes, and returns how many have.",
		Complexity: "O(1)",
		Tips:       []string{"request_policy:all_shards", "response_policy:agg_min"},
		Syntax:     "numreplicas:integer timeout:integer",
		Run:        f.wait,
	}
}

func (f *family) wait(c *command.Ctx) {
	if f.s.Follows() {
		c.Error("ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is configured to be writable (which is not the default) writes to replicas are just local and are not propagated.")
		return
	}
	a := c.Cursor(1)
	replicas := a.Int()
	timeout := a.IntOr(command.ErrTimeoutNotInt)
	checkTimeout(c, &a, timeout)
	if a.Failed(c) {
		return
	}
	offset := c.Session.Offset
	if there := f.node.Have(offset, false); there >= replicas || !c.CanBlock() {
		c.Int(there)
		return
	}
	f.node.Wait(c, timeout, func() bool { return f.node.Have(offset, false) >= replicas },
		func(w command.Replier) { w.Int(f.node.Have(offset, false)) })
}

// checkTimeout refuses a timeout that is negative, or that ends after the last possible time.
func checkTimeout(c *command.Ctx, a *command.Args, millis int64) {
	switch {
	case millis < 0:
		a.Fail(command.ErrTimeoutNegative)
	case millis > math.MaxInt64-c.Now/1000:
		a.Fail(command.ErrTimeoutRange)
	}
}

func (f *family) waitaofRow() *command.Command {
	return &command.Command{
		Name: "waitaof", Arity: 4, Group: command.GroupGeneric, Since: "7.2.0",
		Flags:      command.Blocking,
		ACL:        []string{"connection"},
		Summary:    "Waits until the connection's writes are synced in the append-only files of this server and of so many replicas.",
		Complexity: "O(1)",
		Tips:       []string{"request_policy:all_shards", "response_policy:agg_min"},
		Syntax:     "numlocal:integer numreplicas:integer timeout:integer",
		Run:        f.waitaof,
	}
}

const errNotPositive = "ERR value is out of range, must be positive"

func (f *family) waitaof(c *command.Ctx) {
	a := c.Cursor(1)
	local := a.IntRange(0, 1, errNotFlag)
	replicas := a.IntOr(errNotPositive)
	if replicas < 0 {
		a.Fail(errNotPositive)
	}
	timeout := a.IntOr(command.ErrTimeoutNotInt)
	checkTimeout(c, &a, timeout)
	if a.Failed(c) {
		return
	}
	if f.s.Follows() {
		c.Error("ERR WAITAOF cannot be used with replica instances. Please also note that writes to replicas are just local and are not propagated.")
		return
	}
	const noLog = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."
	srv, wrote, offset := c.Server, c.Session.Wrote, c.Session.Offset
	state := func() (here, there int64) {
		if synced, _ := srv.Keyspace.Journal.Synced(wrote); synced {
			here = 1
		}
		return here, f.node.Have(offset, true)
	}
	logs := func() bool { _, logs := srv.Keyspace.Journal.Synced(wrote); return logs }
	reply := func(w command.Replier) {
		if local > 0 && !logs() { // the log was turned off meanwhile
			w.Error(noLog)
			return
		}
		here, there := state()
		w.Array(2)
		w.Int(here)
		w.Int(there)
	}
	enough := func() bool {
		here, there := state()
		return here >= local && there >= replicas || local > 0 && !logs()
	}
	if local > 0 && !logs() {
		c.Error(noLog)
		return
	}
	if enough() || !c.CanBlock() {
		reply(c.Writer)
		return
	}
	wait := f.node.Wait(c, timeout, enough, reply)
	if local > 0 {
		sess := c.Session
		go func() {
			f.s.Persistence.SyncLog(func() bool { return sess.Blocked.Load() == wait })
			f.node.Look()
		}()
	}
}
