package delayqueue

// DQ.PEEK, DQ.LEN, DQ.INFO: looking without taking.

import (
	"math"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/glob"
)

// peekDefault is how many entries DQ.PEEK shows without COUNT.
const peekDefault = 10

func readRow(name string, arity int, syntax, summary string, run func(*command.Ctx)) *command.Command {
	return &command.Command{
		Name: name, Arity: arity, Group: command.GroupDelayQueue, Since: since,
		Flags:      command.ReadOnly,
		Keys:       []command.KeySpec{command.Key(1, command.RO|command.Access)},
		Summary:    summary,
		Complexity: "O(log N), and O(1) for each entry",
		Syntax:     syntax,
		Run:        run,
	}
}

var (
	peekRow = readRow("dq.peek", -2, "key [state=(READY | DELAYED | LEASED)] [FROM id:string] [MATCH pattern:pattern] [FULL] [COUNT n:integer]",
		"Shows entries of a delay queue without taking them.", peek)
	lenRow = readRow("dq.len", -2, "key [state=(READY | DELAYED | LEASED)]",
		"Counts the entries of a delay queue.", length)
	infoRow = readRow("dq.info", 2, "key",
		"Shows how a delay queue stands: counts, totals, what is next, who waits, its defaults.", info)
)

// readState takes the name of a state, if one is next.
func readState(a *command.Args) delayqueue.State {
	switch {
	case a.Is("READY"):
		return delayqueue.Ready
	case a.Is("DELAYED"):
		return delayqueue.Delayed
	case a.Is("LEASED"):
		return delayqueue.Leased
	}
	return delayqueue.Any
}

// peeking is what DQ.PEEK asks for.
type peeking struct {
	state   delayqueue.State
	from    []byte // the id to begin with, nil for the first
	pattern []byte // of ids, nil for all
	full    bool
	count   int
}

func readPeek(a *command.Args) (o peeking) {
	o.state, o.count = readState(a), peekDefault
	counted := false
	for a.More() {
		switch {
		case o.from == nil && a.IsWith("FROM", 1):
			o.from, _ = delayqueue.ParseName(a.Bytes())
		case o.pattern == nil && a.IsWith("MATCH", 1):
			o.pattern = a.Bytes()
		case !o.full && a.Is("FULL"):
			o.full = true
		case !counted && a.IsWith("COUNT", 1):
			counted = true
			o.count = int(min(a.IntRange(1, math.MaxInt64, errCount), batchMax))
		default:
			a.Syntax()
		}
	}
	return o
}

func peek(c *command.Ctx) {
	a := c.Cursor(2)
	o := readPeek(&a)
	if a.Failed(c) {
		return
	}
	q, ok := lookup(c, c.Args[1])
	if !ok {
		return
	}
	if q == nil && o.from == nil {
		c.Array(0)
		return
	}
	c.Expect(2 * o.count)
	found, q, ok := o.find(c, q)
	if !ok {
		c.Error(errFrom)
		return
	}
	c.Array(len(found))
	for i := range found {
		e := &found[i]
		if o.full {
			replyFull(c, q, e)
			continue
		}
		if e.State == delayqueue.Leased {
			e.DueMicros = e.UntilMicros // it is due again when the lease ends
		}
		replyEntry(c, e)
	}
}

// lookStep is how many entries are looked at before the lock is released: that takes about 50 microseconds, more with a
// costly pattern.
const lookStep = 256

// find finds the entries that are asked for. It returns the queue, nil if it no longer exists, and reports false if FROM
// names no entry. If it looks at many entries, others use the queue in between; the entries found are as they were at the
// start.
func (o *peeking) find(c *command.Ctx, q *delayqueue.Queue) ([]delayqueue.Entry, *delayqueue.Queue, bool) {
	if q == nil {
		return nil, nil, false
	}
	search, ok := q.Search(o.state, c.Now, o.from, o.count, func(id []byte) bool { return o.pattern == nil || glob.Match(o.pattern, id) })
	if !ok {
		return nil, nil, false
	}
	defer func() { search.End(q != nil) }()
	n := lookStep
	if o.pattern == nil {
		n = o.count
	}
	if search.Next(n) {
		c.Expect(q.Len())
		for c.Step() {
			if now, _ := c.Find(c.Args[1]).Object().(*delayqueue.Queue); now != q {
				q = nil
				break
			}
			if !search.Next(lookStep) {
				break
			}
		}
	}
	return search.End(q != nil), q, true
}

// stateNames are the names of the states in DQ.PEEK FULL.
var stateNames = map[delayqueue.State]string{
	delayqueue.Ready: "ready", delayqueue.Delayed: "delayed", delayqueue.Leased: "leased", delayqueue.Dying: "dying",
}

// replyFull appends all fields of an entry. A field that the entry does not have is -1 or empty; so is its schedule if q is
// nil.
func replyFull(c *command.Ctx, q *delayqueue.Queue, e *delayqueue.Entry) {
	x := e.Extra()
	var name [64]byte
	span := func(micros int64) int64 {
		if micros == 0 {
			return -1
		}
		return ceilMillis(micros)
	}
	first := int64(-1)
	if x.MaxWaitMicros > 0 {
		first = ceilMillis(x.FirstMicros)
	}
	c.Map(14)
	c.BulkString("id")
	c.Bulk(e.AppendName(name[:0]))
	c.BulkString("payload")
	c.Bulk(e.Payload)
	c.BulkString("state")
	c.BulkString(stateNames[e.State])
	for _, field := range []struct {
		name string
		n    int64
	}{
		{"due", ceilMillis(e.DueMicros)}, {"attempt", e.Attempt}, {"lease_until", span(e.UntilMicros)}, {"prio", int64(x.Prio)},
		{"expire", span(x.ExpireMicros)}, {"unique", span(x.UniqueMicros)}, {"maxwait", span(x.MaxWaitMicros)}, {"first_added", first},
	} {
		c.BulkString(field.name)
		c.Int(field.n)
	}
	c.BulkString("group")
	c.Bulk(x.Group)
	c.BulkString("schedule")
	plan := ""
	if q != nil {
		plan = planText(q.ScheduleOf(e.ID))
	}
	c.BulkString(plan)
	c.BulkString("reason")
	c.Bulk(x.Reason)
}

func length(c *command.Ctx) {
	a := c.Cursor(2)
	state := readState(&a)
	if a.More() {
		a.Syntax()
	}
	if a.Failed(c) {
		return
	}
	q, ok := lookup(c, c.Args[1])
	if !ok {
		return
	}
	n := 0
	if q != nil {
		n = q.Count(state, c.Now)
	}
	c.Int(int64(n))
}

func info(c *command.Ctx) {
	q, ok := lookup(c, c.Args[1])
	if !ok {
		return
	}
	if q == nil {
		c.Error(command.ErrNoSuchKey)
		return
	}
	next, oldest := int64(-1), int64(0)
	if head, ok := q.NextHead(); ok {
		next = ceilMillis(head)
		oldest = max(0, (c.Now-head)/1000)
	}
	waiters, _ := c.Waiting(c.Args[1], engine.KindDelayQueue)
	t, s := q.Totals(), q.Settings()
	fields := []struct {
		name string
		n    int64
	}{
		{"ready", int64(q.Count(delayqueue.Ready, c.Now))},
		{"delayed", int64(q.Count(delayqueue.Delayed, c.Now))},
		{"leased", int64(q.Count(delayqueue.Leased, c.Now))},
		{"dying", int64(q.Dying())},
		{"next_due", next},
		{"oldest_age", oldest},
		{"waiters", int64(waiters)},
		{"added", t.Added},
		{"delivered", t.Delivered},
		{"acked", t.Acked},
		{"nacked", t.Nacked},
		{"expired", t.Expired},
		{"dead_lettered", t.Dead},
		{"removed", t.Removed},
		{"overdue", t.Overdue},
		{"remembered", int64(q.Remembered())},
		{"behind", int64(q.Behind())},
		{"lease", s.LeaseMicros / 1000},
		{"tries", s.Tries},
		{"backoff", s.BackoffMicros / 1000},
		{"backoff_max", s.BackoffMaxMicros / 1000},
		{"maxlen", s.MaxLen},
		{"paused", flag(s.Paused)},
		{"groups", int64(q.Groups())},
		{"groups_conc", s.GroupConc},
	}
	c.Map(len(fields) + 4)
	for _, field := range fields {
		c.BulkString(field.name)
		c.Int(field.n)
	}
	c.BulkString("dead")
	c.BulkString(s.Dead)
	c.BulkString("limit")
	c.BulkString(s.Limit)
	c.BulkString("groups_rules")
	c.BulkString(s.GroupRules)
	c.BulkString("schedules")
	replyPlans(c, q)
}

func flag(on bool) int64 {
	if on {
		return 1
	}
	return 0
}
