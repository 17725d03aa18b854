// Package stream, internal to the server, is Redis's stream: an append-only log of entries with
// fields, and the consumer groups that read it.
//
// Entries are stored in blocks, as in Redis. A block is a listpack that begins with a master entry; the IDs and fields
// of the block's entries are written as differences to it. The blocks are Redis's byte for byte, because a trim with
// "~" removes whole blocks, XINFO counts them, and DUMP writes them. Redis finds a block in a radix tree. Here they are
// in a slice in order of ID, with binary search: entries are added at its end and trimmed at its beginning, and ten
// thousand blocks hold a million entries.
//
// A block is: number of entries, number of deleted entries, number of master fields, the master fields, 0. Then for
// each entry: its flags; its milliseconds and sequence number, minus those of the block; the number of its fields, unless
// they are the master's; its values, each after its field, unless the fields are the master's; and how many elements
// that was, for walking backwards.
//
// Times are unix milliseconds. Byte arguments are copied. Results may alias the stream until the next write.
package stream

import (
	"encoding/binary"
	"errors"
	"slices"
	"sort"
	"unsafe"

	"github.com/limitkv/limitkv/engine/packed"
)

// Limits is how large a block may become: stream-node-max-bytes and stream-node-max-entries, 0 = no limit.
type Limits struct {
	MaxBlockBytes   int
	MaxBlockEntries int
}

// DefaultLimits are Redis's.
var DefaultLimits = Limits{MaxBlockBytes: 4096, MaxBlockEntries: 100}

var (
	// ErrSmallID is returned by Add for an ID that is not after the last one.
	ErrSmallID = errors.New("stream: the ID is equal to or smaller than the last one")
	// ErrTooLarge is returned by Add for an entry that no block can hold.
	ErrTooLarge = errors.New("stream: the entry is too large")
)

// Flags of an entry.
const (
	flagDeleted    = 1
	flagSameFields = 2
)

// Stream is a log of entries. The zero value is an empty one.
type Stream struct {
	blocks       []block
	length       int
	first        ID // of the first entry, 0-0 if there is none
	last         ID
	maxDeleted   ID
	entriesAdded uint64
	groups       []*Group // by name
	dedup        *Dedup   // nil: nothing is remembered, with Redis's limits
}

type block struct {
	id ID // of the master entry: no entry of the block is before it
	lp []byte
	// shared: an image uses lp, too.
	shared bool
}

// own must be called before lp changes. It copies lp if an image shares it.
func (b *block) own() {
	if b.shared {
		b.lp, b.shared = packed.Clone(b.lp), false
	}
}

// Len returns the number of entries.
func (s *Stream) Len() int { return s.length }

// FirstID returns the ID of the first entry, 0-0 if there is none.
func (s *Stream) FirstID() ID { return s.first }

// EdgeID returns the ID before which all was trimmed: that of the first entry, deleted or not, MaxID if there is none.
func (s *Stream) EdgeID() ID {
	if len(s.blocks) == 0 {
		return MaxID
	}
	return s.blocks[0].id
}

// LastID returns the highest ID that the stream ever had.
func (s *Stream) LastID() ID { return s.last }

// MaxDeletedID returns the highest ID that was deleted.
func (s *Stream) MaxDeletedID() ID { return s.maxDeleted }

// EntriesAdded returns how many entries were ever added.
func (s *Stream) EntriesAdded() uint64 { return s.entriesAdded }

// About returns roughly how many entries a range has, judged by its blocks.
func (s *Stream) About(start, end ID) int {
	blocks := s.search(end) - max(s.search(start), 0) + 1
	return max(blocks, 0) * s.length / max(len(s.blocks), 1)
}

// Blocks returns the number of blocks, XINFO's radix-tree-keys.
func (s *Stream) Blocks() int { return len(s.blocks) }

// NextID returns the ID that an entry added now gets, and whether there is one.
func (s *Stream) NextID(nowMillis int64) (ID, bool) {
	if uint64(nowMillis) > s.last.Millis {
		return ID{uint64(nowMillis), 0}, true
	}
	return s.last.Next()
}

// NextSeq returns the next ID with these milliseconds, and whether there is one. Its sequence number is 0, or one more
// than the last.
func (s *Stream) NextSeq(millis uint64) (ID, bool) {
	if millis != s.last.Millis {
		return ID{millis, 0}, true
	}
	id, ok := s.last.Next()
	return id, ok && id.Millis == millis
}

// Add adds an entry with fields and values in turn. Its ID must be after the last one.
func (s *Stream) Add(id ID, pairs [][]byte, lim Limits) error {
	if id.Compare(s.last) <= 0 {
		return ErrSmallID
	}
	total := 0
	for _, p := range pairs {
		total += len(p)
	}
	if total > packed.MaxBytes {
		return ErrTooLarge
	}
	b := s.tail(total, lim)
	n := len(pairs) / 2
	items := make([]packed.Item, 0, 16)
	same := true
	if b == nil {
		items = append(items, packed.Number(1), packed.Number(0), packed.Number(int64(n)))
		for i := 0; i < len(pairs); i += 2 {
			items = append(items, packed.String(pairs[i]))
		}
		items = append(items, packed.Number(0))
		s.blocks = append(s.blocks, block{id: id})
		b = &s.blocks[len(s.blocks)-1]
	} else {
		b.own()
		at := packed.First(b.lp)
		count, _ := packed.Int(b.lp, at)
		b.lp = packed.Replace(b.lp, at, packed.Number(count+1))
		same = b.sameFields(pairs)
	}
	flags, elements := int64(0), 3+n
	if same {
		flags = flagSameFields
	}
	items = append(items, packed.Number(flags), packed.Number(int64(id.Millis-b.id.Millis)), packed.Number(int64(id.Seq-b.id.Seq)))
	if !same {
		items = append(items, packed.Number(int64(n)))
		elements += n + 1
	}
	for i := 0; i < len(pairs); i += 2 {
		if !same {
			items = append(items, packed.String(pairs[i]))
		}
		items = append(items, packed.String(pairs[i+1]))
	}
	items = append(items, packed.Number(int64(elements)))
	b.makeRoom(items)
	b.lp = packed.Append(b.lp, items...)
	s.length++
	s.entriesAdded++
	s.last = id
	if s.length == 1 {
		s.first = id
	}
	return nil
}

// tail returns the last block if it has room for an entry of size bytes, otherwise nil. It compacts a full block.
func (s *Stream) tail(size int, lim Limits) *block {
	if len(s.blocks) == 0 {
		return nil
	}
	b := &s.blocks[len(s.blocks)-1]
	maxBytes := lim.MaxBlockBytes
	if maxBytes == 0 || maxBytes > packed.MaxBytes {
		maxBytes = packed.MaxBytes
	}
	live, deleted := b.counts()
	if len(b.lp)+size >= maxBytes || lim.MaxBlockEntries > 0 && live+deleted >= lim.MaxBlockEntries {
		b.lp = packed.Compact(b.lp)
		return nil
	}
	return b
}

// growMax is the most bytes that a block gets in advance.
const growMax = 1024

// makeRoom doubles a block that is too small for some elements, by at most growMax: more entries will come, and tail
// compacts the block when it is full.
func (b *block) makeRoom(items []packed.Item) {
	size := 0
	for i := range items {
		size += items[i].Size()
	}
	if len(b.lp)+size > cap(b.lp) {
		b.lp = packed.Reserve(b.lp, max(size, min(len(b.lp), growMax)))
	}
}

// counts returns how many entries the block has, and how many deleted ones.
func (b *block) counts() (live, deleted int) {
	at := packed.First(b.lp)
	n, _ := packed.Int(b.lp, at)
	d, _ := packed.Int(b.lp, packed.Next(b.lp, at))
	return int(n), int(d)
}

// setCounts sets what counts returns. The block must not be shared.
func (b *block) setCounts(live, deleted int) {
	at := packed.First(b.lp)
	b.lp = packed.Replace(b.lp, at, packed.Number(int64(live)))
	b.lp = packed.Replace(b.lp, packed.Next(b.lp, at), packed.Number(int64(deleted)))
}

// master returns the number of the master's fields, where they begin, and where the first entry does.
func (b *block) master() (fields, at, entries int) {
	p := packed.Next(b.lp, packed.Next(b.lp, packed.First(b.lp)))
	n, _ := packed.Int(b.lp, p)
	at = packed.Next(b.lp, p)
	p = at
	for range n + 1 { // and the 0 at their end
		p = packed.Next(b.lp, p)
	}
	return int(n), at, p
}

func (b *block) sameFields(pairs [][]byte) bool {
	n, p, _ := b.master()
	if n != len(pairs)/2 {
		return false
	}
	for i := 0; i < len(pairs); i += 2 {
		if !packed.Equal(b.lp, p, pairs[i]) {
			return false
		}
		p = packed.Next(b.lp, p)
	}
	return true
}

// search returns the only block that can have an entry with this ID: the last one that does not begin after it, -1 if
// there is none.
func (s *Stream) search(id ID) int {
	return sort.Search(len(s.blocks), func(i int) bool { return s.blocks[i].id.Compare(id) > 0 }) - 1
}

// Exists reports whether there is an entry with this ID.
func (s *Stream) Exists(id ID) bool {
	it := s.Range(id, id, false)
	return it.Next()
}

// Delete removes the entry with this ID and reports whether there was one. The entry is only marked until its whole
// block can be removed.
func (s *Stream) Delete(id ID) bool {
	it := s.Range(id, id, false)
	if !it.Next() {
		return false
	}
	b := &s.blocks[it.block]
	live, deleted := b.counts()
	if live == 1 {
		s.removeBlocks(it.block, 1)
	} else {
		b.own()
		b.lp = packed.Replace(b.lp, it.flagsAt, packed.Number(it.flags|flagDeleted))
		b.setCounts(live-1, deleted+1)
	}
	s.length--
	if id.Compare(s.maxDeleted) > 0 {
		s.maxDeleted = id
	}
	if id == s.first {
		s.findFirst()
	}
	return true
}

// findFirst finds the ID of the first entry again.
func (s *Stream) findFirst() {
	s.first = ID{}
	if it := s.Range(MinID, MaxID, false); s.length > 0 && it.Next() {
		s.first = it.ID()
	}
}

// removeBlocks removes n blocks from block i on.
func (s *Stream) removeBlocks(i, n int) {
	if i == 0 {
		clear(s.blocks[:n])
		s.blocks = s.blocks[n:]
		return
	}
	s.blocks = slices.Delete(s.blocks, i, i+n)
}

// LastEntryID returns the ID of the last entry, 0-0 if there is none.
func (s *Stream) LastEntryID() ID {
	if it := s.Range(MinID, MaxID, true); it.Next() {
		return it.ID()
	}
	return ID{}
}

// SetID sets the last ID, which must not be before that of the last entry, for XSETID. It sets entriesAdded unless it
// is negative, and maxDeleted unless it is 0-0.
func (s *Stream) SetID(last ID, entriesAdded int64, maxDeleted ID) {
	s.last = last
	if entriesAdded >= 0 {
		s.entriesAdded = uint64(entriesAdded)
	}
	if !maxDeleted.Zero() {
		s.maxDeleted = maxDeleted
	}
}

// RadixNodes returns how many nodes Redis's radix tree of the blocks' IDs has, which XINFO shows.
func (s *Stream) RadixNodes() int {
	keys := make([][16]byte, len(s.blocks))
	for i, b := range s.blocks {
		binary.BigEndian.PutUint64(keys[i][:], b.id.Millis)
		binary.BigEndian.PutUint64(keys[i][8:], b.id.Seq)
	}
	return radixNodes(keys, 0)
}

// radixNodes counts the nodes of a subtree, including its root, which is reached by the first depth bytes that all keys
// share. A node has all further bytes that the keys share, or is a branch.
func radixNodes(keys [][16]byte, depth int) int {
	if len(keys) == 0 || depth == len(keys[0]) {
		return 1
	}
	first, last := keys[0], keys[len(keys)-1] // the keys are sorted, so all share what these two share
	common := depth
	for common < len(first) && first[common] == last[common] {
		common++
	}
	if common > depth {
		return 1 + radixNodes(keys, common)
	}
	nodes := 1
	for from := 0; from < len(keys); {
		to := from + 1
		for to < len(keys) && keys[to][depth] == keys[from][depth] {
			to++
		}
		nodes += radixNodes(keys[from:to], depth+1)
		from = to
	}
	return nodes
}

// MemoryUsage returns the bytes that the stream and its groups take.
func (s *Stream) MemoryUsage() int {
	n := int(unsafe.Sizeof(*s)) + cap(s.blocks)*int(unsafe.Sizeof(block{}))
	for _, b := range s.blocks {
		n += cap(b.lp)
	}
	for _, g := range s.groups {
		n += g.memoryUsage()
	}
	return n + s.dedup.memoryUsage()
}

// estimateMax is how many blocks and groups MemoryEstimate looks at.
const estimateMax = 8

// MemoryEstimate is MemoryUsage in constant time. It looks at a few blocks and groups, and assumes that the others are
// as large on average.
func (s *Stream) MemoryEstimate() int {
	n := int(unsafe.Sizeof(*s)) + cap(s.blocks)*int(unsafe.Sizeof(block{}))
	some := 0
	last := s.blocks[max(len(s.blocks)-estimateMax, 0):]
	for _, b := range last {
		some += cap(b.lp)
	}
	n += some * len(s.blocks) / max(len(last), 1)
	first := s.groups[:min(len(s.groups), estimateMax)]
	some = 0
	for _, g := range first {
		some += g.memoryEstimate()
	}
	return n + some*len(s.groups)/max(len(first), 1)
}

// Clone returns a copy that shares nothing with s.
func (s *Stream) Clone() Stream {
	c := *s
	c.blocks = slices.Clone(s.blocks)
	for i := range c.blocks {
		c.blocks[i].lp = packed.Clone(c.blocks[i].lp)
	}
	c.groups = make([]*Group, len(s.groups))
	for i, g := range s.groups {
		c.groups[i] = g.clone()
	}
	c.dedup = s.dedup.image()
	return c
}
