package replication

// Where a server is in the stream: what the stream comes from, and whether the keys are what it makes of them.

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

// Position is a server's place in a stream, which comes from its own log while it is a primary, and from its primary while it
// is a replica. What changes the role, or replaces the keys, is called while all keys are held.
type Position struct {
	Stream *Stream
	log    *journal.Log

	// mu guards what follows. The log's lock and the stream's may be taken under it.
	mu  sync.Mutex
	own *journal.Follower // of the server's log, as far as the stream comes from there
	// selected is the database that the primary's stream has selected, nil where none is followed.
	selected func() int
	restored int // the database that is selected where Restore has the stream go on
	// whole: the keys of a replica are what the stream makes of them up to its offset, so that it can be gone on from there.
	whole bool
}

// NewPosition is the position of a primary, whose stream does not keep anything yet.
func NewPosition(s *Stream, log *journal.Log) *Position { return &Position{Stream: s, log: log} }

// lead has the stream come from the log.
func (p *Position) lead() {
	p.own.Leave()
	p.own = p.log.FollowFrom(p.Stream, journal.LSN(p.Stream.Offset()))
}

// Begin has a primary's stream keep what comes from now on. It reports false if it does already, or the server is a replica.
func (p *Position) Begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.selected != nil || !p.Stream.Begin(int64(p.log.End())) {
		return false
	}
	p.lead()
	return true
}

// End has a primary's stream keep nothing any more. It reports false if somebody reads it.
func (p *Position) End() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.Stream.End() {
		return false
	}
	p.own.Leave()
	return true
}

// Follow has the stream come from a primary, or from another one than before. selected returns the database that is selected
// in what comes from there; it is called while all keys are held.
func (p *Position) Follow(selected func() int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// All that a primary has changed since its stream began is in the stream.
	p.whole = p.whole || p.selected == nil && p.Stream.State().Active
	p.selected = selected
	p.own.Leave()
}

// Promote has a replica's stream come from the log, under a name of its own.
func (p *Position) Promote() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.selected = nil
	p.Stream.Promote()
	p.lead()
}

// Adopt says that the keys are what the primary's stream makes of them up to a place, where it begins anew.
func (p *Position) Adopt(at Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Stream.Adopt(at.ID, at.Offset)
	p.whole = true
}

// Lost says that a replica's keys are not any more what the stream makes of them.
func (p *Position) Lost() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.whole = false
}

// Same tells whether what a replica has is of the stream of a name.
func (p *Position) Same(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.whole && p.Stream.State().ID == id
}

// From is where a replica can go on, no ID if it cannot.
func (p *Position) From() (id string, offset int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := p.Stream.State()
	if !p.whole || !st.Active {
		return "", 0
	}
	return st.ID, st.Offset
}

// At is the place that belongs to the keys. ok is false where nobody could go on from there. All keys are held.
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

// Reselect has the log's next effects begin with SELECT, for a replica that begins here, and returns the database that the
// stream has selected. All keys are held.
func (p *Position) Reselect() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.selected != nil {
		return p.selected()
	}
	p.own.Reselect()
	return 0
}

// Leads tells whether what goes to the log goes to replicas.
func (p *Position) Leads() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.selected == nil && p.Stream.State().Active
}

// Restore has the stream go on at a place of which a server that begins has the keys: a primary's with what its replicas know
// it by, a replica's with its primary's.
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

// Restored is the database that is selected where Restore has the stream go on.
func (p *Position) Restored() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restored
}
