package resp

// What connections keep between turns, and byte buffers kept for reuse: the lists are the loop's own, since sync.Pool is
// emptied by each collection and locks.

import "math/bits"

// backlog is a buffer that is added to at its end and taken from at its start.
type backlog struct {
	buf []byte
	off int // what is before has been taken
}

func (b *backlog) bytes() []byte { return b.buf[b.off:] }
func (b *backlog) len() int      { return len(b.buf) - b.off }

// take removes n bytes from the start. What is left moves down once it is less
// than what has been taken, so that each byte moves once at most.
func (b *backlog) take(n int) {
	b.off += n
	if left := len(b.buf) - b.off; left <= b.off {
		copy(b.buf, b.buf[b.off:])
		b.buf, b.off = b.buf[:left], 0
	}
}

// pool keeps byte buffers for reuse, by size: connections own one only while
// they hold an incomplete command or unsent output. A pool belongs to one
// goroutine.
type pool struct{ free [poolClasses][][]byte }

const (
	poolMinBits = 9  // 512 bytes
	poolMaxBits = 16 // 64 KB; larger ones go to the garbage collector
	poolClasses = poolMaxBits - poolMinBits + 1

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
