package replication

// With appendfsync always, readers of the stream get only what is on the sender's disk. A primary that loses power comes
// back without its unsynced data. A replica that had received that data would differ from then on, or be ahead of the
// primary that it follows. Redis, too, sends to replicas only what it has synced.
//
// The places in the journal's files and the stream's offsets differ. So while the log makes replies wait, the stream
// records for an offset the place in the files that it waits for. Readers stop at the last offset whose place is
// confirmed.

import "github.com/limitkv/limitkv/engine/journal"

// unconfirmedMax is how many places are recorded. When there are more, every second one is dropped: its bytes then wait
// for the place after it.
const unconfirmedMax = 1 << 16

// unconfirmed contains the places that the end of the stream waits for.
type unconfirmed struct {
	free  int64 // offset up to which readers may read, if marks is not empty
	marks []mark
}

type mark struct {
	offset int64
	at     journal.LSN
}

func (u *unconfirmed) any() bool { return len(u.marks) > 0 }

// free is the offset up to which readers may read.
func (s *Stream) free() int64 {
	if s.unconfirmed.any() {
		return s.unconfirmed.free
	}
	return s.offset
}

// wait makes the bytes after an offset wait for a place in the files.
func (s *Stream) wait(was int64, at journal.LSN) {
	u := &s.unconfirmed
	if at <= s.log.Confirmed() { // and so is everything before it
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

// Release lets readers read what is confirmed by now.
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
