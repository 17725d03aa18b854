package resp

// What connections keep between turns, and byte buffers kept for reuse: the lists are the loop's own, since sync.Pool is
// emptied by each collection and locks.

import "math/bits"

// backlog is a buffer that is added to at its end and taken from at its start.
type backlog struct {
	buf  []byte
	off  int  // what is before has been taken
	lent bool // but is in use by a command that runs, see HandOver
}

func (b *backlog) bytes() []byte { return b.buf[b.off:] }
func (b *backlog) len() int      { return len(b.buf) - b.off }

// take removes n bytes from the start. What is left moves down once it is less
// than what has been taken, so that each byte moves once at most.
func (b *backlog) take(n int) {
	b.off += n
	if left := len(b.buf) - b.off; left <= b.off && !b.lent {
		copy(b.buf, b.buf[b.off:])
		b.buf, b.off = b.buf[:left], 0
	}
}

// drop forgets what is there and gives the memory back.
func (b *backlog) drop(p *pool) {
	if !b.lent {
		p.put(b.buf)
	}
	*b = backlog{}
}

// pieces is what is to be sent, in order. There may be much of it, so it does not
// lie in one buffer that would be copied as it grows.
type pieces struct {
	list [][]byte
	head int // the pieces before have been sent
	off  int // so has this much of the first one
	size int // bytes
}

// add appends a copy of b. Pieces begin small, since most connections keep little.
func (q *pieces) add(p *pool, b []byte) {
	q.size += len(b)
	for len(b) > 0 {
		if len(q.list) > 0 {
			last := &q.list[len(q.list)-1]
			n := min(len(b), cap(*last)-len(*last))
			*last, b = append(*last, b[:n]...), b[n:]
		}
		if len(b) > 0 {
			q.list = append(q.list, p.get(min(max(q.size, len(b)), pieceBytesMax)))
		}
	}
}

// give appends b itself, which is the queue's from then on.
func (q *pieces) give(b []byte) {
	q.size += len(b)
	q.list = append(q.list, b)
}

// first is the bytes to send next, of which there are some.
func (q *pieces) first() []byte { return q.list[q.head][q.off:] }

// take removes n bytes of those that first returned.
func (q *pieces) take(p *pool, n int) {
	q.size -= n
	q.off += n
	if q.off < len(q.list[q.head]) {
		return
	}
	p.put(q.list[q.head])
	q.list[q.head] = nil
	q.head, q.off = q.head+1, 0
	if left := len(q.list) - q.head; left <= q.head {
		copy(q.list, q.list[q.head:])
		clear(q.list[left:])
		q.list, q.head = q.list[:left], 0
	}
	if q.size == 0 {
		q.list = nil
	}
}

// release forgets everything.
func (q *pieces) release(p *pool) {
	for _, b := range q.list[q.head:] {
		p.put(b)
	}
	*q = pieces{}
}

// pool keeps byte buffers for reuse, by size: connections own one only while
// they hold an incomplete command or unsent output. A pool belongs to one
// goroutine.
type pool struct{ free [poolClasses][][]byte }

const (
	poolMinBits = 9  // 512 bytes
	poolMaxBits = 18 // 256 KB; larger ones go to the garbage collector
	poolClasses = poolMaxBits - poolMinBits + 1

	// pieceBytesMax is how large a piece of unsent output is made.
	pieceBytesMax = 64 << 10

	// poolBytesMax is how many bytes of each size are kept.
	poolBytesMax = 1 << 20
)

// get returns an empty buffer with room for n bytes.
func (p *pool) get(n int) []byte {
	class := max(bits.Len(uint(n-1)), poolMinBits) - poolMinBits
	if n > 1<<poolMaxBits {
		return make([]byte, 0, n)
	}
	if f := p.free[class]; len(f) > 0 {
		b := f[len(f)-1]
		f[len(f)-1] = nil
		p.free[class] = f[:len(f)-1]
		return b
	}
	return make([]byte, 0, 1<<(class+poolMinBits))
}

// put takes a buffer back.
func (p *pool) put(b []byte) {
	size := cap(b)
	if size < 1<<poolMinBits || size > 1<<poolMaxBits || size&(size-1) != 0 {
		return
	}
	class := bits.Len(uint(size)) - 1 - poolMinBits
	if (len(p.free[class])+1)*size <= poolBytesMax {
		p.free[class] = append(p.free[class], b[:0])
	}
}
