package stream

// The effects of reading with a group and of claiming entries: the new state of each entry, in the commands that Redis's
// replicas get.

import (
	"github.com/limitkv/limitkv/engine/stream"
	"github.com/limitkv/limitkv/server/command"
)

// groupLog logs effects on a group.
type groupLog struct {
	c          *command.Ctx
	key, group []byte
	g          *stream.Group
	made       []byte // a consumer that was made, and that no effect has named yet
}

// claim logs with whom an entry is pending, or that it is no longer pending because it is gone from the stream.
func (l *groupLog) claim(p stream.Pending) { l.claimUpTo(p, l.g.LastID) }

// claimUpTo is claim with the ID up to which the group had read.
func (l *groupLog) claimUpTo(p stream.Pending, last stream.ID) {
	if !l.c.Logging() {
		return
	}
	if string(l.made) == p.Consumer.Name {
		l.made = nil
	}
	l.c.Effect([]byte("XCLAIM"), l.key, l.group, []byte(p.Consumer.Name), []byte("0"), p.ID.Append(nil),
		[]byte("TIME"), command.Number(p.DeliveredMillis), []byte("RETRYCOUNT"), command.Number(int64(p.Deliveries)),
		[]byte("FORCE"), []byte("JUSTID"), []byte("LASTID"), last.Append(nil))
}

// groupID logs how far the group has read.
func (l *groupLog) groupID() {
	l.end()
	if l.c.Logging() {
		l.c.Effect([]byte("XGROUP"), []byte("SETID"), l.key, l.group, l.g.LastID.Append(nil), []byte("ENTRIESREAD"), command.Number(l.g.EntriesRead))
	}
}

// consumer notes that a consumer was made.
func (l *groupLog) consumer(name []byte) { l.made = name }

// end logs a consumer that was made and got no entry. Redis does so only where no entry needs an acknowledgement, and omits
// the others.
func (l *groupLog) end() {
	if l.made != nil && l.c.Logging() {
		l.c.Effect([]byte("XGROUP"), []byte("CREATECONSUMER"), l.key, l.group, l.made)
		l.made = nil
	}
}
