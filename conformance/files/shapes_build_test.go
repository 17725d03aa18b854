package files

// Values as files have them, built by hand: also such as no server should have written.

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/limitkv/limitkv/engine/packed"
)

// number is a length or a number.
func number(n uint64) string {
	switch {
	case n < 64:
		return string([]byte{byte(n)})
	case n < 1<<32:
		return string(binary.BigEndian.AppendUint32([]byte{0x80}, uint32(n)))
	}
	return string(binary.BigEndian.AppendUint64([]byte{0x81}, n))
}

// text is a string, texts are several.
func text(s string) string { return number(uint64(len(s))) + s }

func texts(all ...string) string {
	var b strings.Builder
	for _, s := range all {
		b.WriteString(text(s))
	}
	return b.String()
}

func double(f float64) string {
	return string(binary.LittleEndian.AppendUint64(nil, math.Float64bits(f)))
}

func millis(n int64) string { return string(binary.LittleEndian.AppendUint64(nil, uint64(n))) }

// listpack is one of ints and strings.
func listpack(items ...any) string {
	lp := packed.Delete(packed.Append(nil, packed.Number(0)), packed.First(nil), 1)
	for _, x := range items {
		switch x := x.(type) {
		case int:
			lp = packed.Append(lp, packed.Number(int64(x)))
		case string:
			lp = packed.Append(lp, packed.String([]byte(x)))
		}
	}
	return string(packed.Clone(lp))
}

// saying is a listpack that says another number of elements.
func saying(count uint16, lp string) string {
	b := []byte(lp)
	binary.LittleEndian.PutUint16(b[4:], count)
	return string(b)
}

// ziplist is one of ints and short strings.
func ziplist(items ...any) string {
	var body []byte
	last, before := 10, 0
	for _, x := range items {
		last = 10 + len(body)
		body = append(body, byte(before))
		switch x := x.(type) {
		case int:
			body = binary.LittleEndian.AppendUint32(append(body, 0xD0), uint32(x))
		case string:
			body = append(append(body, byte(len(x))), x...)
		}
		before = 10 + len(body) - last
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(10+len(body)+1))
	b = binary.LittleEndian.AppendUint32(b, uint32(last))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(items)))
	return string(append(append(b, body...), 0xFF))
}

// patched is a value with other bytes at a place.
func patched(s string, at int, with ...byte) string { return s[:at] + string(with) + s[at+len(with):] }

// intset is one of members of a width.
func intset(width int, members ...int64) string {
	b := binary.LittleEndian.AppendUint32(nil, uint32(width))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(members)))
	for _, m := range members {
		b = append(b, binary.LittleEndian.AppendUint64(nil, uint64(m))[:width]...)
	}
	return string(b)
}

// zipmap is one of fields and values in turn.
func zipmap(items ...string) string {
	b := []byte{byte(len(items) / 2)}
	for i, s := range items {
		b = append(b, byte(len(s)))
		if i%2 == 1 {
			b = append(b, 0) // bytes that are unused
		}
		b = append(b, s...)
	}
	return string(append(b, 0xFF))
}

// rawID is an ID as keys of trees have it.
func rawID(millis, seq uint64) string {
	return string(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, millis), seq))
}

// entry is one of a stream whose master has the field f: flags, difference of the milliseconds, value.
type entry struct {
	flags, millis int
	value         string
}

// block is one of a stream, with its counts.
func block(live, deleted int, entries ...entry) string {
	items := []any{live, deleted, 1, "f", 0}
	for _, e := range entries {
		items = append(items, e.flags, e.millis, 0, e.value, 4)
	}
	return listpack(items...)
}

// pending is an entry that is pending, of these milliseconds.
func pending(at uint64) string { return rawID(at, 0) + millis(1700000000000) + number(1) }

// consumer is one of a group, with what it has pending.
func consumer(name string, has ...uint64) string {
	s := text(name) + millis(1700000000001) + millis(1700000000002) + number(uint64(len(has)))
	for _, at := range has {
		s += rawID(at, 0)
	}
	return s
}

// streamOf is a stream of type 21, as it is in a file; what is zero is as it should be.
type streamOf struct {
	blocks               []string // ID, listpack
	length               uint64
	last, first, deleted uint64 // milliseconds
	added                uint64
	groups               []string
}

// body is the stream as a type has it: 15 without what there ever was, 19 and 21.
func (s streamOf) body(kind byte) string {
	b := number(uint64(len(s.blocks)/2)) + texts(s.blocks...) + number(s.length) + number(s.last) + number(0)
	if kind != 15 {
		b += number(s.first) + number(0) + number(s.deleted) + number(0) + number(s.added)
	}
	b += number(uint64(len(s.groups)))
	return b + strings.Join(s.groups, "")
}

// group is one of a stream of type 21, g, that has read up to these milliseconds.
func group(last, read uint64, pel []uint64, consumers ...string) string {
	s := text("g") + number(last) + number(0) + number(read) + number(uint64(len(pel)))
	for _, at := range pel {
		s += pending(at)
	}
	return s + number(uint64(len(consumers))) + strings.Join(consumers, "")
}
