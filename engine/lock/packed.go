package lock

// A lock as bytes, the form in which nearly all are stored.
//
//	tag      a byte: the mode, and flags
//	closed   until when nobody gets it, if the tag's flag says so
//	alone    mode Alone: the one holder, whose flags are in the tag
//	others   permits, if the mode has them; the number of holders; for each: flags, the holder's length, the holder
//	holder   fence, 7 bytes; the end of the lease minus the fence, unless it is bound; session, delay and permits taken,
//	         if the flags or the mode say so; the owner's name, up to the end
//
// Numbers are varints. A mutex whose owner has 16 bytes takes 28 to 32 bytes, so its entry with a key of 16 bytes fits
// into 80.

import "encoding/binary"

// The flags of a tag, beside the mode in the two lowest bits. Those from tagBound on are also flags of a holder.
const (
	tagMode    = 3
	tagClosed  = 1 << 2
	tagHeld    = 1 << 3 // mode Alone, and held
	tagBound   = 1 << 4
	tagSession = 1 << 5
	tagDelay   = 1 << 6
)

// fenceBytes is the length of a fence.
const fenceBytes = 7

// FenceMax is the greatest possible fence.
const FenceMax = 1<<(8*fenceBytes) - 1

// packedMax is the most bytes of a lock that is stored as bytes.
const packedMax = 800

func (h *Holder) flags() (b byte) {
	if h.Bound() {
		b |= tagBound
	}
	if h.Session != 0 {
		b |= tagSession
	}
	if h.DelayMicros != 0 {
		b |= tagDelay
	}
	return b
}

// Append appends the lock as bytes. ok is false if it has too many holders for that, or if their names are too long.
func (l *Lock) Append(dst []byte) (p []byte, ok bool) {
	n := l.Len()
	if l.large != nil || n > holdersPacked {
		return dst, false
	}
	begin := len(dst)
	tag := byte(l.Mode)
	if l.ClosedMicros != 0 {
		tag |= tagClosed
	}
	if l.Mode == Alone && n == 1 {
		tag |= tagHeld | l.few[0].flags()
	}
	dst = append(dst, tag)
	if l.ClosedMicros != 0 {
		dst = binary.AppendUvarint(dst, uint64(l.ClosedMicros))
	}
	if l.Mode == Alone {
		if n == 1 {
			dst = l.few[0].append(dst, Alone)
		}
		return dst, len(dst)-begin <= packedMax
	}
	if l.Mode == Permits {
		dst = binary.AppendUvarint(dst, uint64(l.Permits))
	}
	dst = append(dst, byte(n))
	for i := range l.n {
		h := &l.few[i]
		at := len(dst)
		dst = append(dst, h.flags(), 0, 0)
		dst = h.append(dst, l.Mode)
		binary.LittleEndian.PutUint16(dst[at+1:], uint16(len(dst)-at-3))
	}
	return dst, len(dst)-begin <= packedMax
}

func (h *Holder) append(dst []byte, mode Mode) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.Fence))[:len(dst)+fenceBytes]
	if !h.Bound() {
		dst = binary.AppendVarint(dst, h.UntilMicros-h.Fence)
	}
	if h.Session != 0 {
		dst = binary.AppendUvarint(dst, uint64(h.Session))
	}
	if h.DelayMicros != 0 {
		dst = binary.AppendUvarint(dst, uint64(h.DelayMicros))
	}
	if mode == Permits {
		dst = binary.AppendUvarint(dst, uint64(h.Take))
	}
	return append(dst, h.Owner...)
}

// read decodes a holder, which takes all of p.
func (h *Holder) read(p []byte, flags byte, mode Mode) {
	for i := fenceBytes - 1; i >= 0; i-- {
		h.Fence = h.Fence<<8 | int64(p[i])
	}
	p = p[fenceBytes:]
	if flags&tagBound == 0 {
		d, n := binary.Varint(p)
		h.UntilMicros, p = h.Fence+d, p[n:]
	}
	if flags&tagSession != 0 {
		h.Session, p = uvarint(p)
	}
	if flags&tagDelay != 0 {
		h.DelayMicros, p = uvarint(p)
	}
	h.Take = 1
	if mode == Permits {
		h.Take, p = uvarint(p)
	}
	h.Owner = p
}

func uvarint(p []byte) (int64, []byte) {
	v, n := binary.Uvarint(p)
	return int64(v), p[n:]
}

// Read sets l, which must be a free lock, to the lock in p, which Append wrote. The owners' names alias p.
func (l *Lock) Read(p []byte) {
	tag := p[0]
	p = p[1:]
	l.Mode = Mode(tag & tagMode)
	if tag&tagClosed != 0 {
		l.ClosedMicros, p = uvarint(p)
	}
	if l.Mode == Alone {
		if tag&tagHeld != 0 {
			l.n = 1
			l.few[0].read(p, tag, Alone)
		}
		return
	}
	if l.Mode == Permits {
		l.Permits, p = uvarint(p)
	}
	l.n = int(p[0])
	p = p[1:]
	for i := range l.n {
		h, size := &l.few[i], int(binary.LittleEndian.Uint16(p[1:]))
		h.read(p[3:3+size], p[0], l.Mode)
		p = p[3+size:]
		if l.Mode == Permits {
			l.Taken += h.Take
		}
	}
}

// Due is DueMicros of the lock in p.
func Due(p []byte) int64 {
	if p[0]&^tagSession == tagHeld|byte(Alone) { // as most are
		var h Holder
		h.read(p[1:], p[0], Alone)
		return h.UntilMicros
	}
	var l Lock
	l.Read(p)
	return l.DueMicros()
}

// BoundIn tells whether a lease of the lock in p is bound to a connection.
func BoundIn(p []byte) bool {
	if Mode(p[0]&tagMode) == Alone {
		return p[0]&tagBound != 0
	}
	var l Lock
	l.Read(p)
	return l.Bound()
}
