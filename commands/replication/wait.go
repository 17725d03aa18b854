package replication

// WAIT and WAITAOF: how many replicas, and this server's disk, have what a connection wrote.

import (
	"math"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/command"
)

// waiting is a client that waits for replicas.
type waiting struct {
	wait   *command.Wait
	enough func() bool
	reply  func(w command.Replier)
}

func (f *family) waitRows() []*command.Command {
	return []*command.Command{
		{
			Name: "wait", Arity: 3, Group: command.GroupGeneric, Since: "3.0.0",
			Flags:      command.Blocking,
			ACL:        []string{"connection"},
			Summary:    "Waits until so many replicas have the connection's writes, and returns how many have.",
			Complexity: "O(1)",
			Tips:       []string{"request_policy:all_shards", "response_policy:agg_min"},
			Syntax:     "numreplicas:integer timeout:integer",
			Run:        f.waitReplicas,
		},
		{
			Name: "waitaof", Arity: 4, Group: command.GroupGeneric, Since: "7.2.0",
			Flags:      command.Blocking,
			ACL:        []string{"connection"},
			Summary:    "Waits until the connection's writes are synced in the append-only files of this server and of so many replicas.",
			Complexity: "O(1)",
			Tips:       []string{"request_policy:all_shards", "response_policy:agg_min"},
			Syntax:     "numlocal:integer numreplicas:integer timeout:integer",
			Run:        f.waitAOF,
		},
	}
}

// have is how many replicas have acknowledged an offset, or have it on their disks.
func (f *family) have(offset journal.LSN, synced bool) (n int64) {
	for _, r := range f.all() {
		at := r.acked.Load()
		if synced {
			at = r.synced.Load()
		}
		if r.isOnline() && at >= int64(offset) {
			n++
		}
	}
	return n
}

func (f *family) waitReplicas(c *command.Ctx) {
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
	if there := f.have(offset, false); there >= replicas || !c.CanBlock() {
		c.Int(there)
		return
	}
	f.block(c, timeout, func() bool { return f.have(offset, false) >= replicas },
		func(w command.Replier) { w.Int(f.have(offset, false)) })
}

// checkTimeout refuses a timeout that is negative, or whose end is no time.
func checkTimeout(c *command.Ctx, a *command.Args, millis int64) {
	switch {
	case millis < 0:
		a.Fail(command.ErrTimeoutNegative)
	case millis > math.MaxInt64-c.Now/1000:
		a.Fail(command.ErrTimeoutRange)
	}
}

const errNotPositive = "ERR value is out of range, must be positive"

func (f *family) waitAOF(c *command.Ctx) {
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
		return here, f.have(offset, true)
	}
	logs := func() bool { _, logs := srv.Keyspace.Journal.Synced(wrote); return logs }
	reply := func(w command.Replier) {
		if local > 0 && !logs() { // it was turned off meanwhile
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
	wait := f.block(c, timeout, enough, reply)
	if local > 0 {
		sess := c.Session
		go func() {
			f.s.Persistence.SyncLog(func() bool { return sess.Blocked.Load() == wait })
			f.look()
		}()
	}
}

// block has the session wait until there is enough, or its time is over. Replicas are asked how far they are.
func (f *family) block(c *command.Ctx, timeoutMillis int64, enough func() bool, reply func(w command.Replier)) *command.Wait {
	deadline := int64(0)
	if timeoutMillis > 0 {
		deadline = c.Now + min(timeoutMillis, (math.MaxInt64-c.Now)/1000)*1000
	}
	w := c.NewWait(nil, engine.KindNone, deadline)
	w.Lapsed = reply
	c.Block(w)
	f.mu.Lock()
	f.waits = append(f.waits, &waiting{w, enough, reply})
	f.mu.Unlock()
	if f.asked.CompareAndSwap(false, true) { // once for all who ask in this turn
		c.Session.Conn.Post(func() {
			f.asked.Store(false)
			f.send(getAckCommand)
			f.look()
		})
	}
	return w
}

// look ends the waits for which there is enough, and forgets those that have ended.
func (f *family) look() {
	f.mu.Lock()
	if len(f.waits) == 0 {
		f.mu.Unlock()
		return
	}
	waits := append([]*waiting(nil), f.waits...)
	f.mu.Unlock()
	over := map[*waiting]bool{}
	for _, x := range waits {
		if x.wait.Gone() {
			over[x] = true
		} else if x.enough() {
			x.wait.Unblock(func(w *resp.Writer) { x.reply(w) }, false)
			over[x] = true
		}
	}
	if len(over) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	rest := f.waits[:0]
	for _, x := range f.waits {
		if !over[x] {
			rest = append(rest, x)
		}
	}
	clear(f.waits[len(rest):])
	f.waits = rest
}
