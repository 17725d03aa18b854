package replication

// Cursors: where readers are in a stream.

import (
	"slices"

	"github.com/limitkv/limitkv/engine/journal"
)

// Cursor is a reader's place. Its methods are for one goroutine, except that wake may be called by any.
type Cursor struct {
	s      *Stream
	pos    int64  // bytes that were read
	at     *block // nil while there is none behind pos
	asleep bool   // it is among the stream's asleep
	wake   func() // called under locks: it does no more than to tell somebody
}

var _ journal.Sink = (*Stream)(nil)

// Follow returns a cursor behind the last byte.
func (s *Stream) Follow(wake func()) *Cursor {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.follow(s.offset, wake)
}

// FollowFrom returns a cursor for who asks for the bytes from an offset on of the stream that a name stands for, or why
// there is none.
func (s *Stream) FollowFrom(id string, from int64, wake func()) (*Cursor, Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ok, why := s.accepts(id, from); !ok {
		return nil, why
	}
	return s.follow(from-1, wake), ""
}

// Same returns a cursor at the place of another one.
func (c *Cursor) Same(wake func()) *Cursor {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.s.follow(c.pos, wake)
}

func (s *Stream) follow(pos int64, wake func()) *Cursor {
	c := &Cursor{s: s, pos: pos, wake: wake}
	for b := s.head; b != nil; b = b.next {
		if pos <= b.end() && (pos < b.end() || b.next == nil) {
			c.hold(b)
			break
		}
	}
	s.cursors = append(s.cursors, c)
	return c
}

func (c *Cursor) hold(b *block) {
	if c.at != nil {
		c.at.held--
	}
	if c.at = b; b != nil {
		b.held++
	}
}

// Next returns what comes next, nothing if there is nothing: then wake is called when something comes. The bytes do not
// change.
func (c *Cursor) Next() []byte {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.at != nil && c.pos == c.at.end() && c.at.next != nil {
		c.hold(c.at.next)
		s.trim()
	}
	if free := s.free(); c.at != nil && c.pos < min(free, c.at.end()) {
		return c.at.buf[c.pos-c.at.before : min(free, c.at.end())-c.at.before]
	}
	if !c.asleep {
		c.asleep = true
		s.asleep = append(s.asleep, c)
	}
	return nil
}

// Advance says that so many bytes were read.
func (c *Cursor) Advance(n int) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.pos += int64(n)
}

// Lag is how many bytes there are that were not read.
func (c *Cursor) Lag() int64 {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.s.offset - c.pos
}

// Pos is how many bytes of the stream come before what is read next.
func (c *Cursor) Pos() int64 {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.pos
}

// Leave ends the cursor.
func (c *Cursor) Leave() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.leave()
}

func (c *Cursor) leave() {
	if i := slices.Index(c.s.cursors, c); i >= 0 {
		c.s.cursors = slices.Delete(c.s.cursors, i, i+1)
		if i := slices.Index(c.s.asleep, c); i >= 0 {
			c.s.asleep = slices.Delete(c.s.asleep, i, i+1)
		}
		c.hold(nil)
		c.s.trim()
	}
}
