package stream

// Saving and restoring a stream, for DUMP and RESTORE.
//
// Redis accepts most of what a file says about a stream: some files of Redis 5 to 7 say 120 entries of streams that
// have 118. So whatever the entries show is taken from them, and only data that is no entry is refused.

import (
	"errors"
	"math"
	"slices"

	"github.com/limitkv/limitkv/engine/packed"
)

// ErrCorrupt is returned by Restore for blocks that no stream has.
var ErrCorrupt = errors.New("stream: corrupted blocks")

// Block is a part of the log: a listpack, and the ID to which the IDs of its entries are relative.
type Block struct {
	ID       ID
	Listpack []byte
}

// EachBlock calls fn with the blocks in order.
func (s *Stream) EachBlock(fn func(b Block)) {
	for _, b := range s.blocks {
		fn(Block{b.id, b.lp})
	}
}

// Said is what a file says about a stream beside its blocks.
type Said struct {
	Length           uint64
	Last, MaxDeleted ID
	// EntriesAdded is how many entries were ever added. Without KnowsAdded, as before Redis 7, that is how many there
	// are.
	EntriesAdded uint64
	KnowsAdded   bool
	// Sanitize refuses blocks that say a wrong number of entries.
	Sanitize bool
}

// Restore returns a stream without groups from these blocks, which it verifies and copies. repairs describe what was
// wrong in the order of the blocks, in their counts, or in said; the stream has it as the entries show it.
func Restore(blocks []Block, said Said) (s Stream, repairs []string, err error) {
	if len(blocks) == 0 && said.Length != 0 {
		return Stream{}, nil, ErrCorrupt
	}
	r := restoring{said: said}
	for _, b := range blocks {
		if !r.block(block{id: b.ID, lp: packed.Clone(b.Listpack)}) {
			return Stream{}, nil, ErrCorrupt
		}
	}
	if !r.arrange() {
		return Stream{}, nil, ErrCorrupt
	}
	r.tell()
	return r.s, r.repairs, nil
}

// restoring is a stream while its blocks are restored.
type restoring struct {
	s       Stream
	said    Said
	end     ID // the highest ID of all entries, deleted or not
	unclear bool
	repairs packed.Repairs
}

// block adds a block if it is valid. It drops a block without entries that are not deleted.
func (r *restoring) block(b block) bool {
	if packed.Check(b.lp) != nil {
		if b.lp = packed.Recounted(b.lp); b.lp == nil {
			return false
		}
		r.repairs.Note("the elements of a block counted")
	}
	last, ordered, zero := ID{}, true, false
	live, deleted, err := b.walk(func(id ID, gone bool) {
		ordered = ordered && id.Compare(last) > 0 && id.Compare(b.id) >= 0
		if last = id; id.Compare(r.end) > 0 {
			r.end = id
		}
		zero = zero || !gone && id.Zero()
	})
	if err != nil || zero { // no entry has the ID 0-0
		return false
	}
	if saysLive, saysDeleted := b.counts(); saysLive != live || saysDeleted != deleted {
		if r.said.Sanitize {
			return false
		}
		r.repairs.Note("a block says %d entries and %d deleted, and has %d and %d", saysLive, saysDeleted, live, deleted)
		b.setCounts(live, deleted)
	}
	if live == 0 {
		r.repairs.Note("a block without entries left out")
		return true
	}
	r.unclear = r.unclear || !ordered
	r.s.blocks = append(r.s.blocks, b)
	r.s.length += live
	return true
}

// arrange puts the blocks and all entries in order. It returns false if that is impossible.
func (r *restoring) arrange() bool {
	s := &r.s
	if !slices.IsSortedFunc(s.blocks, byID) {
		r.repairs.Note("blocks out of order")
		slices.SortFunc(s.blocks, byID)
	}
	for i := 1; i < len(s.blocks); i++ {
		before := &s.blocks[i-1]
		if before.id == s.blocks[i].id {
			return false
		}
		r.unclear = r.unclear || before.lastID().Compare(s.blocks[i].id) >= 0
	}
	if r.unclear {
		r.repairs.Note("entries out of order")
		return r.rebuild()
	}
	s.findFirst()
	return true
}

func byID(a, b block) int { return a.id.Compare(b.id) }

// rebuild makes new blocks from the entries in order. Of several entries with one ID the first stays.
func (r *restoring) rebuild() bool {
	type entry struct {
		id    ID
		pairs [][]byte
	}
	var all []entry
	for it := r.s.Range(MinID, MaxID, false); it.Next(); {
		e := entry{id: it.ID()}
		for it.NextPair() {
			e.pairs = append(e.pairs, slices.Clone(it.Field()), slices.Clone(it.Value()))
		}
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(a, b entry) int { return a.id.Compare(b.id) })
	r.s = Stream{}
	for _, e := range all {
		if len(r.s.blocks) > 0 && e.id == r.s.last {
			continue
		}
		if r.s.Add(e.id, e.pairs, DefaultLimits) != nil {
			return false
		}
	}
	return true
}

// tell sets in the stream what was said about it, corrected by what the entries show.
func (r *restoring) tell() {
	s, said := &r.s, r.said
	length := uint64(s.length)
	if said.Length != length {
		r.repairs.Note("said to have %d entries, has %d", said.Length, length)
	}
	s.last, s.maxDeleted, s.entriesAdded = said.Last, said.MaxDeleted, said.EntriesAdded
	if r.end.Compare(s.last) > 0 {
		r.repairs.Note("an entry %v after the last ID %v", r.end, s.last)
		s.last = r.end
	}
	if s.maxDeleted.Compare(s.last) > 0 {
		r.repairs.Note("the last deleted ID %v after the last ID %v", s.maxDeleted, s.last)
		s.maxDeleted = s.last
	}
	if !said.KnowsAdded {
		s.entriesAdded = length
	} else if s.entriesAdded < length || s.entriesAdded > math.MaxInt64 {
		r.repairs.Note("said to have had %d entries", s.entriesAdded)
		s.entriesAdded = length
	}
}
