// Package replication, internal to the server, is the stream of effects that replicas read: its bytes, as far back as it is
// kept (the backlog), and the names by which a replica that was away says where it left off. A primary's stream comes from
// the journal; a replica's is its primary's, byte for byte, so that it can feed replicas of its own and take its primary's
// place.
//
// The bytes are in blocks, which all who read share: ten replicas that are behind cost the memory of one. A block lasts as
// long as the backlog or a reader needs it. Rejected: a ring of a fixed size, out of which a replica that is a little too
// slow falls while it still could be fed; Redis had one up to version 6.
//
// It knows no command's name: what a stream has that only limitkv understands is told apart by a function.
package replication

import (
	"strings"
	"sync"

	"github.com/limitkv/limitkv/engine/journal"
)

// blockBytesMax is how long a block is, and blockBytesMin for a small backlog, of which a block is a sixteenth.
const (
	blockBytesMax = 64 << 10
	blockBytesMin = 4 << 10
	backlogBlocks = 16
)

// OffsetMax is how far a stream may go; one that is said to be beyond is not gone on from. No stream comes there in the life of
// its servers, so that what is counted from an offset never overflows.
const OffsetMax = 1 << 62

// NoID is the second name of a stream that has only one.
var NoID = strings.Repeat("0", 40)

// Stream is safe for use by several goroutines. Offsets count bytes: that of a byte is how many there are up to it.
type Stream struct {
	newID func() string

	mu          sync.Mutex
	id, id2     string
	offset      int64 // of the last byte
	second      int64 // up to which id2 names the same stream, and one; -1 for none
	active      bool  // bytes are kept
	size        int64 // of the backlog
	head, tail  *block
	cursors     []*Cursor
	asleep      []*Cursor // of these, who found nothing, and is woken when something comes
	lastMicros  int64     // when something came last
	log         *journal.Log
	unconfirmed unconfirmed
}

type block struct {
	before int64 // bytes of the stream before it
	buf    []byte
	held   int // by so many cursors
	next   *block
}

func (b *block) end() int64 { return b.before + int64(len(b.buf)) }

// NewStream makes a stream that keeps nothing yet. newID makes up a name. Readers get what the server's log has confirmed
// (Release).
func NewStream(size int64, newID func() string, log *journal.Log) *Stream {
	return &Stream{newID: newID, id: newID(), id2: NoID, second: -1, size: size, log: log}
}

// State is what INFO tells of a stream.
type State struct {
	ID, ID2        string // ID2 is the name that it had up to before Second
	Offset, Second int64
	Active         bool
	First, Kept    int64 // the offset of the first byte that is kept, and how many are
	LastMicros     int64 // when something came last
}

// State returns all of that, as of one moment.
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

// before is how many bytes come before those that are kept.
func (s *Stream) before() int64 {
	if s.head == nil {
		return s.offset
	}
	return s.head.before
}

// Offset is that of the last byte.
func (s *Stream) Offset() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offset
}

// Begin has a stream that keeps nothing keep what comes from now on, behind at least so many bytes. What came before
// nobody has, so it gets another name. It reports whether it had kept nothing.
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

// Restore has a stream that is new be what one has become whose name and offset are known, in another server or in this
// one's former process: replicas that read it may go on.
func (s *Stream) Restore(id string, offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active, s.offset = true, offset
	s.id, s.id2, s.second = s.newID(), id, offset+1
}

// End has it keep nothing any more, under another name: what changes from now on nobody hears of. The caller has seen to
// it that nothing comes meanwhile. While somebody reads it, nothing happens and it reports false.
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

// Rename gives the stream another name, by which no replica knows it.
func (s *Stream) Rename() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id = s.newID()
}

// Append takes what the primary's journal has, whose places are the stream's offsets: it is a journal.Sink.
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

// Feed takes what a replica has got from its primary.
func (s *Stream) Feed(raw []byte) {
	var at journal.LSN
	gated := s.log.Holds()
	if gated {
		at = s.log.End() // before the lock, which the journal's is taken before
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

// add appends bytes, and lets go what is not needed any more.
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

// wake wakes those who found nothing, if there is something for them.
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

// extend adds a block. Readers are woken although they wait for their peers to take what they have: they are to look
// whether too much is waiting.
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

// trim lets go what neither the backlog nor a reader needs.
func (s *Stream) trim() {
	for s.head != s.tail && s.head.held == 0 && s.offset-s.head.end() >= s.size {
		s.head = s.head.next
	}
}

// Resize changes how many bytes are kept at least.
func (s *Stream) Resize(size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size = size
	s.trim()
}

// Adopt takes a primary's name and offset after a full synchronisation: the stream begins anew. Those who read it get
// nothing more.
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

// Continue takes another name for the same stream, up to here: the primary has it after it took the place of another one.
// It reports whether the name is another one; those who read the stream are to be told by ending their connections.
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

// Promote gives a replica's stream a name of its own: it is a primary now. Up to here the stream is its former primary's,
// by whose name other replicas may go on.
func (s *Stream) Promote() { s.Continue(s.newID()) }

// accepts tells whether a replica may go on behind a place: whether the name is one of this stream, and all bytes from an
// offset on are kept. why says what is missing.
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

// Refusal is why a replica cannot go on where it left off.
type Refusal string

// The refusals.
const (
	OtherID      Refusal = "other ID"
	SecondPassed Refusal = "second ID passed"
	NotKept      Refusal = "not kept"
)
