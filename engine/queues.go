package engine

// A table lists its delay queues, so that metrics can read them again and again without a search through all keys.

import (
	"slices"
	"unsafe"
)

// parted is the entry of an object that has parts.
func (e Entry) parted() *partedEntry { return (*partedEntry)(unsafe.Pointer(e.h)) }

// listed enters a delay queue into the list.
func (t *table) listed(p *partedEntry) {
	p.at = len(t.queues)
	t.queues = append(t.queues, p)
}

// unlisted removes a delay queue from the list. The last queue gets its place. So a walk from the end of the list
// misses no queue that is there all the time.
func (t *table) unlisted(p *partedEntry) {
	last := len(t.queues) - 1
	moved := t.queues[last]
	t.queues[p.at], moved.at = moved, p.at
	t.queues[last] = nil
	t.queues = t.queues[:last]
	if last == 0 {
		t.queues = nil
	}
}

// QueuesMax is how many queues Queues looks at under one lock.
const QueuesMax = 128

// Queues calls fn with at most QueuesMax delay queues of a shard and a database: those with numbers below from. It
// returns the value of from for the next call, 0 at the end. The first call passes math.MaxInt. While the shard is
// reserved it returns false and calls nothing, because the holder may be changing the queues.
func (ks *Keyspace) Queues(shard, db, from int, fn func(Entry)) (next int, ok bool) {
	s := &ks.shards[shard]
	ks.enter(s)
	defer s.mu.Unlock()
	if s.holder != nil {
		return 0, false
	}
	list := s.tables[db].queues
	from = min(from, len(list))
	next = max(from-QueuesMax, 0)
	for _, p := range slices.Backward(list[next:from]) {
		fn(Entry{&p.header})
	}
	return next, true
}

// checkQueues is true if the list has the delay queues of the table, n of them, and each knows its place.
func (t *table) checkQueues(n int) bool {
	for i, p := range t.queues {
		if at := t.find(HashBytes(Entry{&p.header}.Key()), Entry{&p.header}.Key()); p.at != i || at < 0 || t.at(at).h != &p.header {
			return false
		}
	}
	return len(t.queues) == n
}
