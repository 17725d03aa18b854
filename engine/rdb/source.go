package rdb

// Where a file comes from.

import "io"

// chunkBytes is how much is read at once, and what keys are passed on together.
const chunkBytes = 256 << 10

// believedMax is how much room a length makes that nothing bears out yet.
const believedMax = 1 << 20

// source is a file that is read from its begin on.
type source struct {
	from  io.Reader
	err   error // of from: there is no more
	size  int64 // how much there is, -1 if that is not known
	begun int64 // how much was read
	check bool  // whether sum, the checksum of what was used, is wanted
	sum   uint64
	last  []byte // what fill returned last: used but for what it is called with
}

// left is how many bytes there may be, n included that were read.
func (s *source) left(n int) uint64 {
	if s.size < 0 {
		return 1<<64 - 1
	}
	return uint64(max(s.size-s.begun, 0)) + uint64(n)
}

// use takes the checksum of what comes next.
func (s *source) use(b []byte) {
	if s.check {
		s.sum = addChecksum(s.sum, b)
	}
}

// fill returns rest, which is the end of what it returned last, and more behind
// it, so that there are n bytes at least. These are in other memory: what was read
// may be kept. Memory grows with what is there, not with n.
func (s *source) fill(rest []byte, n uint64) ([]byte, error) {
	s.use(s.last[:len(s.last)-len(rest)])
	size := max(len(rest)+chunkBytes, int(min(n, believedMax)))
	b := append(make([]byte, 0, size), rest...)
	var err error
	for uint64(len(b)) < n && err == nil {
		if len(b) == cap(b) {
			b = append(make([]byte, 0, int(min(n, 2*uint64(cap(b))))), b...)
		}
		b, err = s.read(b)
	}
	s.last = b
	return b, err
}

// read reads once into the room of b.
func (s *source) read(b []byte) ([]byte, error) {
	const triesMax = 100 // of a reader that reads nothing and has no error
	for range triesMax {
		if s.err != nil {
			return b, s.err
		}
		var n int
		n, s.err = s.from.Read(b[len(b):cap(b)])
		if n > 0 {
			s.begun += int64(n)
			return b[:len(b)+n], nil
		}
	}
	return b, io.ErrNoProgress
}
