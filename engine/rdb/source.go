package rdb

// The source of a file's bytes.

import "io"

// chunkBytes is how many bytes are read at once, and the usual size of the parts that are passed to workers.
const chunkBytes = 256 << 10

// believedMax is the most memory that is allocated for a length before its bytes have arrived.
const believedMax = 1 << 20

// source reads a file from its beginning.
type source struct {
	from  io.Reader
	err   error // of from: nothing more can be read
	size  int64 // how many bytes there are, -1 if unknown
	begun int64 // how many bytes were read
	check bool  // whether to compute sum, the checksum of the used bytes
	sum   uint64
	last  []byte // what fill returned last; all of it is used except the rest that fill gets next
}

// left is how many bytes may follow, including n that were already read.
func (s *source) left(n int) uint64 {
	if s.size < 0 {
		return 1<<64 - 1
	}
	return uint64(max(s.size-s.begun, 0)) + uint64(n)
}

// use adds the next bytes to the checksum.
func (s *source) use(b []byte) {
	if s.check {
		s.sum = addChecksum(s.sum, b)
	}
}

// fill returns rest, the end of what it returned last, and more after it: at least n bytes. It returns new memory, so
// that callers may keep the old. The memory grows with the bytes that arrive, not with n.
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
	const triesMax = 100 // of a reader that returns neither bytes nor an error
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
