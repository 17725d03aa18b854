package engine

// Cuts: all keys as they were at one moment, while writers go on. A snapshot file, a replica's first copy and a
// rewritten log are made from a cut.
//
// A cut begins under all locks, which are held for a moment. From then on a bit of each entry tells whether the cut
// has it. A walk passes through the tables in small steps and hands the entries over. Whoever is about to change an
// entry that is not handed over yet hands it over first. Entries that are made later are not part of the cut. So only
// what is being handed over is copied, and a write waits for one entry at most, or for a step of the walk. Of a large
// value, save only makes a beginning (pieces.go).
//
// The meaning of the bit changes with every cut, so no walk has to clear it.
//
// Rejected: fork, which Go cannot do; freezing whole shards, which copies all entries of a shard at its first write.

// cutStep is how many slots are looked at, or kilobytes handed over, under one hold of a shard's lock.
const cutStep = 64

// Cut is a cut in progress.
type Cut struct {
	ks *Keyspace
	// save takes an entry of the view's database, under the lock of its shard.
	save func(v *View, e Entry)
	// dbOf is the number that each database had when the cut began. swapped: some have been exchanged since (SWAPDB).
	dbOf    []int
	swapped bool
	// gone are tables that were emptied before the walk came to them. Nobody else has them any more.
	gone []goneTable
	// failed: the keyspace was replaced.
	failed bool
}

type goneTable struct {
	db int
	table
}

// BeginCut begins a cut. All shards are held, and no other cut is in progress. save is called under the lock of the
// entry's shard, by the walk or by whoever changes the entry; calls for different shards may overlap.
func (v *View) BeginCut(save func(v *View, e Entry)) *Cut {
	v.whole()
	ks := v.KS
	if ks.cut != nil {
		panic("engine: two cuts at once")
	}
	if ks.mixed {
		ks.unmix()
	}
	c := &Cut{ks: ks, save: save, dbOf: make([]int, ks.dbs)}
	for db := range c.dbOf {
		c.dbOf[db] = db
	}
	ks.cut = c
	ks.saved ^= flagSaved
	return c
}

// unmix sets the bit of all entries to one value, after they may have differed. All shards are held.
func (ks *Keyspace) unmix() {
	for i := range ks.shards {
		for db := range ks.shards[i].tables {
			ks.shards[i].tables[db].each(func(e Entry) bool {
				e.h.flags = e.h.flags&^flagSaved | ks.saved
				return true
			})
		}
	}
	ks.mixed = false
}

// replaced notes that the keyspace gets other entries, which belong to no cut in progress and whose bits may have any
// value. All shards are held.
func (ks *Keyspace) replaced() {
	ks.mixed = true
	if ks.cut != nil {
		ks.cut.failed = true
	}
}

// walkPlace is the place of the walk in a shard.
type walkPlace struct {
	db   int
	walk // its field at is a slot
}

// Walk hands over what is left. It takes locks, and waits for reservations, so event loops may not call it. It calls
// pause between two steps. It reports false if the keyspace was replaced meanwhile, so that the cut is not complete.
//
// It takes one step in each shard in turn, so others that wait for a shard get it before the walk comes again. A
// mutex that the walk unlocked and locked again at once would stay with it for a millisecond.
func (c *Cut) Walk(pause func()) bool {
	places := make([]walkPlace, len(c.ks.shards))
	for left := len(places); left > 0; {
		for i := range places {
			if p := &places[i]; p.db < c.ks.dbs {
				c.ks.Inspect(LockSet{1 << i}, func(r *Reader) { c.step((*View)(r), i, p) })
				if p.db == c.ks.dbs {
					left--
				}
				pause()
			}
		}
	}
	// Databases may have been swapped during the walk. end finds the entries that the walk missed, since it looks at
	// all of them again, with all locks.
	var gone []goneTable
	c.ks.Inspect(WholeKeyspace(), func(r *Reader) { gone = c.end((*View)(r)) })
	v := c.ks.begin(WholeKeyspace(), 0, true) // only this goroutine has these tables
	v.walks = true
	for _, t := range gone {
		t.each(func(e Entry) bool {
			if e.h.flags&flagSaved != c.ks.saved {
				v.DB = t.db
				c.save(v, e)
			}
			return true
		})
	}
	return !c.failed
}

// step looks at the next slots of a shard with some left, under its lock.
func (c *Cut) step(v *View, shard int, p *walkPlace) {
	v.walks = true
	s := &c.ks.shards[shard]
	for did := 0; p.db < c.ks.dbs && did < cutStep; {
		t := &s.tables[p.db]
		in := p.segment(t)
		if in == nil {
			*p = walkPlace{db: p.db + 1}
			continue
		}
		v.DB = p.db
		for ; p.at < len(in.slots) && did < cutStep; p.at++ {
			if e := (Entry{(*header)(in.slots[p.at])}); e.h != nil {
				did += int(e.counted() >> 10)
				v.keep(e)
			}
			did++
		}
		if p.at == len(in.slots) {
			p.leave(t)
		}
	}
}

// end hands over what the walk missed if databases were swapped, and ends the cut. All locks are held. It returns the
// tables that were emptied.
func (c *Cut) end(v *View) []goneTable {
	v.walks = true
	if c.swapped {
		for i := range c.ks.shards {
			for v.DB = range c.ks.shards[i].tables {
				c.ks.shards[i].tables[v.DB].each(func(e Entry) bool {
					v.keep(e)
					return true
				})
			}
		}
	}
	c.ks.cut = nil
	return c.gone
}

// Walks tells whether a view that save was called with belongs to Walk, rather than to somebody who changes the
// entry.
func (c *Cut) Walks(v *View) bool { return v.walks }

// Abort ends a cut before Walk has ended it. Nothing more is handed over.
func (c *Cut) Abort() {
	c.ks.Inspect(WholeKeyspace(), func(*Reader) {
		c.save = func(*View, Entry) {} // in case Walk still runs
		c.ks.cut = nil
		c.ks.mixed = true
	})
}

// keep hands an entry of the view's database over to the cut in progress, if the cut does not have it yet. Whoever
// may change or remove an entry calls it first.
func (v *View) keep(e Entry) {
	if c := v.KS.cut; c != nil && e.h.flags&flagSaved != v.KS.saved {
		db := v.DB
		v.DB = c.dbOf[db]
		c.save(v, e)
		v.DB = db
		e.h.flags ^= flagSaved
	}
}

// made marks an entry as not part of the cut.
func (v *View) made(e Entry) { e.h.flags = e.h.flags&^flagSaved | v.KS.saved }

// emptied hands over a table that is about to be emptied.
func (v *View) emptied(t *table) {
	if c := v.KS.cut; c != nil && t.used > 0 {
		c.gone = append(c.gone, goneTable{c.dbOf[v.DB], *t})
	}
}
