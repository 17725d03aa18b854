package generic

// DUMP and RESTORE: values in Redis's own format.

import (
	"errors"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/rdb"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/params"
	"github.com/limitkv/limitkv/server/value"
)

// dumper runs DUMP and RESTORE.
type dumper struct{ *params.Dumps }

func (d *dumper) dumpRow() *command.Command {
	return &command.Command{
		Name: "dump", Arity: 2, Group: command.GroupGeneric, Since: "2.6.0",
		Flags:      command.ReadOnly,
		ACL:        keyspaceACL,
		Keys:       []command.KeySpec{command.Key(1, readKey)},
		Summary:    "Returns a value in Redis's dump format.",
		Complexity: "O(N) in the size of the value",
		Tips:       varies,
		Syntax:     "key",
		Run:        d.dump,
	}
}

func (d *dumper) dump(c *command.Ctx) {
	e := c.Get(c.Args[1])
	if !e.Ok() {
		c.Null()
		return
	}
	c.Expect(4 * value.Elements(e))
	buf := dumps.Get().(*[]byte)
	*buf = rdb.AppendDump((*buf)[:0], e, d.Format())
	c.Bulk(*buf)
	if cap(*buf) <= dumpKeptMax {
		dumps.Put(buf)
	}
}

// dumps are buffers that DUMP reuses, unless they are longer than dumpKeptMax.
var dumps = sync.Pool{New: func() any { return new([]byte) }}

const dumpKeptMax = 256 << 10

func (d *dumper) restoreRow(name, since, summary string, group command.Group, flags command.Flags) *command.Command {
	return &command.Command{
		Name: name, Arity: -4, Group: group, Since: since,
		Flags:      command.Write | command.DenyOOM | flags,
		ACL:        []string{"keyspace", "dangerous"},
		Keys:       []command.KeySpec{command.Key(1, command.OW|command.Update)},
		Summary:    summary,
		Complexity: "O(N) in the size of the value, O(N log N) for a large sorted set",
		Syntax:     "key ttl:integer serialized-value:string [REPLACE] [ABSTTL] [IDLETIME seconds:integer] [FREQ frequency:integer]",
		History:    [][2]string{{"3.0.0", "REPLACE."}, {"5.0.0", "ABSTTL, IDLETIME and FREQ."}},
		Run:        d.restore,
	}
}

func (d *dumper) restoreRows() []*command.Command {
	return []*command.Command{
		d.restoreRow("restore", "2.6.0", "Makes a key of what DUMP returned.", command.GroupGeneric, 0),
		d.restoreRow("restore-asking", "3.0.0", "RESTORE, as nodes of a cluster send it to each other.", command.GroupServer, command.Asking|command.System),
	}
}

// restoring are RESTORE's options.
type restoring struct {
	replace, absolute bool
	idle, freq        int64 // -1: not given
}

func parseRestore(a *command.Args) (o restoring) {
	o.idle, o.freq = -1, -1
	for a.More() {
		switch {
		case a.Is("REPLACE"):
			o.replace = true
		case a.Is("ABSTTL"):
			o.absolute = true
		case o.freq == -1 && a.IsWith("IDLETIME", 1):
			if o.idle = a.Int(); o.idle < 0 {
				a.Fail("ERR Invalid IDLETIME value, must be >= 0")
			}
		case o.idle == -1 && a.IsWith("FREQ", 1):
			if o.freq = a.Int(); o.freq < 0 || o.freq > math.MaxUint8 {
				a.Fail("ERR Invalid FREQ value, must be >= 0 and <= 255")
			}
		default:
			a.Syntax()
		}
	}
	return o
}

// errFence is the reason why RESTORE refuses a lock.
var errFence = errors.New("the lock's fence is beyond all of this server's")

func (d *dumper) restore(c *command.Ctx) {
	a := c.Cursor(4)
	o := parseRestore(&a)
	if a.Failed(c) {
		return
	}
	key := c.Args[1]
	if !o.replace && c.GetWrite(key).Ok() {
		c.Error("BUSYKEY Target key name already exists.")
		return
	}
	a = c.Cursor(2)
	ttl := a.Int()
	if ttl < 0 {
		a.Fail("ERR Invalid TTL value, must be >= 0")
	}
	if a.Failed(c) {
		return
	}
	limits := d.Limits()
	limits.Valkey = c.Trusted() // a replica of Valkey, or a reader of its log, gets its payloads
	limits.Later = c.Trusted()  // and one of Redis 8.10 gets what its HIMPORT became
	limits.MaxString = int(c.StringMax(int64(limits.MaxString)))
	policy := c.Server.Config.Value("sanitize-dump-payload")
	if user := c.Session.User(); policy == "clients" && !c.Trusted() && user != nil {
		limits.Sanitize = !user.SkipSanitize.Load()
	}
	c.Expect(len(c.Args[3]) / 32)
	v, err := rdb.Load(c.Args[3], limits)
	switch {
	case errors.Is(err, rdb.ErrChecksum):
		c.Error("ERR DUMP payload version or checksum are wrong")
		return
	case err == nil && v.Kind == engine.KindLock && !c.Trusted() && c.TooFar(v.String, v.Object):
		err = errFence
	}
	if err != nil {
		c.Server.Logf('v', "RESTORE: %v", err)
		c.Error("ERR Bad data format")
		return
	}
	if text := refusesNames(c, key, v.Object); text != "" {
		c.Error(text)
		return
	}
	if policy != "no" {
		c.Server.Verified.Add(int64(v.Verified))
	}
	deleted := o.replace && c.Delete(key)
	now := c.Now / 1000
	if ttl != 0 && !o.absolute {
		ttl += min(now, math.MaxInt64-ttl)
	}
	if ttl != 0 && c.Past(ttl) { // it would be gone at once
		if deleted {
			c.Changed(key, engine.EventGeneric, "del")
			c.EffectRemoved(key)
		}
		c.OK()
		return
	}
	if deleted && !v.Kind.Plain() { // replicas that know only Redis's types get the DEL alone
		c.LogBefore([]byte("DEL"), key)
	}
	e := rdb.Put(&c.View, key, v, ttl)
	rdb.SetUsage(&c.View, e, o.idle, o.freq)
	c.Changed(key, engine.EventGeneric, "restore")
	if v.Repairs != nil {
		c.Server.Repaired.Add(1)
		c.Server.Logf('w', "RESTORE: repaired the value of key %.200q: %s", key, strings.Join(v.Repairs, "; "))
	}
	if relative := ttl != 0 && !o.absolute; c.Logging() && (relative || v.Repairs != nil) {
		args := slices.Clone(c.Args)
		if relative {
			args[2] = command.Number(ttl)
			args = append(args, []byte("ABSTTL"))
		}
		if v.Repairs != nil { // replicas may reject the original payload
			args[3] = rdb.AppendDump(nil, e, d.Format())
		}
		c.Effect(args...)
	}
	c.OK()
}
