package rdb

// Writing values.

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/lock"
	"github.com/limitkv/limitkv/engine/packed"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/engine/stream"
	"github.com/limitkv/limitkv/zset"
)

// encoder appends values to b. If it has a file, it writes b to the file between the elements of a value, so that b
// stays small.
type encoder struct {
	Format
	b    []byte
	file *Writer
	// items and text are room for a sorted set's members and scores.
	items []packed.Item
	text  []byte
	plain engine.Work // space for the object of a small value
}

// gathered is how many bytes an encoder gathers before it writes them to its file.
const gathered = 64 << 10

// room is called between elements. It returns false if nothing more is written.
func (w *encoder) room() bool {
	if w.file == nil {
		return true
	}
	if len(w.b) >= gathered {
		w.file.write(w.b)
		w.b = w.b[:0]
	}
	if w.file.Between != nil && w.file.err == nil {
		w.file.err = w.file.Between()
	}
	return w.file.err == nil
}

func (w *encoder) byte(k byte)      { w.b = append(w.b, k) }
func (w *encoder) len(n uint64)     { w.b = appendLen(w.b, n) }
func (w *encoder) millis(n int64)   { w.b = binary.LittleEndian.AppendUint64(w.b, uint64(n)) }
func (w *encoder) double(f float64) { w.b = binary.LittleEndian.AppendUint64(w.b, math.Float64bits(f)) }

// typeOf is the type of an entry's value.
func typeOf(e engine.Entry) byte {
	if e.Kind() == engine.KindHash && e.InBytes() {
		return typeHashPacked
	}
	var work zset.Set
	if z := e.ZSet(&work); z != nil {
		if z.Encoding() == "listpack" {
			return typeZSetPacked
		}
		return typeZSet
	}
	switch o := e.Object().(type) {
	case *hash.Hash:
		packed := o.Encoding() != "hashtable"
		_, deadlines := o.Listpack()
		switch {
		case packed && deadlines:
			return typeHashPackedDue
		case packed:
			return typeHashPacked
		case o.NextDue() != 0:
			return typeHashDue
		}
		return typeHash
	case *list.List:
		return typeList
	case *set.Set:
		switch o.Encoding() {
		case "intset":
			return typeSetIntset
		case "listpack":
			return typeSetPacked
		}
		return typeSet
	case *stream.Stream:
		if o.Plain() {
			return typeStream3
		}
		return typeStream
	}
	if e.Kind() == engine.KindString {
		return typeString
	}
	return typeModule
}

// value writes an entry's value as type t.
func (w *encoder) value(e engine.Entry, t byte) {
	switch o := e.ObjectIn(&w.plain).(type) {
	case *hash.Hash:
		w.hash(o, t)
	case *list.List:
		w.list(o, t)
	case *set.Set:
		w.set(o, t)
	case *zset.Set:
		w.zset(o, t)
	case *stream.Stream:
		w.stream(o, t)
	case *delayqueue.Queue:
		w.queue(o)
	case *limiter.Named:
		w.named(o)
	default:
		switch n, isInt := e.Int(); {
		case e.Kind() == engine.KindLimiter:
			w.limiter(e.Bytes(nil))
		case e.Kind() == engine.KindLock:
			var work lock.Lock
			w.lock(e.Lock(&work))
		case isInt:
			w.int(n)
		default:
			w.string(e.Bytes(nil))
		}
	}
}

// AppendString appends a string as Redis writes it.
func AppendString(dst, s []byte, compress bool) []byte {
	w := encoder{Format: Format{Compress: compress}, b: dst}
	w.string(s)
	return w.b
}

// intBytesMax is the longest text that is tried as an integer.
const intBytesMax = 11

// string writes a string: as an integer, compressed, or unchanged.
func (w *encoder) string(s []byte) {
	if len(s) <= intBytesMax {
		if n, ok := packed.ParseInt(s); ok && n == int64(int32(n)) {
			w.int(n)
			return
		}
	}
	if !w.room() || w.Compress && len(s) >= lzfFrom && w.compressed(s) {
		return
	}
	w.len(uint64(len(s)))
	if w.file != nil && len(s) >= gathered {
		w.file.write(w.b)
		w.b = w.b[:0]
		w.file.write(s)
		return
	}
	w.b = append(w.b, s...)
}

// int writes an integer in as few bytes as possible, or as text if it needs more than four.
func (w *encoder) int(n int64) {
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

// compressed writes s compressed. It reports false if that does not make it shorter.
func (w *encoder) compressed(s []byte) bool {
	begin := len(w.b)
	// The header's size depends on the compressed length. If it turns out smaller than reserved, the data is moved.
	var head [1 + 2*9]byte
	h := append(head[:0], coded|asLZF)
	h = appendLen(appendLen(h, uint64(len(s))), uint64(len(s)))
	at := begin + len(h)
	b, ok := compress(append(w.b, h...), s)
	if !ok {
		w.b = b[:begin]
		return false
	}
	h = appendLen(appendLen(h[:1], uint64(len(b)-at)), uint64(len(s)))
	if begin+len(h) < at {
		b = append(b[:begin+len(h)], b[at:]...)
	}
	copy(b[begin:], h)
	w.b = b
	return true
}

// The containers of a list's nodes.
const (
	nodePlain  = 1 // one large element
	nodePacked = 2
)

func (w *encoder) list(l *list.List, t byte) {
	if t == typeListPlain {
		w.len(uint64(l.Len()))
		for it := l.Iter(0, false); it.Next(); {
			w.string(it.Value())
		}
		return
	}
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

func (w *encoder) set(s *set.Set, t byte) {
	if t != typeSet {
		w.string(s.Small())
		return
	}
	w.len(uint64(s.Len()))
	it := s.Iter()
	for it.Next() {
		w.string(it.Member())
	}
}

func (w *encoder) zset(z *zset.Set, t byte) {
	if t == typeZSetPacked {
		w.items, w.text = w.items[:0], w.text[:0]
		z.Ascend(0, z.Len(), func(member []byte, score float64) bool {
			w.items = append(w.items, packed.String(member), w.score(score))
			return true
		})
		w.string(packed.Append(nil, w.items...))
		clear(w.items)
		return
	}
	w.len(uint64(z.Len()))
	z.Descend(0, z.Len(), func(member []byte, score float64) bool {
		w.string(member)
		w.double(score)
		return true
	})
}

// score returns a score as an item of a listpack: an integer if an int64 can represent it safely.
func (w *encoder) score(score float64) packed.Item {
	const most = 1 << 62
	if score >= -most && score <= most && score == math.Trunc(score) && (score != 0 || !math.Signbit(score)) {
		return packed.Number(int64(score))
	}
	begin := len(w.text)
	w.text = w.AppendScore(w.text, score)
	return packed.String(w.text[begin:])
}

func (w *encoder) hash(h *hash.Hash, t byte) {
	first := int64(0)
	if t == typeHashDue || t == typeHashPackedDue {
		first = h.NextDue()
		w.millis(first)
	}
	if t == typeHashPacked || t == typeHashPackedDue {
		lp, _ := h.Listpack()
		w.string(lp)
		return
	}
	w.len(uint64(h.Len()))
	it := h.Iter()
	for it.Next() {
		w.field(t, first, it.Field(), it.Value(), it.Deadline())
	}
}

// field writes a field of a hash that is not a listpack. first is the earliest deadline of its fields, if type t
// contains deadlines.
func (w *encoder) field(t byte, first int64, field, value []byte, at int64) {
	if t == typeHashDue {
		due := uint64(0) // 0 for none: relative deadlines begin at 1
		if at != 0 {
			due = uint64(at-first) + 1
		}
		w.len(due)
	}
	w.string(field)
	w.string(value)
	if t == typeHashDuePlain { // Valkey's
		if at == 0 {
			at = valkeyNever
		}
		w.millis(at)
	}
}
