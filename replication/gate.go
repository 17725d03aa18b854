package replication

// The gate of the stream: with appendfsync always nobody is told of what the disk of the one who tells does not have. A
// primary that loses its power comes back without what was not synced; a replica that had it would differ for ever, or know
// more than the primary that it follows. Redis, too, sends to replicas what it has synced.
//
// The journal's files and the stream count bytes apart. So the stream notes, while the gate is on, which place in the files
// an offset waits for, and readers end at the last offset whose place is confirmed.

import (
	"sync/atomic"

	"github.com/limitkv/limitkv/engine/journal"
)

// Gate is what a stream knows of the files. Without On nothing is held.
type Gate struct {
	// On says whether anything is to be held now.
	On *atomic.Bool
	// Within is the end of the journal, for a sink while it is called; End is so for everybody else.
	Within, End func() journal.LSN
	// Confirmed is up to where the journal may be told of. It takes no lock.
	Confirmed func() journal.LSN
}

// heldMax is how many places are noted, of which each second is forgotten when there are more: what was up to there waits
// for the one behind it.
const heldMax = 1 << 16

// held are the places that the end of the stream waits for.
type held struct {
	free  int64 // up to where readers may read, while there are places
	marks []mark
}

type mark struct {
	offset int64
	at     journal.LSN
}

func (h *held) any() bool { return len(h.marks) > 0 }

// NewGated makes a stream whose bytes wait for a gate. Release is to be called when more is confirmed.
func NewGated(size int64, newID func() string, gate Gate) *Stream {
	s := NewStream(size, newID)
	s.gate = gate
	return s
}

// free is up to which offset readers may read.
func (s *Stream) free() int64 {
	if s.held.any() {
		return s.held.free
	}
	return s.offset
}

// hold has what was added behind an offset wait for a place in the files.
func (s *Stream) hold(was int64, at journal.LSN) {
	h := &s.held
	if at <= s.gate.Confirmed() { // and so is all before it
		h.marks = nil
		return
	}
	n := len(h.marks)
	if n == 0 {
		h.free = was
	} else if h.marks[n-1].at == at {
		h.marks[n-1].offset = s.offset
		return
	}
	if n == heldMax {
		for i := range n / 2 {
			h.marks[i] = h.marks[2*i+1]
		}
		h.marks = h.marks[:n/2]
	}
	h.marks = append(h.marks, mark{s.offset, at})
}

// Release lets readers have what is confirmed by now.
func (s *Stream) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &s.held
	if !h.any() {
		return
	}
	n, upTo := 0, s.gate.Confirmed()
	for n < len(h.marks) && h.marks[n].at <= upTo {
		h.free = h.marks[n].offset
		n++
	}
	if h.marks = h.marks[n:]; len(h.marks) == 0 {
		h.marks = nil
	}
	s.wake()
}
