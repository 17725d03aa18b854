package replication

// Cursors: the places of readers in a stream.

import (
	"slices"

	"github.com/limitkv/limitkv/engine/journal"
)

// Cursor is a reader's place. Its methods are for one goroutine; the stream calls wake from any.
type Cursor struct {
	s      *Stream
	pos    int64  // number of bytes that were read
	at     *block // nil while there is no block after pos
	asleep bool   // whether it is in the stream's asleep
	wake   func() // called under locks: it may only signal
}

var _ journal.Sink = (*Stream)(nil)

// Follow returns a cursor after the last byte.
func (s *Stream) Follow(wake func()) *Cursor {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.follow(s.offset, wake)
}

// FollowFrom returns a cursor for a reader that asks for the bytes from an offset on, in the stream with an ID, or why
// it cannot have them.
func (s *Stream) FollowFrom(id string, from int64, wake func()) (*Cursor, Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ok, why := s.accepts(id, from); !ok {
		return nil, why
	}
	return s.follow(from-1, wake), ""
}

// Same returns another cursor at the same place.
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

// Next returns the next bytes, which never change, or nil if there are none: then wake is called when there are some.
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

// Advance moves the cursor over n bytes that were read.
func (c *Cursor) Advance(n int) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.pos += int64(n)
}

// Lag is how many bytes of the stream were not read yet.
func (c *Cursor) Lag() int64 {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.s.offset - c.pos
}

// Pos is how many bytes of the stream come before the cursor.
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
