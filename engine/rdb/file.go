package rdb

// The writer writes files in Redis's form, of version 12 unless the reader needs another one: "REDIS" and the version,
// facts about the file's origin, libraries of functions, keys by database, an end mark, and the checksum of everything
// before it.
//
// A file is streamed, with memory that does not depend on its size. Keys may come in any order: a change of the database
// is written whenever it happens. A holder of locks encodes keys into a Block, and passes it to the Writer after
// unlocking.

import (
	"encoding/binary"
	"io"
	"strconv"

	"github.com/limitkv/limitkv/engine"
)

// The entries of a file that are not keys.
const (
	opTemplate   = 242          // the fields of a template
	opSlotImport = 243          // Valkey: slots that were being imported when the file was written
	opMeta       = opSlotImport // Redis: what modules have written about the next key
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

// noDB is the database before the first one was selected.
const noDB = -1

// Writer writes a file. It keeps its first error, and then writes nothing more.
type Writer struct {
	// Between, if not nil, is called between the elements of values. Its error ends the file.
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

// NewWriter begins a file. If checked is set, the file ends with its checksum, otherwise with zero, which means none
// (rdbchecksum no).
func NewWriter(to io.Writer, format Format, checked bool) *Writer {
	w := &Writer{to: to, enc: encoder{Format: format}, checked: checked, db: noDB}
	w.enc.file = w
	w.enc.b = append(make([]byte, 0, 2*gathered), format.For.magic()...)
	return w
}

// write writes bytes directly. Gathered bytes must have been flushed before.
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

// Flush writes the gathered bytes.
func (w *Writer) Flush() error {
	w.write(w.enc.b)
	w.enc.b = w.enc.b[:0]
	return w.err
}

// Written is how many bytes were written, including gathered ones.
func (w *Writer) Written() int64 { return w.n + int64(len(w.enc.b)) }

// Keys is how many keys were written.
func (w *Writer) Keys() int64 { return w.keys }

// Aux adds a fact about the file's origin. Readers ignore unknown names.
func (w *Writer) Aux(name, value string) {
	w.enc.byte(opAux)
	w.enc.string([]byte(name))
	w.enc.string([]byte(value))
}

// Origin describes where a file comes from.
type Origin struct {
	Version    string // of Redis
	NowMicros  int64
	UsedMemory uint64
	// Base says that the file is the BASE of an append-only file.
	Base bool
	// More are additional facts by name. They come before Base, like Redis's facts about replication.
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

// Select sets the database of the keys that follow.
func (w *Writer) Select(db int) {
	if db != w.db {
		w.enc.byte(opSelect)
		w.enc.len(uint64(db))
		w.db = db
	}
}

// Database begins a database, with the numbers of its keys and of its keys with a deadline. They help the reader, and
// need not be exact.
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

// Block adds the keys of a block, and empties the block.
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

// End ends the file. It does not sync.
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

// Block contains encoded keys. One goroutine at a time fills it, without a Writer.
type Block struct {
	enc       encoder
	first, db int
	keys      int64
}

// NewBlock returns an empty block. Its format must be the same as that of the Writer.
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

// Len is how many bytes the block contains.
func (b *Block) Len() int { return len(b.enc.b) }

// Keys is how many keys the block contains.
func (b *Block) Keys() int64 { return b.keys }

// Cap is how many bytes fit into the block before it allocates.
func (b *Block) Cap() int { return cap(b.enc.b) }

// Reset empties the block. It keeps the memory, unless that is much more than blocks usually need.
func (b *Block) Reset() {
	if cap(b.enc.b) > blockKeepMax {
		b.enc.b = nil
	}
	b.enc.b, b.keys = b.enc.b[:0], 0
}

const blockKeepMax = 4 << 20

// entry writes a key with its attributes and its value.
func (w *encoder) entry(v *engine.View, e engine.Entry) { w.value(e, w.head(v, e)) }

// head writes a key and its attributes, and returns the type of the value that follows.
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
