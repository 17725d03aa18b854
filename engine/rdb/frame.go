package rdb

// frame finds where keys begin and end in a file without reading their values, so that workers can read them.

import (
	"encoding/binary"
	"strconv"
)

// frame walks over bytes. If they end too early it sets short, and the caller may retry with more bytes.
type frame struct {
	b       []byte
	at      int
	short   bool
	problem string
	valkey  bool
	// templates are those of the file, nil for a payload.
	templates *templates
}

func (f *frame) ok() bool { return !f.short && f.problem == "" }

func (f *frame) skip(n uint64) {
	if n > uint64(len(f.b)-f.at) {
		f.short = true
		return
	}
	f.at += int(n)
}

// take returns the next n bytes, nil if there are fewer.
func (f *frame) take(n int) []byte {
	if f.short || n > len(f.b)-f.at {
		f.short = true
		return nil
	}
	f.at += n
	return f.b[f.at-n : f.at]
}

func (f *frame) byte() byte {
	if f.at >= len(f.b) {
		f.short = true
		return 0
	}
	f.at++
	return f.b[f.at-1]
}

func (f *frame) length() (n uint64, code bool) {
	c := f.byte()
	switch {
	case f.short:
	case c < len14:
		return uint64(c), false
	case c < len32:
		return uint64(c&^len14)<<8 | uint64(f.byte()), false
	case c&coded == coded:
		return uint64(c &^ coded), true
	case c == len32:
		if b := f.take(4); b != nil {
			return uint64(binary.BigEndian.Uint32(b)), false
		}
	case c == len64:
		if b := f.take(8); b != nil {
			return binary.BigEndian.Uint64(b), false
		}
	default:
		f.problem = "a length begins with byte " + strconv.Itoa(int(c))
	}
	return 0, false
}

func (f *frame) len() uint64 {
	n, _ := f.length()
	return n
}

func (f *frame) string() {
	n, code := f.length()
	switch {
	case !f.ok():
	case !code:
		f.skip(n)
	case n <= asInt8+2:
		f.skip(1 << n)
	case n == asLZF:
		size := f.len()
		f.len()
		if f.ok() {
			f.skip(size)
		}
	default:
		f.problem = "a string is of unknown form " + strconv.FormatUint(n, 10)
	}
}

// strings skips n strings.
func (f *frame) strings(n uint64) {
	for ; n > 0 && f.ok(); n-- {
		f.string()
	}
}

// entry skips the rest of a file's entry, whose first byte is op.
func (f *frame) entry(op byte) {
	switch op {
	case opDue:
		f.skip(4)
	case opDueMillis:
		f.skip(8)
	case opFreq:
		f.skip(1)
	case opIdle, opSelect:
		f.len()
	case opResize:
		f.lens(2)
	case opSlot:
		f.lens(3)
	case opTemplate:
		if f.valkey {
			f.value(op) // which reports an unknown type
			return
		}
		f.len()
		f.strings(f.len())
	case opSlotImport:
		if !f.valkey {
			f.meta()
			return
		}
		f.string()
		for n := f.len(); n > 0 && f.ok(); n-- {
			f.lens(2)
		}
	case opModule:
		if id := f.len(); f.ok() { // as in Redis without that module
			f.problem = "data of a module '" + moduleName(id) + "' that is not there, beside the keys"
		}
	case opAux:
		f.strings(2)
	case Function:
		f.string()
	case FunctionOld:
		f.problem = "functions as a release candidate of Redis 7 wrote them"
	case opEnd:
	default:
		if f.string(); f.ok() {
			f.value(op)
		}
	}
}

// value skips a value.
func (f *frame) value(t byte) {
	if f.valkey && t > typeHashDuePlain {
		f.problem = "a value of unknown type " + strconv.Itoa(int(t))
		return
	}
	switch t {
	case typeString, typeHashZipmap, typeListZiplist, typeSetIntset, typeZSetZiplist, typeHashZiplist, typeHashPacked, typeZSetPacked,
		typeSetPacked, typeHashPackedDue1:
		f.string()
	case typeHashPackedDue:
		f.skip(8)
		f.strings(1)
	case typeListPlain, typeSet, typeListZiplists:
		f.strings(f.len())
	case typeHash:
		for n := f.len(); n > 0 && f.ok(); n-- {
			f.strings(2)
		}
	case typeList:
		for n := f.len(); n > 0 && f.ok(); n-- {
			f.len()
			f.strings(1)
		}
	case typeZSet, typeZSetText:
		for n := f.len(); n > 0 && f.ok(); n-- {
			f.string()
			if t == typeZSet {
				f.skip(8)
			} else if size := f.byte(); size < textNaN {
				f.skip(uint64(size))
			}
		}
	case typeHashDue, typeHashDuePlain:
		f.dueHash(t)
	case typeTemplatePacked, typeTemplateRef, typeTemplatePlain, typeTemplateValues:
		f.templated(t)
	case typeStream1, typeStream2, typeStream3, typeStream4, typeStream:
		f.stream(t)
	case typeModule:
		f.len()
		f.module()
	case typeModuleOld:
		f.problem = "a module's value as a release candidate of Redis 4 wrote it"
	default:
		f.problem = "a value of unknown type " + strconv.Itoa(int(t))
	}
}

func (f *frame) dueHash(t byte) {
	if t == typeHashDue {
		f.skip(8)
	}
	valkey := t == typeHashDuePlain && f.valkey
	for n := f.len(); n > 0 && f.ok(); n-- {
		if !valkey {
			f.len()
		}
		f.strings(2)
		if valkey {
			f.skip(8)
		}
	}
}

// lens skips n numbers.
func (f *frame) lens(n int) {
	for ; n > 0; n-- {
		f.len()
	}
}

func (f *frame) stream(t byte) {
	for n := f.len(); n > 0 && f.ok(); n-- {
		f.strings(2)
	}
	f.lens(3) // the number of entries, and the last ID
	if t != typeStream1 {
		f.lens(5) // the first ID, the highest deleted ID, how many entries were ever added
	}
	for groups := f.len(); groups > 0 && f.ok(); groups-- {
		f.strings(1)
		f.lens(2)
		if t != typeStream1 {
			f.len()
		}
		for n := f.len(); n > 0 && f.ok(); n-- {
			f.skip(idBytes + 8)
			f.len()
		}
		for n := f.len(); n > 0 && f.ok(); n-- {
			f.strings(1)
			f.skip(8)
			if t >= typeStream3 {
				f.skip(8)
			}
			for n := f.len(); n > 0 && f.ok(); n-- {
				f.skip(idBytes)
			}
		}
		if t >= typeStream {
			for n := f.len(); n > 0 && f.ok(); n-- {
				f.skip(idBytes)
			}
		}
	}
	if t < typeStream4 {
		return
	}
	f.lens(2) // for how long producers' IDs are remembered, and how many
	for n := f.len(); n > 0 && f.ok(); n-- {
		f.strings(1)
		for n := f.len(); n > 0 && f.ok(); n-- {
			f.strings(1)
			f.lens(2)
		}
	}
	f.lens(2) // how many were new, and how many were not
}

// module skips the items of a module's value, and its end.
func (f *frame) module() {
	for f.ok() {
		switch k := f.len(); k {
		case moduleEnd:
			return
		case moduleSigned, moduleNumber:
			f.len()
		case moduleFloat:
			f.skip(4)
		case moduleDouble:
			f.skip(8)
		case moduleString:
			f.strings(1)
		default:
			if f.ok() {
				f.problem = problemModule
			}
		}
	}
}
