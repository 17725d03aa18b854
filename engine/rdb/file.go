package rdb

// Writing files, in Redis's form, version 12 if the reader is not known to want another one: "REDIS" and the version, facts about
// where the file comes from, libraries of functions, keys by database, an end and
// the checksum of all before it.
//
// A file is written as it comes, in a memory that does not depend on its size.
// Keys may come in any order: that of a database begins whenever it changes.
// Whoever holds locks encodes keys into a Block, and gives it to the Writer when
// they are let go.

import (
	"encoding/binary"
	"io"
	"strconv"

	"github.com/limitkv/limitkv/engine"
)

// The entries of a file that are not keys.
const (
	opSlotImport = 243 // Valkey: slots that were on their way when it was written
	opSlot       = 244
	opModule     = 247
	opIdle       = 248
	opFreq       = 249
	opAux        = 250
	opResize     = 251
	opDueMillis  = 252
	opDue        = 253
	opSelect     = 254
	opEnd        = 255
)

// noDB is the database of a file in which none was chosen yet.
const noDB = -1

// Writer writes a file. The first error stays; all that is written after it is
// nothing.
type Writer struct {
	// Between, if not nil, is called between the elements of values that are written. Its error ends the file.
	Between func() error

	to       io.Writer
	enc      encoder
	checked  bool
	sum      uint64
	n        int64
	db       int
	keys     int64
	err      error
	finished bool
}

// NewWriter begins a file. checked has it end with its checksum, else with a zero,
// which says that there is none (rdbchecksum no).
func NewWriter(to io.Writer, format Format, checked bool) *Writer {
	w := &Writer{to: to, enc: encoder{Format: format}, checked: checked, db: noDB}
	w.enc.file = w
	w.enc.b = append(make([]byte, 0, 2*gathered), format.For.magic()...)
	return w
}

// write writes bytes through, behind those that have gathered.
func (w *Writer) write(b []byte) {
	if w.err != nil || len(b) == 0 {
		return
	}
	if w.checked {
		w.sum = addChecksum(w.sum, b)
	}
	n, err := w.to.Write(b)
	w.n += int64(n)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	w.err = err
}

// Flush writes what has gathered.
func (w *Writer) Flush() error {
	w.write(w.enc.b)
	w.enc.b = w.enc.b[:0]
	return w.err
}

// Written is how many bytes were written, those included that have gathered.
func (w *Writer) Written() int64 { return w.n + int64(len(w.enc.b)) }

// Keys is how many keys were written.
func (w *Writer) Keys() int64 { return w.keys }

// Aux adds a fact about where the file comes from. Who does not know its name
// passes over it.
func (w *Writer) Aux(name, value string) {
	w.enc.byte(opAux)
	w.enc.string([]byte(name))
	w.enc.string([]byte(value))
}

// Origin is where a file comes from.
type Origin struct {
	Version    string // of Redis
	NowMicros  int64
	UsedMemory uint64
	// Base: the file is the first of an append-only file's.
	Base bool
	// More are further facts by name, which come before Base as those of
	// replication do in Redis.
	More [][2]string
}

// Origin adds the facts that Redis's files begin with, in their order.
func (w *Writer) Origin(o Origin) {
	w.Aux("redis-ver", o.Version)
	w.Aux("redis-bits", strconv.Itoa(strconv.IntSize))
	w.Aux("ctime", strconv.FormatInt(o.NowMicros/1e6, 10))
	w.Aux("used-mem", strconv.FormatUint(o.UsedMemory, 10))
	for _, fact := range o.More {
		w.Aux(fact[0], fact[1])
	}
	base := "0"
	if o.Base {
		base = "1"
	}
	w.Aux("aof-base", base)
}

// Library adds the code of a library of functions.
func (w *Writer) Library(code string) {
	w.enc.byte(Function)
	w.enc.string([]byte(code))
}

// Select has the keys that follow be of a database.
func (w *Writer) Select(db int) {
	if db != w.db {
		w.enc.byte(opSelect)
		w.enc.len(uint64(db))
		w.db = db
	}
}

// Database begins one, with how many keys it has, and how many of them have a
// deadline. These help who reads the file, and need not be exact.
func (w *Writer) Database(db, keys, expires int) {
	w.Select(db)
	w.enc.byte(opResize)
	w.enc.len(uint64(keys))
	w.enc.len(uint64(expires))
}

// Entry adds a key of the view's database.
func (w *Writer) Entry(v *engine.View, e engine.Entry) error {
	w.Select(v.DB)
	w.enc.entry(v, e)
	w.enc.room()
	w.keys++
	return w.err
}

// Block adds what a block has gathered, and empties it.
func (w *Writer) Block(b *Block) error {
	if b.keys > 0 {
		w.Select(b.first)
		if err := w.Flush(); err != nil {
			return err
		}
		w.write(b.enc.b)
		w.db = b.db
		w.keys += b.keys
	}
	b.Reset()
	return w.err
}

// End ends the file. What has been written is not synced.
func (w *Writer) End() error {
	if w.finished {
		return w.err
	}
	w.finished = true
	w.enc.byte(opEnd)
	if err := w.Flush(); err != nil {
		return err
	}
	sum := w.sum
	w.checked = false
	w.write(binary.LittleEndian.AppendUint64(nil, sum))
	return w.err
}

// Block is keys as they are in a file. It is filled by one goroutine at a time,
// without a Writer.
type Block struct {
	enc       encoder
	first, db int
	keys      int64
}

// NewBlock makes an empty block. Its format is that of the Writer that gets it.
func NewBlock(format Format) *Block { return &Block{enc: encoder{Format: format}} }

// Entry adds a key of the view's database.
func (b *Block) Entry(v *engine.View, e engine.Entry) {
	switch {
	case b.keys == 0:
		b.first = v.DB
	case b.db != v.DB:
		b.enc.byte(opSelect)
		b.enc.len(uint64(v.DB))
	}
	b.db = v.DB
	b.enc.entry(v, e)
	b.keys++
}

// Len is how many bytes have gathered, Keys of how many keys.
func (b *Block) Len() int { return len(b.enc.b) }

// Keys is how many keys there are.
func (b *Block) Keys() int64 { return b.keys }

// Cap is how many bytes it can gather before it takes more memory.
func (b *Block) Cap() int { return cap(b.enc.b) }

// Reset empties the block and keeps its memory, unless that is much more than
// blocks usually need.
func (b *Block) Reset() {
	if cap(b.enc.b) > blockKeepMax {
		b.enc.b = nil
	}
	b.enc.b, b.keys = b.enc.b[:0], 0
}

const blockKeepMax = 4 << 20

// entry writes a key: what is known of it, and its value.
func (w *encoder) entry(v *engine.View, e engine.Entry) { w.value(e, w.head(v, e)) }

// head writes a key and what is known of it, and returns the type of the value that
// follows.
func (w *encoder) head(v *engine.View, e engine.Entry) byte {
	if at := e.Deadline(); at != 0 {
		w.b = binary.LittleEndian.AppendUint64(append(w.b, opDueMillis), uint64(at))
	}
	switch w.Usage {
	case IdleUsage:
		w.byte(opIdle)
		w.len(uint64(max(v.Now/1e6-e.LastAccess(), 0)))
	case FreqUsage:
		w.b = append(w.b, opFreq, v.Freq(e))
	}
	t := w.For.typeFor(e)
	w.byte(t)
	w.string(e.Key())
	return t
}
