package engine

// Cuts: all keys as they were at one moment, while writers go on. A file, a
// replica's first copy and a rewritten log are made of one.
//
// A cut begins under all locks, for a moment. From then on a bit of each entry
// tells whether the cut has it. A walk passes through the tables in small steps
// and hands the entries over; whoever is about to change one that is not handed
// over yet does so first. Entries that are made later are none of the cut's. So
// nothing is copied but what is being handed over, and no write waits for more
// than one entry, or a step of the walk. Of a large value save only makes a
// beginning (pieces.go).
//
// The bit changes its meaning with every cut, which saves a walk that clears it.
//
// Rejected: fork, which Go cannot; freezing whole shards, which copies
// all entries of a shard at its first write.

// cutStep is how many slots are looked at under one hold of a shard's lock, or kilobytes
// handed over.
const cutStep = 64

// Cut is one that is under way.
type Cut struct {
	ks *Keyspace
	// save takes an entry of the view's database, under the lock of its shard.
	save func(v *View, e Entry)
	// dbOf is the number that each database had when the cut began; swapped: some
	// have been exchanged since (SWAPDB).
	dbOf    []int
	swapped bool
	// gone are tables that were emptied before the walk came there: nobody else
	// has them any more.
	gone []goneTable
	// failed: the keyspace was replaced.
	failed bool
}

type goneTable struct {
	db int
	table
}

// BeginCut begins a cut. All shards are held, and no other cut is under way. save is
// called, by whoever, under the lock of the entry's shard; calls for different
// shards may overlap.
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

// unmix makes the bit of all entries the same, after a Restore. All shards are held.
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

// replaced notes that the keyspace gets other entries, which no cut under way has, and whose bits may mean anything. All
// shards are held.
func (ks *Keyspace) replaced() {
	ks.mixed = true
	if ks.cut != nil {
		ks.cut.failed = true
	}
}

// walkPlace is where in a shard the walk is.
type walkPlace struct {
	db   int
	walk // whose at is a slot
}

// Walk hands over what is left. It takes locks, and waits for whoever holds keys for
// longer: not for event loops. pause is called between two steps. It reports false
// if the keyspace was replaced meanwhile, so that nothing is whole.
//
// It goes from shard to shard, a step at a time: who waits for a shard has it before the walk comes again. A mutex that is
// taken again at once is the walk's for a millisecond.
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
	// Databases may have been swapped behind the walk's back: whatever it passed over
	// is found by looking again, with all locks, at tables whose entries all tell.
	var gone []goneTable
	c.ks.Inspect(WholeKeyspace(), func(r *Reader) { gone = c.end((*View)(r)) })
	v := c.ks.begin(WholeKeyspace(), 0, true) // nobody else has these tables
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

// step looks at the next slots of a shard that has some, under its lock.
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

// end hands over what was swapped, and ends the cut, under all locks. It returns what was emptied.
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

// Walks tells whether a view that save was called with is Walk's, rather than that of
// somebody who changes the entry.
func (c *Cut) Walks(v *View) bool { return v.walks }

// Abort ends a cut of which nothing more is wanted, before Walk has.
func (c *Cut) Abort() {
	c.ks.Inspect(WholeKeyspace(), func(*Reader) {
		c.save = func(*View, Entry) {} // for Walk, if that goes on
		c.ks.cut = nil
		c.ks.mixed = true
	})
}

// keep hands an entry of the view's database over to the cut that is under way, if
// that does not have it yet. Whoever may change or remove an entry calls it first.
func (v *View) keep(e Entry) {
	if c := v.KS.cut; c != nil && e.h.flags&flagSaved != v.KS.saved {
		db := v.DB
		v.DB = c.dbOf[db]
		c.save(v, e)
		v.DB = db
		e.h.flags ^= flagSaved
	}
}

// made marks an entry as none of the cut's.
func (v *View) made(e Entry) { e.h.flags = e.h.flags&^flagSaved | v.KS.saved }

// emptied hands the tables over that are about to be emptied.
func (v *View) emptied(t *table) {
	if c := v.KS.cut; c != nil && t.used > 0 {
		c.gone = append(c.gone, goneTable{c.dbOf[v.DB], *t})
	}
}
