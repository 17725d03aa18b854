// Package replication, internal to the server, is the stream of effects that replicas read. It stores the stream's
// latest bytes (the backlog), and the replication IDs with which a replica that was disconnected says where it left off.
// A primary's stream comes from the journal. A replica's stream is its primary's, byte for byte, so that the replica can
// feed replicas of its own and take its primary's place.
//
// The bytes are in blocks that all readers share: ten replicas that lag cost the memory of one. A block stays as long as
// the backlog or a reader needs it. Rejected: a ring of a fixed size, which drops a replica that is slightly too slow
// although it could still be fed; Redis had one up to version 6.
//
// It knows no command names: a function identifies the commands that only limitkv understands.
package replication

import (
	"strings"
	"sync"

	"github.com/limitkv/limitkv/engine/journal"
)

// blockBytesMax is the usual size of a block. With a small backlog, a block is a sixteenth of it, at least
// blockBytesMin.
const (
	blockBytesMax = 64 << 10
	blockBytesMin = 4 << 10
	backlogBlocks = 16
)

// OffsetMax is the largest offset of a stream. A stream that claims a larger one is not continued. No stream reaches it
// in practice, so that calculations with offsets never overflow.
const OffsetMax = 1 << 62

// NoID is the second ID of a stream that has only one.
var NoID = strings.Repeat("0", 40)

// Stream is safe for concurrent use. Offsets count bytes: a byte's offset is the number of bytes up to it, included.
type Stream struct {
	newID func() string

	mu          sync.Mutex
	id, id2     string
	offset      int64 // of the last byte
	second      int64 // id2 names the same stream before this offset; -1 for none
	active      bool  // bytes are stored
	size        int64 // of the backlog
	head, tail  *block
	cursors     []*Cursor
	asleep      []*Cursor // cursors that found nothing, and are woken by new bytes
	lastMicros  int64     // when the last bytes came
	log         *journal.Log
	unconfirmed unconfirmed
}

type block struct {
	before int64 // bytes of the stream before it
	buf    []byte
	held   int // how many cursors are at it
	next   *block
}

func (b *block) end() int64 { return b.before + int64(len(b.buf)) }

// NewStream returns a stream that does not store anything yet. newID creates an ID. Readers get only what the server's
// log has confirmed (Release).
func NewStream(size int64, newID func() string, log *journal.Log) *Stream {
	return &Stream{newID: newID, id: newID(), id2: NoID, second: -1, size: size, log: log}
}

// State is what INFO reports about a stream.
type State struct {
	ID, ID2        string // ID2 is the stream's ID before offset Second
	Offset, Second int64
	Active         bool
	First, Kept    int64 // the offset of the first stored byte, and how many bytes are stored
	LastMicros     int64 // when the last bytes came
}

// State returns a consistent State.
func (s *Stream) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := State{ID: s.id, ID2: s.id2, Offset: s.offset, Second: s.second, Active: s.active, LastMicros: s.lastMicros}
	if s.active {
		st.First = s.before() + 1
		st.Kept = s.offset - s.before()
	}
	return st
}

// before is how many bytes come before the stored ones.
func (s *Stream) before() int64 {
	if s.head == nil {
		return s.offset
	}
	return s.head.before
}

// Offset is the offset of the last byte.
func (s *Stream) Offset() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offset
}

// Begin makes an inactive stream store bytes from now on, and raises its offset to atLeast if it is lower. No replica
// has the earlier bytes, so the stream gets a new ID. Begin reports whether the stream was inactive.
func (s *Stream) Begin(atLeast int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active {
		return false
	}
	s.active = true
	s.id, s.id2, s.second = s.newID(), NoID, -1
	s.offset = max(s.offset, atLeast)
	return true
}

// Restore makes a new stream the continuation of one with a known ID and offset, which was in another server or in this
// server's former process: replicas that read that one may continue.
func (s *Stream) Restore(id string, offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active, s.offset = true, offset
	s.id, s.id2, s.second = s.newID(), id, offset+1
}

// End makes the stream inactive and gives it a new ID, since no replica gets later changes. The caller ensures that
// nothing is appended meanwhile. If the stream has a reader, End does nothing and returns false.
func (s *Stream) End() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.cursors) > 0 {
		return false
	}
	s.active, s.head, s.tail = false, nil, nil
	s.id, s.id2, s.second = s.newID(), NoID, -1
	return true
}

// Rename gives the stream a new ID, which no replica knows.
func (s *Stream) Rename() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id = s.newID()
}

// Append appends bytes of the primary's journal, whose places are the stream's offsets. It implements journal.Sink.
func (s *Stream) Append(at journal.LSN, nowMicros int64, framed []byte) {
	s.mu.Lock()
	if s.active {
		s.lastMicros = nowMicros
		was := s.offset
		s.add(framed)
		if s.log.Holds() || s.unconfirmed.any() {
			s.wait(was, s.log.Within())
		}
		s.wake()
	}
	s.mu.Unlock()
}

// Feed appends bytes that a replica got from its primary.
func (s *Stream) Feed(raw []byte) {
	var at journal.LSN
	gated := s.log.Holds()
	if gated {
		at = s.log.End() // before s.mu: the journal's lock comes first in the lock order
	}
	s.mu.Lock()
	was := s.offset
	s.add(raw)
	if n := len(s.unconfirmed.marks); gated {
		s.wait(was, at)
	} else if n > 0 {
		s.wait(was, s.unconfirmed.marks[n-1].at)
	}
	s.wake()
	s.mu.Unlock()
}

// add appends bytes, and frees blocks that are not needed any more.
func (s *Stream) add(b []byte) {
	for len(b) > 0 {
		if s.tail == nil || len(s.tail.buf) == cap(s.tail.buf) {
			s.extend()
		}
		t := s.tail
		n := min(len(b), cap(t.buf)-len(t.buf))
		t.buf = append(t.buf, b[:n]...)
		s.offset += int64(n)
		b = b[n:]
	}
	s.trim()
}

// wake wakes the cursors in asleep that have bytes to read.
func (s *Stream) wake() {
	if len(s.asleep) == 0 {
		return
	}
	free, rest := s.free(), s.asleep[:0]
	for _, c := range s.asleep {
		if c.pos < free {
			c.asleep = false
			c.wake()
		} else {
			rest = append(rest, c)
		}
	}
	clear(s.asleep[len(rest):])
	s.asleep = rest
}

// extend adds a block. It wakes all readers, also those whose peer is slow: they have to check whether too much is
// waiting.
func (s *Stream) extend() {
	b := &block{before: s.offset, buf: make([]byte, 0, max(blockBytesMin, min(blockBytesMax, s.size/backlogBlocks)))}
	if s.tail == nil {
		s.head = b
	} else {
		s.tail.next = b
	}
	s.tail = b
	for _, c := range s.cursors {
		if c.at == nil {
			c.hold(b)
		}
		c.wake()
	}
}

// trim frees blocks that neither the backlog nor a reader needs.
func (s *Stream) trim() {
	for s.head != s.tail && s.head.held == 0 && s.offset-s.head.end() >= s.size {
		s.head = s.head.next
	}
}

// Resize changes the size of the backlog.
func (s *Stream) Resize(size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size = size
	s.trim()
}

// Adopt takes over a primary's ID and offset after a full synchronisation: the stream begins anew. Its present readers
// get nothing more.
func (s *Stream) Adopt(id string, offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.cursors) > 0 {
		s.cursors[0].leave()
	}
	s.unconfirmed = unconfirmed{}
	s.id, s.id2, s.second = id, NoID, -1
	s.offset, s.active, s.head, s.tail = offset, true, nil, nil
}

// Continue takes over a new ID for the same stream, because the primary got it when it replaced another primary. It
// reports whether the ID differs; then the caller informs the readers by closing their connections.
func (s *Stream) Continue(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = true
	if id == s.id {
		return false
	}
	s.id, s.id2, s.second = id, s.id, s.offset+1
	return true
}

// Promote gives a replica's stream an ID of its own, since the replica is a primary now. Up to here it is the former
// primary's stream, so that other replicas may continue with that ID.
func (s *Stream) Promote() { s.Continue(s.newID()) }

// accepts reports whether a replica may continue at a place: whether the ID is one of this stream's, and all bytes from
// the offset on are stored. why says what is missing.
func (s *Stream) accepts(id string, from int64) (ok bool, why Refusal) {
	switch {
	case strings.EqualFold(id, s.id), strings.EqualFold(id, s.id2) && from <= s.second:
	case strings.EqualFold(id, s.id2):
		return false, SecondPassed
	default:
		return false, OtherID
	}
	if !s.active || from <= s.before() || from > s.offset+1 {
		return false, NotKept
	}
	return true, ""
}

// Refusal is why a replica cannot continue where it left off.
type Refusal string

// The refusals.
const (
	OtherID      Refusal = "other ID"
	SecondPassed Refusal = "second ID passed"
	NotKept      Refusal = "not kept"
)
