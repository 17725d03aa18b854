package engine

// How large keys are, for INFO keysizes. The histograms are made when they are
// asked for, by looking at every key, and not kept: each write would have to pay
// for what hardly anybody reads. A shard is held while it is looked at, a 64th of
// the keys, so what others do meanwhile waits for a few milliseconds at most where
// there are a million keys.

import "math/bits"

// SizeBins is how many bins there are, which is enough for every length there
// can be.
const SizeBins = 64

// Sizes are histograms of lengths, by kind: strings' bytes, others' elements. Bin
// 0 counts the empty, bin i those of 2^(i-1) and more that are in no later one.
type Sizes [kindCount][SizeBins]int64

// Sizes looks at all keys, also those that have expired and are still there.
// Shards that are not held are taken one after the other, waiting for whoever has
// them, so it is for those who hold all or none, and not on an event loop if none.
func (v *View) Sizes() []Sizes {
	all := make([]Sizes, v.KS.dbs)
	for i := range v.KS.shards {
		s := &v.KS.shards[i]
		held := v.Held.mask>>i&1 != 0
		if !held {
			s.take()
		}
		for db := range s.tables {
			to := &all[db]
			s.tables[db].each(func(e Entry) bool {
				to[e.h.kind][bits.Len(uint(e.Len()))%SizeBins]++
				return true
			})
		}
		if !held {
			s.mu.Unlock()
		}
	}
	return all
}

// take locks a shard. It waits for a holder, and takes a frozen shard as it is:
// what is in it may be looked at.
func (s *shard) take() {
	for {
		s.mu.Lock()
		h := s.holder
		if h == nil || h == cold {
			return
		}
		s.mu.Unlock()
		h.Wait()
	}
}

// Look is a View of the whole keyspace, for which done lets go again. It waits
// for whoever holds keys, so it is not for event loops.
func (ks *Keyspace) Look() (v *View, done func()) { return ks.view() }
