package stream

import "github.com/limitkv/limitkv/engine/packed"

// Trim says what to keep of a stream: at most MaxLen entries or, with ByID, those from MinID on.
type Trim struct {
	MaxLen int
	MinID  ID
	ByID   bool
	// Whole removes only whole blocks ("~"), which is fast and may leave some more entries.
	Whole bool
	// Limit is the most entries to remove, 0 = any number. The trim ends before the block that exceeds it.
	Limit int
}

// Trim removes entries from the beginning and returns how many.
func (s *Stream) Trim(t Trim) int {
	removed, blocks := 0, 0
	for ; blocks < len(s.blocks); blocks++ {
		if !t.ByID && s.length <= t.MaxLen {
			break
		}
		b := &s.blocks[blocks]
		live, _ := b.counts()
		if t.Limit > 0 && removed+live > t.Limit {
			break
		}
		whole := !t.ByID && s.length-live >= t.MaxLen || t.ByID && b.lastID().Compare(t.MinID) < 0
		if !whole {
			if !t.Whole {
				removed += s.trimBlock(b, t)
			}
			break
		}
		s.length -= live
		removed += live
	}
	s.removeBlocks(0, blocks)
	if removed > 0 {
		s.findFirst()
	}
	return removed
}

// lastID returns the ID of the block's last entry, deleted or not.
func (b *block) lastID() ID {
	id, _ := b.entryBefore(packed.End(b.lp))
	return id
}

// trimBlock marks entries of the first remaining block as deleted and returns how many.
func (s *Stream) trimBlock(b *block, t Trim) int {
	live, deleted := b.counts()
	b.own()
	removed := 0
	for it := s.Range(b.id, MaxID, false); it.Next(); {
		if !t.ByID && s.length <= t.MaxLen || t.ByID && it.ID().Compare(t.MinID) >= 0 || &s.blocks[it.block] != b {
			break
		}
		size := len(b.lp)
		b.lp = packed.Replace(b.lp, it.flagsAt, packed.Number(it.flags|flagDeleted))
		s.length--
		removed++
		// Flags take one byte, so the iterator's positions stay valid. Only software other than Redis and this server
		// can have written longer ones.
		if next, ok := it.ID().Next(); ok && len(b.lp) != size {
			it = s.Range(next, MaxID, false)
		}
	}
	b.setCounts(live-removed, deleted+removed)
	return removed
}
