package stream

// Taking a stream apart and putting it together: DUMP and RESTORE.

import (
	"errors"

	"github.com/limitkv/limitkv/engine/packed"
)

// ErrCorrupt is returned by Restore for blocks that no stream has.
var ErrCorrupt = errors.New("stream: corrupted blocks")

// Block is a part of the log: a listpack, and the ID that its entries are written as differences to.
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

// Restore returns a stream without groups of these blocks, which it verifies and copies.
func Restore(blocks []Block, last, maxDeleted ID, entriesAdded uint64) (Stream, error) {
	s := Stream{last: last, maxDeleted: maxDeleted, entriesAdded: entriesAdded}
	for _, b := range blocks {
		s.blocks = append(s.blocks, block{id: b.ID, lp: packed.Clone(b.Listpack)})
	}
	var end ID
	var err error
	if s.length, s.first, end, err = s.checkBlocks(); err != nil || end.Compare(last) > 0 {
		return Stream{}, ErrCorrupt
	}
	return s, nil
}
