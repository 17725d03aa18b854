package engine

// What the keyspace counts, for INFO.

// Stats are counters since the start or the last reset.
type Stats struct {
	Hits, Misses, Expired, ExpiredFields, Evicted int64
}

// DBStats are what INFO keyspace tells of one database.
type DBStats struct {
	Keys, Expires int
	// VolatileHashes have fields with a deadline.
	VolatileHashes int
	// AverageTTLMillis is how long keys with a deadline have on average.
	AverageTTLMillis int64
}

// Stats adds up the counters of all shards, which are held.
func (v *View) Stats() (sum Stats) {
	for i := range v.KS.shards {
		s := &v.KS.shards[i].stats
		sum.Expired += s.Expired
		sum.ExpiredFields += s.ExpiredFields
		sum.Evicted += s.Evicted
		sum.Hits += s.Hits
		sum.Misses += s.Misses
	}
	return sum
}

// ResetStats sets the counters of all shards, which are held, to zero.
func (v *View) ResetStats() {
	for i := range v.KS.shards {
		v.KS.shards[i].stats = Stats{}
	}
}

// ttlSamplesMax is how many deadlines of a shard AverageTTLMillis looks at.
const ttlSamplesMax = 32

// DBStats counts the keys of a database, and those with a deadline. All shards
// are held.
func (v *View) DBStats(db int) (st DBStats) {
	var sum, n int64
	for i := range v.KS.shards {
		s := &v.KS.shards[i]
		st.Keys += s.tables[db].used
		st.Expires += s.wheel.volatileKeys[db]
		st.VolatileHashes += s.wheel.volatileHashes[db]
		if s.wheel.volatileKeys[db] == 0 {
			continue
		}
		nodes := s.wheel.nodes[min(wheelHeads, len(s.wheel.nodes)):]
		for _, node := range nodes[:min(ttlSamplesMax, len(nodes))] {
			if node.ref == nil {
				continue
			}
			e := Entry{(*header)(node.ref)}
			if at := e.Deadline(); e.dueRef().db == uint32(db) && at > v.Now/1000 {
				sum += at - v.Now/1000
				n++
			}
		}
	}
	if n > 0 {
		st.AverageTTLMillis = sum / n
	}
	return st
}

// TableBytes is what the tables of a database take besides the entries. All
// shards are held.
func (v *View) TableBytes(db int) int {
	here := v.DB
	v.DB = db
	n := v.TableMemory()
	v.DB = here
	return n
}

// WaitingKeys is how many keys are waited for. All shards are held.
func (v *View) WaitingKeys() (n int) {
	for i := range v.KS.shards {
		n += len(v.KS.shards[i].waits)
	}
	return n
}

// WaitingKeysNoKey is how many of them are waited for by somebody who is to be
// told when the key goes. All shards are held.
func (v *View) WaitingKeysNoKey() (n int) {
	for i := range v.KS.shards {
		for _, l := range v.KS.shards[i].waits {
			if l.noKey > 0 {
				n++
			}
		}
	}
	return n
}

// view is a View of the whole keyspace, for which done lets go again. It waits
// for whoever holds keys, so it is not for event loops.
func (ks *Keyspace) view() (v *View, done func()) {
	var all LockSet
	all.AddAll()
	for h := ks.Lock(all); h != nil; h = ks.Lock(all) {
		h.Wait()
	}
	v = &View{KS: ks, Now: ks.Clock.Now(), Held: all}
	return v, func() {
		v.Account()
		ks.Unlock(all)
	}
}

// Stats adds up the counters of all shards. It waits for their locks.
func (ks *Keyspace) Stats() Stats {
	v, done := ks.view()
	defer done()
	return v.Stats()
}

// DBStats is View.DBStats. It waits for the locks of all shards.
func (ks *Keyspace) DBStats(db int) DBStats {
	v, done := ks.view()
	defer done()
	return v.DBStats(db)
}
