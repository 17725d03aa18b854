package acl

// ACL LOG: denials, newest first. Equal denials within a minute are one entry with a count.

import (
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/server/command"
)

const (
	// groupMillis is for how long an entry absorbs equal denials.
	groupMillis = 60000
	// groupLook is how many entries are compared with a new denial.
	groupLook = 10
)

// denial is what was denied, and why.
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

// Log is the list of denials.
type Log struct {
	max     *atomic.Int64
	mu      sync.Mutex
	entries []*entry // newest first
	next    int64    // id
}

// add counts a denial and logs it.
func (l *Log) add(c *command.Ctx, s *command.Server, d denial) {
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
		client = c.Session.Line(c)
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

// cut drops the oldest entries beyond the limit. A new limit takes effect at the next denial, as in Redis.
func (l *Log) cut() {
	if n := l.max.Load(); int64(len(l.entries)) > n {
		clear(l.entries[n:])
		l.entries = l.entries[:n]
	}
}

// Reset removes all entries.
func (l *Log) Reset() { l.mu.Lock(); l.entries = nil; l.mu.Unlock() }

// Entry is an entry of ACL LOG: a denial, or several equal ones.
type Entry struct {
	Count, ID                             int64
	CreatedMillis, UpdatedMillis          int64
	Reason, Context, Object, User, Client string
}

// Entries returns the newest entries, at most so many.
func (l *Log) Entries(most int64) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]Entry, min(most, int64(len(l.entries))))
	for i := range list {
		e := l.entries[i]
		list[i] = Entry{e.count, e.id, e.created, e.updated, reasonNames[e.reason], e.context, e.object, e.user, e.client}
	}
	return list
}
