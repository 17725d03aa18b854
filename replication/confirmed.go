package replication

// What of the stream readers get: with appendfsync always nobody is told of what the disk of the one who tells does not have. A
// primary that loses its power comes back without what was not synced; a replica that had it would differ for ever, or know
// more than the primary that it follows. Redis, too, sends to replicas what it has synced.
//
// The journal's files and the stream count bytes apart. So the stream notes, while the log holds replies, which place in the files
// an offset waits for, and readers end at the last offset whose place is confirmed.

import "github.com/limitkv/limitkv/engine/journal"

// unconfirmedMax is how many places are noted, of which each second is forgotten when there are more: what was up to there waits
// for the one behind it.
const unconfirmedMax = 1 << 16

// unconfirmed are the places that the end of the stream waits for.
type unconfirmed struct {
	free  int64 // up to where readers may read, while there are places
	marks []mark
}

type mark struct {
	offset int64
	at     journal.LSN
}

func (u *unconfirmed) any() bool { return len(u.marks) > 0 }

// free is up to which offset readers may read.
func (s *Stream) free() int64 {
	if s.unconfirmed.any() {
		return s.unconfirmed.free
	}
	return s.offset
}

// wait has what was added behind an offset wait for a place in the files.
func (s *Stream) wait(was int64, at journal.LSN) {
	u := &s.unconfirmed
	if at <= s.log.Confirmed() { // and so is all before it
		u.marks = nil
		return
	}
	n := len(u.marks)
	if n == 0 {
		u.free = was
	} else if u.marks[n-1].at == at {
		u.marks[n-1].offset = s.offset
		return
	}
	if n == unconfirmedMax {
		for i := range n / 2 {
			u.marks[i] = u.marks[2*i+1]
		}
		u.marks = u.marks[:n/2]
	}
	u.marks = append(u.marks, mark{s.offset, at})
}

// Release lets readers have what is confirmed by now.
func (s *Stream) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := &s.unconfirmed
	if !u.any() {
		return
	}
	n, upTo := 0, s.log.Confirmed()
	for n < len(u.marks) && u.marks[n].at <= upTo {
		u.free = u.marks[n].offset
		n++
	}
	if u.marks = u.marks[n:]; len(u.marks) == 0 {
		u.marks = nil
	}
	s.wake()
}
