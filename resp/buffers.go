package resp

// The input and output that connections store between turns, and a pool of byte buffers. Each loop has its own pool instead of
// a sync.Pool, which locks and which garbage collections empty.

import "math/bits"

// backlog is a buffer: bytes are appended at its end and taken from its start.
type backlog struct {
	buf  []byte
	off  int  // the bytes before off have been taken
	lent bool // a running command still uses the bytes before off, see HandOver
}

func (b *backlog) bytes() []byte { return b.buf[b.off:] }
func (b *backlog) len() int      { return len(b.buf) - b.off }

// take removes n bytes from the start. The rest moves to the start of buf once at least as many
// bytes have been taken as are left, so the moves cost no more than the bytes taken.
func (b *backlog) take(n int) {
	b.off += n
	if left := len(b.buf) - b.off; left <= b.off && !b.lent {
		copy(b.buf, b.buf[b.off:])
		b.buf, b.off = b.buf[:left], 0
	}
}

// drop empties b and gives its memory back to the pool.
func (b *backlog) drop(p *pool) {
	if !b.lent {
		p.put(b.buf)
	}
	*b = backlog{}
}

// pieces is a queue of unsent output. It may be long, so it is a list of pieces:
// one buffer would be copied as it grows.
type pieces struct {
	list [][]byte
	head int // the pieces before list[head] have been sent
	off  int // and the first off bytes of list[head]
	size int // unsent bytes
}

// add appends a copy of b. Pieces begin small, since most connections have little unsent output.
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

// give appends b itself, which then belongs to the queue.
func (q *pieces) give(b []byte) {
	q.size += len(b)
	q.list = append(q.list, b)
}

// first returns the next bytes to send. The queue must not be empty.
func (q *pieces) first() []byte { return q.list[q.head][q.off:] }

// take removes the first n of the bytes that first returned.
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

// release empties the queue.
func (q *pieces) release(p *pool) {
	for _, b := range q.list[q.head:] {
		p.put(b)
	}
	*q = pieces{}
}

// pool stores byte buffers for reuse, by size. A connection has a buffer only while
// it has an incomplete command or unsent output. A pool belongs to one
// goroutine at a time.
type pool struct{ free [poolClasses][][]byte }

const (
	poolMinBits = 9  // 512 bytes
	poolMaxBits = 18 // 256 KB; larger ones go to the garbage collector
	poolClasses = poolMaxBits - poolMinBits + 1

	// pieceBytesMax is the largest size of a piece that add makes.
	pieceBytesMax = 64 << 10

	// poolBytesMax is how many bytes of buffers of each size the pool stores.
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
