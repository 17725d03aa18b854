package lkv

// LKV.LOG: what clients sent, for a test to look at.

import (
	"github.com/limitkv/limitkv/server/command"
)

// The log keeps the newest commands, as many as both limits allow.
const (
	logCommandsMax = 100_000
	logBytesMax    = 64 << 20
)

// log is what was received while it was on.
type log struct {
	on      bool
	entries []received // a queue: the oldest at first
	first   int
	bytes   int
	dropped int64
}

// received is a command as a client sent it.
type received struct {
	micros int64
	client int64
	db     int
	args   [][]byte
	bytes  int
}

// entryBytes is what an entry takes beside its arguments' bytes, and argBytes each argument.
const (
	entryBytes = 72
	argBytes   = 32
)

// add logs the context's command, with what is secret left out.
func (l *log) add(c *command.Ctx) {
	r := received{micros: c.Now, client: c.Session.ID, db: c.DB, args: command.Clone(c.Args), bytes: entryBytes}
	for i, a := range r.args {
		if c.Cmd != nil && c.Cmd.Secret != nil && c.Cmd.Secret(c.Args, i) {
			r.args[i] = []byte("(redacted)")
		}
		r.bytes += len(a) + argBytes
	}
	l.entries = append(l.entries, r)
	l.bytes += r.bytes
	for len(l.entries)-l.first > logCommandsMax || l.bytes > logBytesMax {
		l.bytes -= l.entries[l.first].bytes
		l.entries[l.first] = received{}
		l.first++
		l.dropped++
	}
	if l.first > 1000 && l.first > len(l.entries)/2 {
		l.entries = append([]received(nil), l.entries[l.first:]...)
		l.first = 0
	}
}

func (in *injector) logRow() *command.Command {
	f := family{in.s.Keyspace}
	const filter = "[MATCH pattern] [CLIENT client-id:integer]"
	return &command.Command{
		Name: "lkv.log", Arity: -2, Group: command.GroupTest, Since: "0.2.0",
		Flags:      command.Test | command.NoScript | command.NoMulti | command.Loading | command.Stale,
		Summary:    "Keeps what clients send, so that a test can look at it.",
		Complexity: "O(N) in the number of commands kept",
		Sub: []*command.Command{
			f.row("on", 2, "", "Begins to keep commands.", func(c *command.Ctx) { in.turnLog(c, true) }),
			f.row("off", 2, "", "Ends keeping; what was kept stays.", func(c *command.Ctx) { in.turnLog(c, false) }),
			f.row("reset", 2, "", "Forgets what was kept and returns how many commands there were.", in.resetLog),
			f.row("get", -2, filter+" [COUNT count:integer]", "Returns the commands that were kept, the oldest first.", in.getLog),
			f.row("count", -2, filter, "Counts the commands that were kept.", in.countLog),
		},
	}
}

func (in *injector) turnLog(c *command.Ctx, on bool) {
	in.mu.Lock()
	in.places.Of(c.KS).log.on = on
	in.arm()
	in.mu.Unlock()
	c.OK()
}

func (in *injector) resetLog(c *command.Ctx) {
	in.mu.Lock()
	kept := &in.places.Of(c.KS).log
	c.Int(int64(len(kept.entries)-kept.first) + kept.dropped)
	*kept = log{on: kept.on}
	in.mu.Unlock()
}

// wanted parses a filter and returns the entries that pass it.
func (in *injector) wanted(c *command.Ctx, counted bool) (list []received, ok bool) {
	a := c.Cursor(2)
	var pattern []byte
	client, most := int64(-1), int64(-1)
	for a.More() {
		switch {
		case a.IsWith("MATCH", 1):
			pattern = a.Bytes()
		case a.IsWith("CLIENT", 1):
			client = a.IntRange(0, 1<<62, command.ErrNotInt)
		case counted && a.IsWith("COUNT", 1):
			most = a.IntRange(1, 1<<62, "ERR COUNT must be positive")
		default:
			a.Syntax()
		}
	}
	if a.Failed(c) {
		return nil, false
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	kept := &in.places.Of(c.KS).log
	for _, r := range kept.entries[kept.first:] {
		if int64(len(list)) == most {
			break
		}
		if client >= 0 && r.client != client {
			continue
		}
		if pattern != nil {
			cmd, known := in.s.Table.Resolve(r.args)
			if !known {
				cmd = nil
			}
			if !matches(pattern, &command.Ctx{Request: &command.Request{Args: r.args}}, cmd) {
				continue
			}
		}
		list = append(list, r)
	}
	return list, true
}

func (in *injector) getLog(c *command.Ctx) {
	list, ok := in.wanted(c, true)
	if !ok {
		return
	}
	c.Array(len(list))
	for _, r := range list {
		c.Array(4)
		c.Int(r.micros / 1000)
		c.Int(r.client)
		c.Int(int64(r.db))
		c.Array(len(r.args))
		for _, a := range r.args {
			c.Bulk(a)
		}
	}
}

func (in *injector) countLog(c *command.Ctx) {
	if list, ok := in.wanted(c, false); ok {
		c.Int(int64(len(list)))
	}
}
