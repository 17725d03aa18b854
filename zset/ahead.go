package zset

import (
	"sync/atomic"

	"github.com/limitkv/limitkv/zset/wyhash"
)

// Entries are read before they are needed. Neighbours in the order are anywhere in the arena, and their places in the
// index are anywhere, too: a walk would wait for memory at each entry, and a removal twice. So some entries are read
// together before the first of them is needed, and the processor waits for all at once. Pops of one entry also read the
// next ones: with a million members that takes 30 % off a pop with an add, and 20 % off a removal of ten.

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

// readAhead reads what the removal of entries will read.
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

// never is never set.
var never atomic.Bool

// keepRead keeps the compiler from removing reads whose results are not used. A sum of a few bytes is smaller than the
// number that it is compared with.
func keepRead(read uint64) {
	if read == ^uint64(0) {
		never.Store(true)
	}
}
