package rdb

// Writing values.

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/packed"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/zset"
)

type writer struct {
	Format
	b []byte
}

func (w *writer) kind(k byte)      { w.b = append(w.b, k) }
func (w *writer) len(n uint64)     { w.b = appendLen(w.b, n) }
func (w *writer) millis(n int64)   { w.b = binary.LittleEndian.AppendUint64(w.b, uint64(n)) }
func (w *writer) double(f float64) { w.b = binary.LittleEndian.AppendUint64(w.b, math.Float64bits(f)) }

// AppendString appends a string as Redis writes it.
func AppendString(dst, s []byte, compress bool) []byte {
	w := writer{Format{Compress: compress}, dst}
	w.string(s)
	return w.b
}

// intBytesMax is the longest text that is tried as an integer.
const intBytesMax = 11

// string writes a string: as an integer, compressed, or as it is.
func (w *writer) string(s []byte) {
	if len(s) <= intBytesMax {
		if n, ok := packed.ParseInt(s); ok && n == int64(int32(n)) {
			w.int(n)
			return
		}
	}
	if w.Compress && len(s) >= lzfFrom && w.compressed(s) {
		return
	}
	w.len(uint64(len(s)))
	w.b = append(w.b, s...)
}

// int writes an integer: in as few bytes as it needs, or as text if it needs
// more than four.
func (w *writer) int(n int64) {
	switch {
	case n == int64(int8(n)):
		w.b = append(w.b, coded|asInt8, byte(n))
	case n == int64(int16(n)):
		w.b = binary.LittleEndian.AppendUint16(append(w.b, coded|asInt8+1), uint16(n))
	case n == int64(int32(n)):
		w.b = binary.LittleEndian.AppendUint32(append(w.b, coded|asInt8+2), uint32(n))
	default:
		var text [20]byte
		s := strconv.AppendInt(text[:0], n, 10)
		w.len(uint64(len(s)))
		w.b = append(w.b, s...)
	}
}

// compressed writes s compressed, unless it does not become shorter.
func (w *writer) compressed(s []byte) bool {
	begin := len(w.b)
	b, ok := compress(w.b, s)
	w.b = b
	if !ok {
		return false
	}
	// What comes before it is as long as its length says: it makes room.
	var head [1 + 2*9]byte
	h := append(head[:0], coded|asLZF)
	h = appendLen(appendLen(h, uint64(len(b)-begin)), uint64(len(s)))
	w.b = append(w.b, h...)
	copy(w.b[begin+len(h):], w.b[begin:len(b)])
	copy(w.b[begin:], h)
	return true
}

// The containers of a list's nodes.
const (
	nodePlain  = 1 // one large element
	nodePacked = 2
)

func (w *writer) list(l *list.List) {
	w.kind(typeList)
	n := 0
	l.Nodes(func([]byte, bool) { n++ })
	w.len(uint64(n))
	l.Nodes(func(data []byte, plain bool) {
		if plain {
			w.len(nodePlain)
		} else {
			w.len(nodePacked)
		}
		w.string(data)
	})
}

func (w *writer) set(s *set.Set) {
	switch s.Encoding() {
	case "intset":
		w.kind(typeSetIntset)
		w.string(s.Small())
	case "listpack":
		w.kind(typeSetPacked)
		w.string(s.Small())
	default:
		w.kind(typeSet)
		w.len(uint64(s.Len()))
		for it := s.Iter(); it.Next(); {
			w.string(it.Member())
		}
	}
}

func (w *writer) zset(z *zset.Set) {
	if z.Encoding() == "listpack" {
		w.kind(typeZSetPacked)
		var lp []byte
		var text [32]byte
		z.Ascend(0, z.Len(), func(member []byte, score float64) bool {
			lp = packed.Append(lp, packed.String(member), w.score(score, text[:0]))
			return true
		})
		w.string(lp)
		return
	}
	w.kind(typeZSet)
	w.len(uint64(z.Len()))
	z.Descend(0, z.Len(), func(member []byte, score float64) bool {
		w.string(member)
		w.double(score)
		return true
	})
}

// score is how a score stands in a listpack: as an integer if it is one that an
// int64 safely holds.
func (w *writer) score(score float64, buffer []byte) packed.Item {
	const most = 1 << 62
	if score >= -most && score <= most && score == math.Trunc(score) {
		return packed.Number(int64(score))
	}
	return packed.String(w.AppendScore(buffer, score))
}

func (w *writer) hash(h *hash.Hash) {
	if h.Encoding() != "hashtable" {
		lp, deadlines := h.Listpack()
		if deadlines {
			w.kind(typeHashPackedDue)
			w.millis(h.NextDue())
		} else {
			w.kind(typeHashPacked)
		}
		w.string(lp)
		return
	}
	first := h.NextDue()
	if first != 0 {
		w.kind(typeHashDue)
		w.millis(first)
	} else {
		w.kind(typeHash)
	}
	w.len(uint64(h.Len()))
	for it := h.Iter(); it.Next(); {
		if first != 0 {
			due := uint64(0) // 0 for none: relative ones begin at 1
			if at := it.Deadline(); at != 0 {
				due = uint64(at-first) + 1
			}
			w.len(due)
		}
		w.string(it.Field())
		w.string(it.Value())
	}
}
