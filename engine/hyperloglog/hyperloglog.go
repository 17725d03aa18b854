// Package hyperloglog, internal to the server, counts distinct elements in a string of at most 12 KB, with an error of 0.81 %.
//
// The string is Redis's, byte for byte, so that GET, SET and DUMP of such a key can move it between servers. The hash,
// the estimator and the size at which it becomes dense are Redis's, too. A key is an ordinary string: the functions
// work on its bytes and have no other state.
//
// Layout: "HYLL", encoding, three zero bytes, the cached count (8 bytes LE, its highest bit set = stale), then 2^14
// registers. Each has the longest run of zeros, plus one, in the hashes that belong to it. Dense: 6 bits each, from the
// low bits of the bytes up. Sparse: run lengths, in sparse.go.
package hyperloglog

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
)

const (
	indexBits    = 14
	registers    = 1 << indexBits
	registerBits = 6
	registerMax  = 1<<registerBits - 1
	rankMax      = 64 - indexBits + 1 // the highest value that a hash can give a register

	headerBytes = 16
	denseBytes  = headerBytes + registers*registerBits/8

	dense  = 0
	sparse = 1

	// DefaultSparseMax is hll-sparse-max-bytes, the size beyond which a sparse string becomes dense.
	DefaultSparseMax = 3000
)

// ErrCorrupt is returned for a string that passes Valid but has invalid registers.
var ErrCorrupt = errors.New("hyperloglog: corrupted registers")

// New returns the string of a new counter. Its cached count is valid: zero.
func New() []byte {
	b := make([]byte, headerBytes, headerBytes+2)
	copy(b, "HYLL")
	b[4] = sparse
	return appendZeros(b, registers)
}

// Valid reports whether b looks like a counter: it checks the header and, if b is dense, the length.
func Valid(b []byte) bool {
	return len(b) >= headerBytes && string(b[:4]) == "HYLL" && (b[4] == sparse || b[4] == dense && len(b) == denseBytes)
}

// Encoding returns "sparse" or "dense".
func Encoding(b []byte) string {
	if b[4] == dense {
		return "dense"
	}
	return "sparse"
}

// Cached returns the count that is stored in b, unless it is stale.
func Cached(b []byte) (count uint64, ok bool) {
	return binary.LittleEndian.Uint64(b[8:]), b[15]&0x80 == 0
}

// SetCached stores the count in b.
func SetCached(b []byte, count uint64) { binary.LittleEndian.PutUint64(b[8:], count) }

// Invalidate marks the stored count as stale.
func Invalidate(b []byte) { b[15] |= 0x80 }

// Add adds an element to the counter. It returns the counter, changed in place if it has room, and whether the count
// may have changed; if so, the stored count is stale. sparseMax is hll-sparse-max-bytes.
func Add(b, element []byte, sparseMax int) (next []byte, changed bool, err error) {
	index, rank := place(element)
	if b[4] == dense {
		changed = raise(b[headerBytes:], index, rank)
	} else {
		b, changed, err = setSparse(b, index, rank, sparseMax, new(spot))
	}
	if changed {
		Invalidate(b)
	}
	return b, changed, err
}

// Count estimates how many elements were added.
func Count(b []byte) (uint64, error) {
	var h histogram
	if b[4] == dense {
		h.addDense(b[headerBytes:])
	} else if err := runs(b[headerBytes:], func(_, n int, value byte) { h[value] += n }); err != nil {
		return 0, err
	}
	return h.estimate(), nil
}

// Registers is the union of counters, a byte for each register. The zero value is an empty union.
type Registers [registers]byte

// Merge adds a counter to the union.
func (r *Registers) Merge(b []byte) error {
	if b[4] == dense {
		data := b[headerBytes : headerBytes+registers*registerBits/8]
		for r := r[:]; len(r) >= 8 && len(data) >= 6; r, data = r[8:], data[6:] {
			binary.LittleEndian.PutUint64(r, greater(binary.LittleEndian.Uint64(r), unpack(data)))
		}
		return nil
	}
	return r.mergeSparse(b[headerBytes:])
}

// mergeSparse is Merge for the sparse form. It does what runs does, without a call for most runs.
func (r *Registers) mergeSparse(data []byte) error {
	at := 0
	for p := 0; p < len(data); p++ {
		switch c := data[p]; {
		case c < 0x40:
			at += int(c) + 1
		case c < 0x80:
			at += runAt(data, p).n
			p++
		default:
			n, value := int(c&3)+1, c>>2&0x1F+1
			if at+n > registers {
				return ErrCorrupt
			}
			for end := at + n; at < end; at++ {
				if r[at] < value {
					r[at] = value
				}
			}
		}
	}
	if at != registers {
		return ErrCorrupt
	}
	return nil
}

// Eight registers are processed at once, each in one byte of a word. The dense form has them in 48 bits. unpack spreads
// the halves of these to 32 bits each, then the quarters to 16, and the registers to 8.

// unpack returns the first eight registers of data, which is in the dense form.
func unpack(data []byte) uint64 {
	v := uint64(binary.LittleEndian.Uint32(data)) | uint64(binary.LittleEndian.Uint16(data[4:]))<<32
	v = v&0xFFFFFF | v<<8&0x00FFFFFF_00000000
	v = v&0x00000FFF_00000FFF | v<<4&0x0FFF0000_0FFF0000
	return v&0x003F003F_003F003F | v<<2&0x3F003F00_3F003F00
}

// pack is the reverse of unpack.
func pack(v uint64) uint64 {
	v = v&0x003F003F_003F003F | v>>2&0x0FC00FC0_0FC00FC0
	v = v&0x00000FFF_00000FFF | v>>4&0x00FFF000_00FFF000
	return v&0xFFFFFF | v>>8&0xFFFF_FF000000
}

// greater returns the greater register of each of eight pairs. The highest bit of each byte is free; here it shows
// where the subtraction needed no borrow.
func greater(a, b uint64) uint64 {
	const high = 0x80808080_80808080
	not := ((a | high) - b) & high // where a is not less
	keep := not - not>>7 | not     // 0xff there
	return a&keep | b&^keep
}

// Count estimates how many elements were added to any of the counters.
func (r *Registers) Count() uint64 {
	// If few elements were added, most registers are zero, and 64 of them are skipped at once. There are two
	// histograms, so that equal values in a row do not wait for each other.
	var h, odd histogram
	for blocks := r[:]; len(blocks) >= 64; blocks = blocks[64:] {
		block := (*[64]byte)(blocks)
		if noneSet(block) {
			h[0] += len(block)
			continue
		}
		for b := block[:]; len(b) >= 8; b = b[8:] {
			if binary.LittleEndian.Uint64(b) == 0 {
				h[0] += 8
				continue
			}
			h[b[0]]++
			odd[b[1]]++
			h[b[2]]++
			odd[b[3]]++
			h[b[4]]++
			odd[b[5]]++
			h[b[6]]++
			odd[b[7]]++
		}
	}
	for i, n := range odd {
		h[i] += n
	}
	return h.estimate()
}

func noneSet(b *[64]byte) bool {
	of := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }
	return of(0)|of(8)|of(16)|of(24)|of(32)|of(40)|of(48)|of(56) == 0
}

// Store writes the union to the counter b, which must be part of the union, and returns b. toDense says whether b must
// become dense, as it must if a counter of the union is dense.
func (r *Registers) Store(b []byte, toDense bool, sparseMax int) ([]byte, error) {
	if toDense {
		b, err := ToDense(b)
		if err != nil {
			return b, err
		}
		for r, data := r[:], b[headerBytes:]; len(r) >= 8 && len(data) >= 6; r, data = r[8:], data[6:] {
			v := pack(binary.LittleEndian.Uint64(r))
			binary.LittleEndian.PutUint32(data, uint32(v))
			binary.LittleEndian.PutUint16(data[4:], uint16(v>>32))
		}
		Invalidate(b)
		return b, nil
	}
	var from spot
	for i := 0; i < registers; i++ {
		v := r[i]
		switch {
		case v == 0:
			if i%8 == 0 && binary.LittleEndian.Uint64(r[i:]) == 0 {
				i += 7
			}
		case b[4] == dense:
			raise(b[headerBytes:], i, v)
		default:
			var err error
			if b, _, err = setSparse(b, i, v, sparseMax, &from); err != nil {
				return b, err
			}
		}
	}
	Invalidate(b)
	return b, nil
}

// ToDense returns the counter in its dense form; b itself if it is dense already.
func ToDense(b []byte) ([]byte, error) {
	if b[4] == dense {
		return b, nil
	}
	d := make([]byte, denseBytes)
	copy(d, b[:headerBytes])
	d[4] = dense
	err := runs(b[headerBytes:], func(first, n int, value byte) {
		for i := first; value > 0 && i < first+n; i++ {
			set(d[headerBytes:], i, value)
		}
	})
	if err != nil {
		return b, err
	}
	return d, nil
}

// get returns a register of the dense form.
func get(data []byte, i int) byte {
	at, shift := i*registerBits/8, i*registerBits%8
	v := data[at] >> shift
	if shift > 8-registerBits {
		v |= data[at+1] << (8 - shift)
	}
	return v & registerMax
}

// set sets a register of the dense form.
func set(data []byte, i int, v byte) {
	at, shift := i*registerBits/8, i*registerBits%8
	data[at] = data[at]&^byte(registerMax<<shift) | v<<shift
	if shift > 8-registerBits {
		data[at+1] = data[at+1]&^byte(registerMax>>(8-shift)) | v>>(8-shift)
	}
}

// raise sets a register of the dense form if its value is lower, and reports whether it was.
func raise(data []byte, i int, v byte) bool {
	if get(data, i) >= v {
		return false
	}
	set(data, i, v)
	return true
}

// place returns the register to which an element belongs, and the rank that the element gives it.
func place(element []byte) (index int, rank byte) {
	h := murmur64A(element, 0xadc83b19)
	index = int(h & (registers - 1))
	h = h>>indexBits | 1<<(64-indexBits)
	return index, byte(bits.TrailingZeros64(h) + 1)
}

// murmur64A is MurmurHash2 for 64-bit machines, by Austin Appleby, who put it in the public domain.
func murmur64A(b []byte, seed uint64) uint64 {
	const m, r = 0xc6a4a7935bd1e995, 47
	h := seed ^ uint64(len(b))*m
	for ; len(b) >= 8; b = b[8:] {
		k := binary.LittleEndian.Uint64(b) * m
		k = (k ^ k>>r) * m
		h = (h ^ k) * m
	}
	if len(b) > 0 {
		var tail [8]byte
		copy(tail[:], b)
		h = (h ^ binary.LittleEndian.Uint64(tail[:])) * m
	}
	h = (h ^ h>>r) * m
	return h ^ h>>r
}

// histogram is how many registers have each value.
type histogram [registerMax + 1]int

func (h *histogram) addDense(data []byte) {
	for ; len(data) >= 3; data = data[3:] {
		v := uint32(data[0]) | uint32(data[1])<<8 | uint32(data[2])<<16
		h[v&registerMax]++
		h[v>>6&registerMax]++
		h[v>>12&registerMax]++
		h[v>>18]++
	}
}

// estimate is Otmar Ertl's estimator, arXiv:1702.01284, in the steps of Redis. The conversions keep the
// compiler from fusing a multiplication with an addition, which would round differently on some machines.
func (h *histogram) estimate() uint64 {
	const m = float64(registers)
	const alpha = 0.721347520444481703680 // 0.5 / ln 2
	z := m * tau((m-float64(h[rankMax]))/m)
	for j := rankMax - 1; j >= 1; j-- {
		z += float64(h[j])
		z *= 0.5
	}
	z += float64(m * sigma(float64(h[0])/m))
	return uint64(math.Round(alpha * m * m / z))
}

func sigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	y, z := 1.0, x
	for {
		x *= x
		before := z
		z += float64(x * y)
		y += y
		if z == before {
			return z
		}
	}
}

func tau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	y, z := 1.0, 1-x
	for {
		x = math.Sqrt(x)
		before := z
		y *= 0.5
		z -= float64(float64((1-x)*(1-x)) * y)
		if z == before {
			return z / 3
		}
	}
}
