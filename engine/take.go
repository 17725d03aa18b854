package engine

// Taking over: a whole keyspace in place of another one, which was made ready beside it.

// Take has the keyspace of the view have what a sibling of it has, in place of what it had. All shards are held, and nobody
// else uses the sibling, which is of no use any more. Nobody who looks sees anything between the old and the new.
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
