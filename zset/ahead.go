package zset

import (
	"sync/atomic"

	"github.com/limitkv/limitkv/zset/wyhash"
)

// Entries are read ahead of their use. Those that follow each other in the order are
// anywhere in the arena, and their places in the index anywhere in that: a walk would
// wait for memory at each entry, and a removal twice. Some entries together are read
// before the first of them is needed, so the processor waits for all at once. Pops of
// one entry read for the next ones, too: among a million that takes 30 % off a pop with
// an add, and 20 % off a removal of ten.

// aheadMax is how many entries are read ahead.
const aheadMax = 8

// readAhead reads entries.
func (a *arena) readAhead(refs []ref) {
	read := uint64(0)
	for _, r := range refs {
		read += uint64(a.at(r)[scoreBytes])
	}
	keepRead(read)
}

// readAhead reads what the removal of entries looks at.
func (l *large) readAhead(refs []ref) {
	l.arena.readAhead(refs)
	read := uint64(0)
	for _, r := range refs {
		h := wyhash.Sum(l.arena.member(r))
		i := h >> (64 - l.index.bits)
		p := &l.index.dir[i].groups[home(h, l.index.depths[i])]
		read += p.tags&1 + uint64(p.refs[groupSlots-1])&1
	}
	keepRead(read)
}

// never is set never.
var never atomic.Bool

// keepRead keeps the compiler from leaving out reads without a purpose. A sum of a few bytes is below the one that it
// looks for.
func keepRead(read uint64) {
	if read == ^uint64(0) {
		never.Store(true)
	}
}
