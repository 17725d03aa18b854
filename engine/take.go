package engine

// Take: the contents of a whole keyspace are replaced by those of another one, which was made ready beside it.

// Take replaces what the view's keyspace holds by what a sibling of it holds. All shards are held, and nobody else
// uses the sibling, which is useless afterwards. No reader sees a state between the old and the new.
func (v *View) Take(from *Keyspace) {
	ks, db := v.KS, v.DB
	for v.DB = range ks.dbs {
		v.Flush()
	}
	v.DB = db
	ks.replaced()
	for i := range ks.shards {
		s, o := &ks.shards[i], &from.shards[i]
		for db := range s.tables {
			if o.tables[db].segments != nil {
				s.tables[db].exchange(&o.tables[db])
				v.grown += s.tables[db].bytes - o.tables[db].bytes
			}
		}
		s.wheel, s.sweep, s.bound = o.wheel, o.sweep, o.bound
		for k, list := range s.watches {
			v.replaced(list, false, s.tables[k.db].entry([]byte(k.key)))
		}
		ks.noteDue(s)
	}
	from.forwards.mu.Lock()
	defer from.forwards.mu.Unlock()
	for k := range from.forwards.keys {
		ks.forwards.add(k.db, []byte(k.key))
	}
	v.CountChange()
}
