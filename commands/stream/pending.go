package stream

// Entries that were delivered and not acknowledged: XACK, XPENDING, XCLAIM, XAUTOCLAIM.

import (
	"math"

	"github.com/limitkv/limitkv/engine/stream"
	"github.com/limitkv/limitkv/server/command"
)

var xackRow = &command.Command{
	Name: "xack", Arity: -4, Group: command.GroupStream, Since: "5.0.0",
	Flags:      command.Write | command.Fast,
	ACL:        streamACL,
	Keys:       []command.KeySpec{command.Key(1, command.RW|command.Update)},
	Summary:    "Acknowledges entries, which are not pending any more.",
	Complexity: "O(log N) for each entry, N being the number of those pending",
	Syntax:     "key group:string ID:string...",
	Run:        xack,
}

func xack(c *command.Ctx) {
	_, g, ok := groupOf(c)
	if !ok {
		return
	}
	if g == nil {
		c.Int(0)
		return
	}
	a := c.Cursor(3)
	ids := idArgs(&a)
	if a.Failed(c) {
		return
	}
	n := int64(0)
	for _, id := range ids {
		if g.Ack(id) {
			c.CountChange()
			n++
		}
	}
	c.Int(n)
}

// groupOf finds the stream and the group that the first two arguments name, nil
// if there is none. It reports false, with the error replied, if the key is of
// another kind.
func groupOf(c *command.Ctx) (s *stream.Stream, g *stream.Group, ok bool) {
	s, ok = lookup(c, c.Args[1])
	if s != nil {
		g = s.Group(c.Args[2])
	}
	return s, g, ok
}

var xpendingRow = &command.Command{
	Name: "xpending", Arity: -3, Group: command.GroupStream, Since: "5.0.0",
	Flags:      command.ReadOnly,
	ACL:        streamACL,
	Keys:       []command.KeySpec{command.Key(1, readKey)},
	Summary:    "Returns what is pending in a group: a summary, or the entries in a range of IDs.",
	Complexity: "O(log N + M), N being the number of entries pending and M of those looked at; the summary: O(1) for each consumer",
	Tips:       varies,
	Syntax:     "key group:string [filters={[IDLE min-idle-time:integer] start:string end:string count:integer [consumer:string]}]",
	History:    [][2]string{{"6.2.0", "IDLE, and ends that are not part of the range."}},
	Run:        xpending,
}

func xpending(c *command.Ctx) {
	n := len(c.Args)
	if n != 3 && (n < 6 || n > 9) {
		c.Error(command.ErrSyntax)
		return
	}
	var q pendingRange
	if n > 3 {
		var ok bool
		if q, ok = parsePending(c); !ok {
			return
		}
	}
	_, g, ok := groupOf(c)
	switch {
	case !ok:
	case g == nil:
		c.Error(noGroup(c.Args[1], c.Args[2], ""))
	case n == 3:
		replySummary(c, g)
	default:
		q.reply(c, g)
	}
}

// pendingRange says which of the pending entries are asked for.
type pendingRange struct {
	idle       int64
	start, end stream.ID
	count      int64
	consumer   []byte
	one        bool // of one consumer
}

func parsePending(c *command.Ctx) (q pendingRange, ok bool) {
	a := c.Cursor(3)
	if a.Is("IDLE") {
		q.idle = a.Int()
		if a.Left() < 3 {
			a.Syntax()
		}
	}
	first, second := a.Bytes(), a.Bytes()
	q.count = max(a.Int(), 0)
	if a.Err() == "" {
		ends := command.ArgsOf(first, second)
		q.start = startArg(&ends)
		if ends.Err() == "" {
			q.end = endArg(&ends)
		}
		if text := ends.Err(); text != "" {
			a.Fail(text)
		}
	}
	if a.More() {
		q.consumer, q.one = a.Bytes(), true
	}
	return q, !a.Failed(c)
}

// replySummary replies how many entries are pending, the first and the last of
// them, and with whom.
func replySummary(c *command.Ctx, g *stream.Group) {
	c.Array(4)
	c.Int(int64(g.Pending()))
	if g.Pending() == 0 {
		c.Null()
		c.Null()
		c.NullArray()
		return
	}
	replyID(c, g.FirstPending().ID)
	replyID(c, g.LastPending().ID)
	mark, n := c.Writer.Mark(), 0
	for _, consumer := range g.Consumers() {
		if consumer.Pending() == 0 {
			continue
		}
		n++
		c.Array(2)
		c.BulkString(consumer.Name)
		c.BulkInt(int64(consumer.Pending()))
	}
	c.ArrayFrom(mark, n)
}

func (q *pendingRange) reply(c *command.Ctx, g *stream.Group) {
	now := millis(c)
	c.Expect(g.Pending()) // all may be looked at to find one idle entry
	mark, n := c.Writer.Mark(), int64(0)
	visit := func(p stream.Pending) bool {
		if n == q.count || p.ID.Compare(q.end) > 0 {
			return false
		}
		idle := now - p.DeliveredMillis
		if q.idle != 0 && idle < q.idle {
			return true
		}
		n++
		c.Array(4)
		replyID(c, p.ID)
		c.BulkString(p.Consumer.Name)
		c.Int(max(idle, 0))
		c.Int(int64(p.Deliveries))
		return true
	}
	if !q.one {
		g.EachPending(q.start, visit)
	} else if consumer := g.Consumer(q.consumer); consumer != nil {
		g.EachPendingOf(consumer, q.start, visit)
	}
	c.ArrayFrom(mark, int(n))
}

var xclaimRow = &command.Command{
	Name: "xclaim", Arity: -6, Group: command.GroupStream, Since: "5.0.0",
	Flags:      command.Write | command.Fast,
	ACL:        streamACL,
	Keys:       []command.KeySpec{command.Key(1, command.RW|command.Update)},
	Summary:    "Passes pending entries to another consumer.",
	Complexity: "O(log N) for each entry, N being the number of those pending",
	Tips:       varies,
	Syntax: "key group:string consumer:string min-idle-time:string ID:string... [IDLE ms:integer] [TIME unix-time-milliseconds:unix-time] " +
		"[RETRYCOUNT count:integer] [FORCE] [JUSTID] [LASTID lastid:string]",
	Run: xclaim,
}

func xclaim(c *command.Ctx) {
	s, g, ok := groupOf(c)
	if !ok {
		return
	}
	if g == nil {
		c.Error(noGroup(c.Args[1], c.Args[2], ""))
		return
	}
	a := c.Cursor(4)
	how := stream.Claim{Deliveries: -1}
	how.MinIdleMillis = a.IntOr("ERR Invalid min-idle-time argument for XCLAIM")
	var ids []stream.ID
	for a.More() {
		id, ok := stream.ParseID(a.Peek(), 0)
		if !ok {
			break
		}
		ids = append(ids, id)
		a.Bytes()
	}
	last := parseClaim(&a, &how, millis(c))
	if a.Failed(c) {
		return
	}
	moved := last.Compare(g.LastID) > 0
	if moved {
		g.LastID = last
		c.CountChange()
	}
	l := groupLog{c: c, key: c.Args[1], group: c.Args[2], g: g}
	defer l.end()
	consumer := consumerOf(c, c.Args[1], g, c.Args[3], l.consumer)
	c.OwnEffects()
	mark, n := c.Writer.Mark(), 0
	for _, id := range ids {
		before := g.Pending()
		was, _ := g.PendingAt(id)
		claimed := s.Claim(g, consumer, id, how, millis(c))
		if claimed {
			replyClaimed(c, s, id, how.JustID)
			n++
		}
		switch {
		case claimed:
			was, _ = g.PendingAt(id)
			fallthrough
		case g.Pending() != before:
			c.CountChange()
			l.claim(was)
			moved = false // the effect of an entry contains it too
		}
	}
	if moved {
		l.groupID()
	}
	c.ArrayFrom(mark, n)
}

// parseClaim reads the options of XCLAIM, and returns the ID of LASTID.
func parseClaim(a *command.Args, how *stream.Claim, now int64) (last stream.ID) {
	delivered := int64(-1)
	for a.More() {
		switch {
		case a.Is("FORCE"):
			how.Force = true
		case a.Is("JUSTID"):
			how.JustID = true
		case a.IsWith("IDLE", 1):
			delivered = now - a.IntOr("ERR Invalid IDLE option argument for XCLAIM")
		case a.IsWith("TIME", 1):
			delivered = a.IntOr("ERR Invalid TIME option argument for XCLAIM")
		case a.IsWith("RETRYCOUNT", 1):
			how.Deliveries = a.IntOr("ERR Invalid RETRYCOUNT option argument for XCLAIM")
		case a.IsWith("LASTID", 1):
			last = idArg(a)
		default:
			a.Fail("ERR Unrecognized XCLAIM option '" + string(command.Text(a.Peek())) + "'")
		}
	}
	if delivered < 0 || delivered > now {
		delivered = now // a client's clock may be ahead
	}
	how.DeliveredMillis = delivered
	return last
}

// replyClaimed replies an entry that was claimed.
func replyClaimed(c *command.Ctx, s *stream.Stream, id stream.ID, justID bool) {
	if justID {
		replyID(c, id)
		return
	}
	if it := s.Range(id, id, false); it.Next() {
		replyEntry(c, &it)
	}
}

var xautoclaimRow = &command.Command{
	Name: "xautoclaim", Arity: -6, Group: command.GroupStream, Since: "6.2.0",
	Flags:      command.Write | command.Fast,
	ACL:        streamACL,
	Keys:       []command.KeySpec{command.Key(1, deleteKey)},
	Summary:    "Passes entries that have been pending for long to another consumer.",
	Complexity: "O(N log P), N being COUNT and P the number of entries pending",
	Tips:       varies,
	Syntax:     "key group:string consumer:string min-idle-time:string start:string [COUNT count:integer] [JUSTID]",
	History:    [][2]string{{"7.0.0", "The IDs of entries that are no longer in the stream are returned too."}},
	Run:        xautoclaim,
}

const (
	autoClaimCount    = 100
	autoClaimCountMax = math.MaxInt64 / 16
)

func xautoclaim(c *command.Ctx) {
	a := c.Cursor(4)
	idle := a.IntOr("ERR Invalid min-idle-time argument for XAUTOCLAIM")
	var start stream.ID
	if a.Err() == "" {
		start = startArg(&a)
	}
	count, justID := int64(autoClaimCount), false
	for a.More() {
		switch {
		case a.IsWith("COUNT", 1):
			const text = "ERR COUNT must be > 0"
			if count = a.IntOr(text); count < 1 || count > autoClaimCountMax {
				a.Fail(text)
			}
		case a.Is("JUSTID"):
			justID = true
		default:
			a.Syntax()
		}
	}
	if a.Failed(c) {
		return
	}
	s, g, ok := groupOf(c)
	if !ok {
		return
	}
	if g == nil {
		c.Error(noGroup(c.Args[1], c.Args[2], ""))
		return
	}
	expect(c, 8*g.Pending(), 8*min(count, int64(g.Pending())))
	l := groupLog{c: c, key: c.Args[1], group: c.Args[2], g: g}
	defer l.end()
	consumer := consumerOf(c, c.Args[1], g, c.Args[3], l.consumer)
	c.OwnEffects()
	var gone []stream.ID
	top, claimed := c.Writer.Mark(), 0
	next := s.AutoClaim(g, consumer, start, int(count), max(idle, 0), justID, millis(c),
		func(id stream.ID) {
			replyClaimed(c, s, id, justID)
			claimed++
			c.CountChange()
			p, _ := g.PendingAt(id)
			l.claim(p)
		},
		func(p stream.Pending) {
			gone = append(gone, p.ID)
			c.CountChange()
			l.claim(p)
		})
	c.ArrayFrom(top, claimed)
	list := append([]byte(nil), c.Buf[top:]...)
	c.Cut(top)
	c.Array(3)
	replyID(c, next)
	c.Raw(list)
	c.Array(len(gone))
	for _, id := range gone {
		replyID(c, id)
	}
}
