package replication

// A server's position in its stream: the stream's source, and whether the keys match it.

import (
	"sync"

	"github.com/limitkv/limitkv/engine/journal"
)

// Place is a place in a stream.
type Place struct {
	ID       string
	Offset   int64
	Selected int // the database that the stream has selected there
}

// Position is a server's place in a stream. The stream comes from the server's own log while it is a primary, and from
// its primary while it is a replica. Methods that change the role, or replace the keys, are called under the locks of
// all shards.
type Position struct {
	Stream *Stream
	log    *journal.Log

	// mu guards the fields below. The locks of the log and of the stream may be taken under it.
	mu  sync.Mutex
	own *journal.Follower // reads the server's log if the stream comes from it
	// selected returns the database that the primary's stream has selected; nil if the server follows no primary.
	selected func() int
	restored int // the database that is selected where a restored stream continues
	// whole: a replica's keys are the result of the stream up to its offset, so that the stream can be continued there.
	whole bool
}

// NewPosition returns the position of a primary whose stream does not store anything yet.
func NewPosition(s *Stream, log *journal.Log) *Position { return &Position{Stream: s, log: log} }

// lead makes the log the stream's source.
func (p *Position) lead() {
	p.own.Leave()
	p.own = p.log.FollowFrom(p.Stream, journal.LSN(p.Stream.Offset()))
}

// Begin makes a primary's stream store bytes from now on. It returns false if it does already, or if the server is a
// replica.
func (p *Position) Begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.selected != nil || !p.Stream.Begin(int64(p.log.End())) {
		return false
	}
	p.lead()
	return true
}

// End makes a primary's stream inactive. It returns false if the stream has a reader.
func (p *Position) End() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.Stream.End() {
		return false
	}
	p.own.Leave()
	return true
}

// Follow makes a primary the stream's source, or another primary than before. selected returns the database that is
// selected in the bytes from there; it is called under the locks of all shards.
func (p *Position) Follow(selected func() int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// All changes of a primary since its stream began are in the stream.
	p.whole = p.whole || p.selected == nil && p.Stream.State().Active
	p.selected = selected
	p.own.Leave()
}

// Promote makes the log the source of a replica's stream, with a new ID.
func (p *Position) Promote() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.selected = nil
	p.Stream.Promote()
	p.lead()
}

// Adopt is called when the keys are the result of the primary's stream up to a place. The stream begins anew there.
func (p *Position) Adopt(at Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Stream.Adopt(at.ID, at.Offset)
	p.whole = true
}

// Lost is called when a replica's keys are no longer the result of the stream.
func (p *Position) Lost() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.whole = false
}

// Same reports whether a replica's keys come from the stream with an ID.
func (p *Position) Same(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.whole && p.Stream.State().ID == id
}

// From is where a replica can continue, with an empty ID if it cannot.
func (p *Position) From() (id string, offset int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := p.Stream.State()
	if !p.whole || !st.Active {
		return "", 0
	}
	return st.ID, st.Offset
}

// At is the place that matches the keys. ok is false if nobody could continue from there. The caller holds the locks of
// all shards.
func (p *Position) At() (at Place, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := p.Stream.State()
	at = Place{st.ID, st.Offset, p.own.Selected()}
	if p.selected == nil {
		return at, st.Active
	}
	at.Selected = p.selected()
	return at, p.whole
}

// Reselect makes the log's next effects begin with SELECT, for a replica that begins here. It returns the database that
// the stream has selected. The caller holds the locks of all shards.
func (p *Position) Reselect() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.selected != nil {
		return p.selected()
	}
	p.own.Reselect()
	return 0
}

// Leads reports whether the log's effects go to replicas.
func (p *Position) Leads() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.selected == nil && p.Stream.State().Active
}

// Restore makes the stream of a starting server continue at the place that its keys match. A primary keeps the old ID as
// the one that its replicas know; a replica takes over its primary's.
func (p *Position) Restore(at Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restored = at.Selected
	if p.selected != nil {
		p.Stream.Adopt(at.ID, at.Offset)
		p.whole = true
		return
	}
	p.Stream.Restore(at.ID, at.Offset)
	p.lead()
}

// Restored is the database that is selected where Restore made the stream continue.
func (p *Position) Restored() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restored
}
