package stream

// XREAD and XREADGROUP, waiting or not. A command that waits is served by reading again, with "$" as it was at the beginning.
// So it finds everything that all its keys have by then, and errors too.

import (
	"bytes"
	"math"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/stream"
	"github.com/limitkv/limitkv/server/command"
)

var xreadRow = &command.Command{
	Name: "xread", Arity: -4, Group: command.GroupStream, Since: "5.0.0",
	Flags:      command.Blocking | command.ReadOnly,
	ACL:        streamACL,
	Keys:       []command.KeySpec{{Flags: readKey, Keyword: "STREAMS", StartFrom: 1, Seek: seekStreams, Last: -1, Step: 1, Limit: 2}},
	Summary:    "Returns the entries of streams after given IDs, waiting for some if there are none.",
	Complexity: "O(log B + N) for each stream, B being the number of blocks and N of entries returned",
	Syntax:     "[COUNT count:integer] [BLOCK milliseconds:integer] STREAMS streams={key... ID:string...}",
	Run:        func(c *command.Ctx) { read(c, false) },
}

var xreadgroupRow = &command.Command{
	Name: "xreadgroup", Arity: -7, Group: command.GroupStream, Since: "5.0.0",
	Flags:      command.Blocking | command.Write,
	ACL:        streamACL,
	Keys:       []command.KeySpec{{Flags: readKey, Keyword: "STREAMS", StartFrom: 4, Seek: seekStreams, Last: -1, Step: 1, Limit: 2}},
	Summary:    "Delivers entries to a consumer of a group, waiting for some, or repeats what it has not acknowledged.",
	Complexity: "O(log B + N log P) for each stream, N being the number of entries returned and P of those pending",
	Syntax:     "GROUP group-block={group:string consumer:string} [COUNT count:integer] [BLOCK milliseconds:integer] [NOACK] STREAMS streams={key... ID:string...}",
	Run:        func(c *command.Ctx) { read(c, true) },
}

// seekStreams finds the argument after STREAMS, if that is the option: a group, a consumer or a key may have that name too.
func seekStreams(args [][]byte) int {
	for i := 1; i < len(args); i++ {
		switch arg := args[i]; {
		case command.EqualFold(arg, "STREAMS"):
			if i+1 == len(args) {
				return -1
			}
			return i + 1
		case command.EqualFold(arg, "BLOCK"), command.EqualFold(arg, "COUNT"):
			i++
		case command.EqualFold(arg, "GROUP"):
			i += 2
		case !command.EqualFold(arg, "NOACK"):
			return -1
		}
	}
	return -1
}

// reading is what a command's arguments say.
type reading struct {
	grouped         bool // XREADGROUP
	group, consumer []byte
	noAck           bool
	count           int64 // 0: all
	block           bool
	deadline        int64 // as in engine.Waiter
	keys, ids       [][]byte
	starts          []start // of a command that waits: what the IDs meant
}

// start is the position that an ID means.
type start struct {
	after stream.ID
	last  bool // the entry before the last one, "+"
}

// parse reads the arguments. It replies the error and reports false if there is
// one.
func (q *reading) parse(c *command.Ctx) bool {
	a := c.Cursor(1)
	hasGroup := false
	for a.More() && q.keys == nil {
		switch {
		case a.IsWith("BLOCK", 1):
			q.block, q.deadline = true, blockUntil(c, &a)
		case a.IsWith("COUNT", 1):
			q.count = max(a.Int(), 0)
		case a.IsWith("STREAMS", 1):
			rest := a.Rest()
			if len(rest)%2 != 0 {
				name, id := "xread", "ID, '+', or '$'"
				if q.grouped {
					name, id = "xreadgroup", "ID or '>'"
				}
				a.Fail("ERR Unbalanced '" + name + "' list of streams: for each stream key an " + id + " must be specified.")
				break
			}
			q.keys, q.ids = rest[:len(rest)/2], rest[len(rest)/2:]
		case a.IsWith("GROUP", 2):
			if !q.grouped {
				a.Fail("ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.")
			}
			hasGroup = true
			q.group, q.consumer = a.Bytes(), a.Bytes()
		case a.Is("NOACK"):
			if !q.grouped {
				a.Fail("ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.")
			}
			q.noAck = true
		default:
			a.Syntax()
		}
	}
	if q.keys == nil {
		a.Syntax()
	}
	if q.grouped && !hasGroup {
		a.Fail("ERR Missing GROUP option for XREADGROUP")
	}
	return !a.Failed(c)
}

// blockUntil takes a time-out in milliseconds as the time when it ends, 0 for
// never.
func blockUntil(c *command.Ctx, a *command.Args) int64 {
	n := a.IntOr(command.ErrTimeoutNotInt)
	if n < 0 {
		a.Fail(command.ErrTimeoutNegative)
	}
	if n > math.MaxInt64-millis(c) {
		a.Fail(command.ErrTimeoutRange)
	}
	if n == 0 || n > (math.MaxInt64-c.Now)/1000 {
		return 0
	}
	return c.Now + n*1000
}

// position is from where a stream is read.
type position struct {
	stream *stream.Stream // nil: the key is missing
	group  *stream.Group
	after  stream.ID // MaxID in a group: entries that are new to the group
}

// errMeaningless is the error for "$" and "+" in XREADGROUP.
func errMeaningless(id string) string {
	return "ERR The " + id + " ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by " +
		"specifying a proper ID, or use the > ID to get new messages. The " + id + " ID would just return an empty result set."
}

// resolve finds the streams, groups and IDs. It replies the error and reports
// false if there is one.
func (q *reading) resolve(c *command.Ctx) ([]position, bool) {
	at := make([]position, len(q.keys))
	for i, key := range q.keys {
		p := &at[i]
		var ok bool
		if p.stream, ok = lookup(c, key); !ok {
			return nil, false
		}
		if q.grouped {
			if p.stream != nil {
				p.group = p.stream.Group(q.group)
			}
			if p.group == nil {
				c.Error(noGroup(key, q.group, " in XREADGROUP with GROUP option"))
				return nil, false
			}
		}
		var from start
		if q.starts != nil {
			from = q.starts[i]
		} else if from, ok = q.start(c, p.stream, q.ids[i]); !ok {
			return nil, false
		}
		p.after = from.after
		if from.last && p.stream != nil && p.stream.Len() > 0 {
			p.after, _ = p.stream.LastEntryID().Prev()
		}
	}
	return at, true
}

// start reads the ID for a stream, nil if there is none. It replies the error and
// reports false if there is one.
func (q *reading) start(c *command.Ctx, st *stream.Stream, text []byte) (from start, ok bool) {
	switch id := string(command.Text(text)); {
	case q.grouped && (id == "$" || id == "+"):
		c.Error(errMeaningless(id))
		return from, false
	case id == "$":
		if st != nil {
			from.after = st.LastID()
		}
	case id == "+":
		from.last = true
	case id == ">" && !q.grouped:
		c.Error("ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.")
		return from, false
	case id == ">":
		from.after = stream.MaxID
	default:
		if from.after, ok = stream.ParseID(text, 0); !ok {
			c.Error(errID)
			return from, false
		}
	}
	return from, true
}

// serve replies the entries in the streams, and reports false if there are none.
func (q *reading) serve(c *command.Ctx, at []position) bool {
	top, served := c.Writer.Mark(), 0
	for i := range at {
		p := &at[i]
		c.Get(q.keys[i]) // Redis looks each up a second time, which INFO, keyspace events and the access frequency show
		if p.stream == nil {
			continue
		}
		var consumer *stream.Consumer
		l := groupLog{c: c, key: q.keys[i], group: q.group, g: p.group}
		if q.grouped {
			c.OwnEffects()
			consumer = consumerOf(c, q.keys[i], p.group, q.consumer, l.consumer)
		}
		fresh := p.after == stream.MaxID
		if !q.grouped || fresh {
			last := p.after
			if q.grouped {
				last = p.group.LastID
			}
			if p.stream.Len() == 0 || p.stream.LastEntryID().Compare(last) <= 0 {
				l.end()
				continue
			}
		}
		served++
		if c.Proto != 3 {
			c.Array(2)
		}
		c.Bulk(q.keys[i])
		switch {
		case !q.grouped:
			start, _ := p.after.Next()
			replyRange(c, p.stream, start, stream.MaxID, q.count, false)
		case fresh:
			expect(c, 2*p.stream.About(p.group.LastID, stream.MaxID), q.count)
			mark := c.Writer.Mark()
			var ids []stream.ID
			n := p.stream.Deliver(p.group, consumer, q.limit(), q.noAck, millis(c), func(it *stream.Iter) {
				replyEntry(c, it)
				if c.Logging() && !q.noAck {
					ids = append(ids, it.ID())
				}
			})
			c.ArrayFrom(mark, n)
			c.CountChange()
			for _, id := range ids {
				pending, _ := p.group.PendingAt(id)
				l.claimUpTo(pending, id)
			}
			l.groupID()
		default:
			q.history(c, p, consumer)
		}
		l.end()
	}
	switch {
	case served == 0:
		return false
	case c.Proto == 3:
		c.MapFrom(top, served)
	default:
		c.ArrayFrom(top, served)
	}
	return true
}

// limit is the count as the stream takes it.
func (q *reading) limit() int { return int(min(q.count, math.MaxInt32)) }

// history replies once more the entries that are pending with the consumer.
func (q *reading) history(c *command.Ctx, p *position, consumer *stream.Consumer) {
	expect(c, consumer.Pending(), q.count)
	mark := c.Writer.Mark()
	n := p.stream.History(p.group, consumer, p.after, q.limit(), millis(c), func(id stream.ID, it *stream.Iter) {
		if it != nil {
			replyEntry(c, it)
			return
		}
		c.Array(2) // it has been deleted since
		replyID(c, id)
		c.NullArray()
	})
	c.ArrayFrom(mark, n)
}

func read(c *command.Ctx, grouped bool) {
	q := reading{grouped: grouped}
	if !q.parse(c) {
		return
	}
	at, ok := q.resolve(c)
	if !ok || q.serve(c, at) {
		return
	}
	if !q.block || !c.CanBlock() {
		c.NullArray()
		return
	}
	q.wait(c, at)
}

// wait makes the session wait for entries after those where the reading begins.
func (q *reading) wait(c *command.Ctx, at []position) {
	kept := *q
	w := c.NewWait(&kept, engine.KindStream, q.deadline)
	first := len(w.Args) - 2*len(q.keys)
	kept.keys, kept.ids = w.Args[first:first+len(q.keys)], nil
	kept.group, kept.consumer = bytes.Clone(q.group), bytes.Clone(q.consumer)
	kept.starts = make([]start, len(at))
	for i := range at {
		kept.starts[i] = start{at[i].after, string(q.ids[i]) == "+"}
	}
	w.NoKey = q.grouped
	w.Keys = distinct(kept.keys)
	if len(w.Keys) > 1 {
		w.Also = w.Keys
	}
	c.Block(w)
}

// Try reads all keys again, whichever is ready.
func (q *reading) Try(c *command.Ctx, key []byte) (engine.Served, int64) {
	if !q.grouped && c.Peek(key).Kind() != engine.KindStream {
		return engine.ServedSkip, 0 // only XREADGROUP gets an error because the stream is gone
	}
	if at, ok := q.resolve(c); !ok || q.serve(c, at) {
		return engine.ServedDone, 0
	}
	return engine.ServedSkip, 0 // others may want less
}

// distinct leaves out keys that are named twice.
func distinct(keys [][]byte) [][]byte {
	var out [][]byte
next:
	for _, key := range keys {
		for _, seen := range out {
			if bytes.Equal(key, seen) {
				continue next
			}
		}
		out = append(out, key)
	}
	return out
}
