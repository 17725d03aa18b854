package rdb

// Whole files, which redis-server loads: what begins and ends one, and what
// stands around a value.

import (
	"encoding/binary"
	"fmt"

	"github.com/limitkv/limitkv/engine"
)

// The entries of a file that are not keys.
const (
	opAux       = 250
	opResize    = 251
	opDueMillis = 252
	opSelect    = 254
	opEnd       = 255
)

// File is a file that is being written.
type File struct {
	format Format
	b      []byte
	value  []byte // what is written last, for the key goes in behind its type
}

// NewFile begins a file with facts about where it comes from, by name.
func NewFile(format Format, facts ...[2]string) *File {
	f := &File{format: format, b: fmt.Appendf(nil, "REDIS%04d", Version)}
	for _, fact := range facts {
		f.b = append(f.b, opAux)
		f.string(fact[0])
		f.string(fact[1])
	}
	return f
}

func (f *File) string(s string) { f.b = AppendString(f.b, []byte(s), f.format.Compress) }

// Library adds the code of a library of functions.
func (f *File) Library(code string) {
	f.b = append(f.b, Function)
	f.string(code)
}

// Database begins one, with how many keys it has, and how many of them have a
// deadline.
func (f *File) Database(db, keys, expires int) {
	f.b = appendLen(append(f.b, opSelect), uint64(db))
	f.b = appendLen(append(f.b, opResize), uint64(keys))
	f.b = appendLen(f.b, uint64(expires))
}

// Key adds a key. It reports false, and adds nothing, for kinds that Redis does
// not have.
func (f *File) Key(e engine.Entry) bool {
	var ok bool
	if f.value, ok = AppendValue(f.value[:0], e, f.format); !ok {
		return false
	}
	if at := e.Deadline(); at != 0 {
		f.b = binary.LittleEndian.AppendUint64(append(f.b, opDueMillis), uint64(at))
	}
	f.b = append(f.b, f.value[0])
	f.b = AppendString(f.b, e.Key(), f.format.Compress)
	f.b = append(f.b, f.value[1:]...)
	return true
}

// End ends the file and returns all of it.
func (f *File) End() []byte {
	f.b = append(f.b, opEnd)
	f.b = binary.LittleEndian.AppendUint64(f.b, checksum(f.b))
	return f.b
}
