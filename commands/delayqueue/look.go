package delayqueue

// DQ.PEEK, DQ.LEN, DQ.INFO: looking without taking.

import (
	"math"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine/delayqueue"
)

// peekDefault is how many entries DQ.PEEK shows without COUNT.
const peekDefault = 10

func readRow(name string, arity int, syntax, summary string, run func(*command.Ctx)) *command.Command {
	return &command.Command{
		Name: name, Arity: arity, Group: command.GroupDelayQueue, Since: since,
		Flags:      command.ReadOnly,
		ACL:        acl,
		Keys:       []command.KeySpec{command.Key(1, command.RO|command.Access)},
		Summary:    summary,
		Complexity: "O(log N), and O(1) for each entry",
		Syntax:     syntax,
		Run:        run,
	}
}

var (
	peekRow = readRow("dq.peek", -2, "key [state=(READY | DELAYED | LEASED)] [COUNT n:integer]",
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

func peek(c *command.Ctx) {
	a := c.Cursor(2)
	state, count := readState(&a), int64(peekDefault)
	if a.IsWith("COUNT", 1) {
		count = min(a.IntRange(1, math.MaxInt64, errCount), batchMax)
	}
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
	if q == nil {
		c.Array(0)
		return
	}
	n := min(int(count), q.Count(state, c.Now))
	c.Array(n)
	q.Peek(state, c.Now, n, func(e delayqueue.Entry) {
		if e.State == delayqueue.Leased {
			e.DueMicros = e.UntilMicros // it is due again when the lease ends
		}
		replyEntry(c, &e)
	})
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
	waiters, _ := c.Waiting(c.Args[1])
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
		{"lease", s.LeaseMicros / 1000},
		{"tries", s.Tries},
		{"backoff", s.BackoffMicros / 1000},
		{"backoff_max", s.BackoffMaxMicros / 1000},
	}
	c.Map(len(fields) + 1)
	for _, field := range fields {
		c.BulkString(field.name)
		c.Int(field.n)
	}
	c.BulkString("dead")
	c.BulkString(s.Dead)
}
