package acl

// ACL LOG: what was denied, newest first. What repeats within a minute is one
// entry that counts.

import (
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/server/command"
)

const (
	// groupMillis is how long an entry takes up what is like it.
	groupMillis = 60000
	// groupLook is how many entries are looked at for a like one.
	groupLook = 10
)

// denial is something that was denied.
type denial struct {
	reason       reason
	object, user string
	context      string
}

type entry struct {
	denial
	count            int64
	id               int64
	created, updated int64 // in Unix milliseconds
	client           string
}

type log struct {
	max     *atomic.Int64
	mu      sync.Mutex
	entries []*entry // newest first
	next    int64    // id
}

// add counts a denial and enters it into the log.
func (l *log) add(c *command.Ctx, s *command.Server, d denial) {
	switch d.reason {
	case deniedAuth:
		s.Stats.DeniedAuth.Add(1)
	case deniedCommand:
		s.Stats.DeniedCommand.Add(1)
	case deniedKey:
		s.Stats.DeniedKey.Add(1)
	case deniedChannel:
		s.Stats.DeniedChannel.Add(1)
	}
	switch {
	case c.Script:
		d.context = "lua"
	case c.Exec || c.Session.Multi.Active:
		d.context = "multi"
	default:
		d.context = "toplevel"
	}
	now, client := c.Now/1000, ""
	if c.Session.Conn != nil {
		client = s.Connections.Show(c, c.Session)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.cut()
	if l.max.Load() == 0 {
		return
	}
	for i, e := range l.entries[:min(groupLook, len(l.entries))] {
		if e.denial == d && now-e.updated <= groupMillis && e.updated-now <= groupMillis {
			copy(l.entries[1:i+1], l.entries[:i])
			l.entries[0] = e
			e.count++
			e.updated, e.client = now, client
			return
		}
	}
	l.entries = append([]*entry{{denial: d, count: 1, id: l.next, created: now, updated: now, client: client}}, l.entries...)
	l.next++
}

// cut drops the oldest entries beyond the limit, which takes effect with the
// next denial, as in Redis.
func (l *log) cut() {
	if n := l.max.Load(); int64(len(l.entries)) > n {
		clear(l.entries[n:])
		l.entries = l.entries[:n]
	}
}

func (l *log) reset() { l.mu.Lock(); l.entries = nil; l.mu.Unlock() }

// command is ACL LOG.
func (l *log) command(c *command.Ctx) {
	count := int64(10)
	switch {
	case len(c.Args) > 3:
		c.Error(command.ErrSubcommandSyntax("ACL", c.Args[1]))
		return
	case len(c.Args) == 3 && command.EqualFold(c.Args[2], "RESET"):
		l.reset()
		c.OK()
		return
	case len(c.Args) == 3:
		a := c.Cursor(2)
		if count = max(0, a.Int()); a.Failed(c) {
			return
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	count = min(count, int64(len(l.entries)))
	c.Array(int(count))
	for _, e := range l.entries[:count] {
		c.Map(10)
		c.BulkString("count")
		c.Int(e.count)
		for _, field := range [][2]string{
			{"reason", reasonNames[e.reason]}, {"context", e.context}, {"object", e.object}, {"username", e.user},
		} {
			c.BulkString(field[0])
			c.BulkString(field[1])
		}
		c.BulkString("age-seconds")
		c.Double(float64(c.Now/1000-e.updated) / 1000)
		c.BulkString("client-info")
		c.BulkString(e.client)
		c.BulkString("entry-id")
		c.Int(e.id)
		c.BulkString("timestamp-created")
		c.Int(e.created)
		c.BulkString("timestamp-last-updated")
		c.Int(e.updated)
	}
}
