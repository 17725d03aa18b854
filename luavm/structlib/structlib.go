// Package structlib, internal to the server, is the library struct of Redis's Lua: packing values into binary strings and back.
//
// A format is a string of options, each with its size: b B (1 byte), h H (2), i I (4, or n bytes as in I2, at most 32),
// l L T (8), f d, s (ends with a NUL byte), cn (n bytes; c0 the whole string, or as many bytes as the number unpacked
// before it), x (a byte of padding), and > < (byte order), !n (alignment, 8 if no n), space. Numbers are cut to the
// given size; for a size above 8, the other bytes are zero.
//
// Where C leaves the result of the original undefined (numbers that do not fit), the result is that of Redis built for x86-64.
package structlib

import (
	"encoding/binary"
	"math"

	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/limitkv/limitkv/luavm/boxes"
	"github.com/limitkv/limitkv/luavm/budget"
	lua "github.com/yuin/gopher-lua"
)

const (
	integerSizeMax   = 32        // bytes of iN and IN
	packedSizeMax    = 512 << 20 // bytes that one call of pack may make
	defaultAlignment = 8         // of "!" without a number
	stackMax         = 8000      // values that a C function of Lua 5.1 may have at once
)

// Open returns a new table with the functions of the library. from boxes their values, and b counts their steps.
func Open(L *lua.LState, from *boxes.Boxes, b *budget.Budget) *lua.LTable {
	t := L.CreateTable(0, 3)
	t.RawSetString("pack", L.NewFunction(func(L *lua.LState) int { return pack(L, from, b) }))
	t.RawSetString("unpack", L.NewFunction(func(L *lua.LState) int { return unpack(L, from, b) }))
	t.RawSetString("size", L.NewFunction(func(L *lua.LState) int { return size(L, b) }))
	return t
}

// format is a cursor over a format string, with the settings at its position.
type format struct {
	budget    *budget.Budget
	L         *lua.LState
	rest      string
	big       bool // most significant byte first
	alignment uint64
}

// begin reads the format in argument 1. It sets fields of f, since a returned struct would be copied once more.
func (f *format) begin(L *lua.LState, b *budget.Budget) {
	f.budget, f.L, f.rest, f.alignment = b, L, arg.String(L, 1), 1
}

// more tells whether there is another option. A format ends at a NUL byte, as strings of C do.
func (f *format) more() bool { return f.rest != "" && f.rest[0] != 0 }

// next returns the next option and its size, 0 for options without a size.
func (f *format) next() (option byte, size uint64) {
	f.budget.Use(1)
	option, f.rest = f.rest[0], f.rest[1:]
	switch option {
	case 'b', 'B', 'x':
		return option, 1
	case 'h', 'H':
		return option, 2
	case 'l', 'L', 'T', 'd':
		return option, 8
	case 'f':
		return option, 4
	case 'c':
		return option, uint64(f.number(1))
	case 'i', 'I':
		n := f.number(4)
		if n > integerSizeMax {
			arg.Raise(f.L, "integral size %d is larger than limit of %d", n, integerSizeMax)
		}
		return option, uint64(n)
	}
	return option, 0
}

// number reads the number that may follow an option.
func (f *format) number(missing int) int {
	if f.rest == "" || f.rest[0] < '0' || f.rest[0] > '9' {
		return missing
	}
	n := 0
	for f.rest != "" && f.rest[0] >= '0' && f.rest[0] <= '9' {
		digit := int(f.rest[0] - '0')
		if n > math.MaxInt32/10 || n*10 > math.MaxInt32-digit {
			arg.Raise(f.L, "integral size overflow")
		}
		n = n*10 + digit
		f.rest = f.rest[1:]
	}
	return n
}

// padding is how many bytes align an element of that size at position pos.
func (f *format) padding(pos uint64, option byte, size uint64) uint64 {
	if size == 0 || option == 'c' {
		return 0
	}
	size = min(size, f.alignment)
	return (size - pos&(size-1)) & (size - 1)
}

// control applies an option that is not for a value.
func (f *format) control(option byte) {
	switch option {
	case ' ':
	case '>':
		f.big = true
	case '<':
		f.big = false
	case '!':
		n := f.number(defaultAlignment)
		if n <= 0 || n&(n-1) != 0 {
			arg.Raise(f.L, "alignment %d is not a power of 2", n)
		}
		f.alignment = uint64(n)
	default:
		arg.Error(f.L, 1, "invalid format option '"+string([]byte{option})+"'")
	}
}

func pack(L *lua.LState, from *boxes.Boxes, b *budget.Budget) int {
	var f format
	f.begin(L, b)
	L.Push(lua.LNil) // as in the original: errors then call the first missing argument nil
	var room [64]byte
	out := room[:0]
	at := 2
	for f.more() {
		option, size := f.next()
		for n := f.padding(uint64(len(out)), option, size); n > 0; n-- {
			out = append(out, 0)
		}
		switch option {
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
			out = f.appendInteger(out, toInteger(arg.Number(L, at)), int(size))
			at++
		case 'x':
			out = append(out, 0)
		case 'f':
			bits := math.Float32bits(float32(arg.Number(L, at)))
			at++
			if f.big {
				out = binary.BigEndian.AppendUint32(out, bits)
			} else {
				out = binary.LittleEndian.AppendUint32(out, bits)
			}
		case 'd':
			bits := math.Float64bits(arg.Number(L, at))
			at++
			if f.big {
				out = binary.BigEndian.AppendUint64(out, bits)
			} else {
				out = binary.LittleEndian.AppendUint64(out, bits)
			}
		case 'c', 's':
			s := arg.String(L, at)
			at++
			if size == 0 {
				size = uint64(len(s))
			}
			if uint64(len(s)) < size {
				arg.Error(L, at, "string too short") // the original counts the argument before it raises the error
			}
			if uint64(len(out))+size > packedSizeMax {
				arg.Raise(L, "not enough memory")
			}
			b.Bytes(int(size))
			out = append(out, s[:size]...)
			if option == 's' {
				out = append(out, 0)
			}
		default:
			f.control(option)
		}
	}
	L.Push(from.String(out))
	return 1
}

// toInteger is C's conversion of a double to a 64-bit integer: signed for negative numbers, else unsigned. Numbers that do
// not fit give the result of x86-64.
func toInteger(n float64) uint64 {
	if n >= 0x1p63 {
		return uint64(arg.Truncate(n-0x1p63)) ^ 1<<63
	}
	return uint64(arg.Truncate(n))
}

func (f *format) appendInteger(out []byte, v uint64, size int) []byte {
	start := len(out)
	for i := 0; i < size; i++ {
		out = append(out, byte(v))
		v >>= 8
	}
	if f.big {
		b := out[start:]
		for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
	}
	return out
}

func unpack(L *lua.LState, from *boxes.Boxes, b *budget.Budget) int {
	var f format
	f.begin(L, b)
	data := arg.String(L, 2)
	length := uint64(len(data))
	pos := uint64(arg.OptInteger(L, 3, 1))
	if pos == 0 {
		arg.Error(L, 3, "offset must be 1 or greater")
	}
	pos--
	base, results := L.GetTop(), 0
	for f.more() {
		option, size := f.next()
		pos += f.padding(pos, option, size)
		if size > length || pos > length-size {
			arg.Error(L, 2, "data string too short")
		}
		if base+results+2 > stackMax {
			arg.Raise(L, "stack overflow (too many results)")
		}
		var v lua.LValue
		switch option {
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
			v = from.Number(f.integer(data[pos:pos+size], option >= 'a'))
		case 'x':
		case 'f':
			bits := binary.LittleEndian.Uint32([]byte(data[pos : pos+4]))
			if f.big {
				bits = binary.BigEndian.Uint32([]byte(data[pos : pos+4]))
			}
			v = from.Number(float64(math.Float32frombits(bits)))
		case 'd':
			bits := binary.LittleEndian.Uint64([]byte(data[pos : pos+8]))
			if f.big {
				bits = binary.BigEndian.Uint64([]byte(data[pos : pos+8]))
			}
			v = from.Number(math.Float64frombits(bits))
		case 'c':
			if size == 0 {
				n, ok := arg.ToNumber(L.Get(-1))
				if results == 0 || !ok {
					arg.Raise(L, "format 'c0' needs a previous size")
				}
				L.Pop(1)
				results--
				size = toInteger(n)
				if size > length || pos > length-size {
					arg.Error(L, 2, "data string too short")
				}
			}
			v = lua.LString(data[pos : pos+size])
		case 's':
			end := pos
			for end < length && data[end] != 0 {
				end++
			}
			b.Use(int(end-pos) >> 6)
			if end == length {
				arg.Raise(L, "unfinished string in data")
			}
			v = lua.LString(data[pos:end])
			size = end - pos + 1
		default:
			f.control(option)
		}
		if v != nil {
			L.Push(v)
			results++
		}
		pos += size
	}
	L.Push(from.Int(int64(pos + 1)))
	return results + 1
}

// integer is the number in these bytes. As in the original, only the last eight bytes shifted in count, and the sign
// is the bit to which a shift by the size leads.
func (f *format) integer(b string, signed bool) float64 {
	v := uint64(0)
	for i := range len(b) {
		c := b[i]
		if !f.big {
			c = b[len(b)-1-i]
		}
		v = v<<8 | uint64(c)
	}
	if !signed {
		return float64(v)
	}
	mask := ^uint64(0) << (uint(len(b)*8-1) & 63)
	if v&mask != 0 {
		v |= mask
	}
	return float64(int64(v))
}

func size(L *lua.LState, b *budget.Budget) int {
	var f format
	f.begin(L, b)
	pos := uint64(0)
	for f.more() {
		option, size := f.next()
		pos += f.padding(pos, option, size)
		if option == 's' {
			arg.Error(L, 1, "option 's' has no fixed size")
		} else if option == 'c' && size == 0 {
			arg.Error(L, 1, "option 'c0' has no fixed size")
		}
		if !isAlphanumeric(option) {
			f.control(option)
		}
		pos += size
	}
	L.Push(lua.LNumber(int64(pos)))
	return 1
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}
