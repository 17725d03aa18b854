package engine

// What the keyspace counts, for INFO and the like. Every shard keeps its counters up to date as keys come and go. So
// adding them up takes the same time however many keys there are, and holds each shard's lock only for a moment.

// Stats are counters since the start or the last reset.
type Stats struct {
	Hits, Misses, Expired, ExpiredFields, Evicted int64
	// EndedGrants counts named grants of limiters that ended by themselves.
	EndedGrants int64
}

func (s *Stats) add(o *Stats) {
	s.Hits += o.Hits
	s.Misses += o.Misses
	s.Expired += o.Expired
	s.ExpiredFields += o.ExpiredFields
	s.Evicted += o.Evicted
	s.EndedGrants += o.EndedGrants
}

// Tally has the counts of a keyspace. Keys that have expired and are not removed yet are included.
type Tally struct {
	Stats Stats
	DBs   []DBStats // by database
	// Kinds is how many keys there are of each kind, Parts what queues and limiters have inside.
	Kinds [kindCount]int
	Parts Parts
	// WaitingKeys is how many keys have waiters, WaitingKeysNoKey how many have one that is also served when the key
	// is removed. Waiters is how many wait for keys of a kind; a waiter for several keys counts once.
	WaitingKeys, WaitingKeysNoKey int
	Waiters                       [kindCount]int

	dbs    []int // databases that have had entries
	extent extent
}

// extent is how much a tally adds up. Each value includes those before it.
type extent int

const (
	extentTables extent = iota // of DBs: Keys, Expires, VolatileHashes, TableBytes
	extentTotals               // all but Sizes
	extentSizes
)

// DBStats are the counts of one database.
type DBStats struct {
	Keys, Expires int
	// VolatileHashes is how many hashes have fields with a deadline.
	VolatileHashes int
	// TableBytes is the memory of the tables without the entries.
	TableBytes int
	// Sizes is nil where there is no key, and in what Totals returns.
	Sizes *Sizes

	ttlMillis, ttls int64 // the sum of the sampled times to live, and their number
}

// Sizes are histograms of lengths, by kind: bytes of strings, elements of others. Bin 0 counts the empty ones, bin i
// those of at least 2^(i-1) and less than 2^i; the last bin has no upper limit.
type Sizes [sizedKinds][SizeBins]int64

// Of is the histogram of a kind.
func (s *Sizes) Of(k Kind) (bins [SizeBins]int64) {
	if s != nil && k != KindNone && k <= sizedKinds {
		bins = s[k-1]
	}
	return bins
}

// AverageTTLMillis is the average time to live of keys with a deadline, by samples.
func (st *DBStats) AverageTTLMillis() int64 { return st.ttlMillis / max(st.ttls, 1) }

// Tally adds up what all shards count. The caller has locked the shards in held, which are none or all. The others
// are locked one after the other; for reserved shards it takes the tally from when the reservation began.
func (ks *Keyspace) Tally(held LockSet) *Tally { return ks.addUp(held, extentSizes) }

// Totals is Tally without Sizes, which take longer than all else together.
func (ks *Keyspace) Totals(held LockSet) *Tally { return ks.addUp(held, extentTotals) }

// Tables is Tally of keys, their deadlines and the tables' bytes alone.
func (ks *Keyspace) Tables(held LockSet) *Tally { return ks.addUp(held, extentTables) }

func (ks *Keyspace) addUp(held LockSet, most extent) *Tally {
	for {
		if t := ks.tally(held, most); t != nil {
			return t
		}
	}
}

// tally returns nil if it has counted a shard that was reserved afterwards, and then finds another shard of that
// reservation: the reservation's tally has both.
func (ks *Keyspace) tally(held LockSet, most extent) *Tally {
	t := ks.newTally(most)
	now := ks.Clock.Now() / 1000
	var counted, reserved uint64
	for i := range ks.shards {
		s, bit := &ks.shards[i], uint64(1)<<i
		if held.mask&bit != 0 {
			t.shard(s, now)
			continue
		}
		if reserved&bit != 0 {
			continue
		}
		ks.enter(s)
		h := s.holder
		switch {
		case h == nil:
			t.shard(s, now)
			counted |= bit
		case h.set.mask&counted == 0:
			reserved |= h.set.mask
			t.add(h.had)
		default:
			t = nil
		}
		s.mu.Unlock()
		if t == nil {
			return nil
		}
	}
	return t
}

// Tally is that of the view's keyspace.
func (v *View) Tally() *Tally { return v.KS.Tally(v.Held) }

// Totals is Tally without Sizes.
func (v *View) Totals() *Tally { return v.KS.Totals(v.Held) }

// Tables is Tally of keys, their deadlines and the tables' bytes alone.
func (v *View) Tables() *Tally { return v.KS.Tables(v.Held) }

func (ks *Keyspace) newTally(most extent) *Tally {
	t := &Tally{DBs: make([]DBStats, ks.dbs), extent: most}
	for db := range ks.been {
		if ks.been[db].Load() {
			t.dbs = append(t.dbs, db)
		}
	}
	return t
}

// The samples from a shard's wheel for the average time to live: ttlSamples of them, among so many nodes.
const (
	ttlSamples = 2
	ttlNodes   = 16
)

// shard adds what a shard counts.
func (t *Tally) shard(s *shard, nowMillis int64) {
	if t.extent > extentTables {
		t.Stats.add(&s.stats)
		if len(s.waits) > 0 {
			t.WaitingKeys += len(s.waits)
			t.WaitingKeysNoKey += s.waiters.noKey
			for k, n := range s.waiters.kinds {
				t.Waiters[k] += n
			}
		}
	}
	for _, db := range t.dbs {
		tb, st := &s.tables[db], &t.DBs[db]
		if tb.counts == nil {
			continue
		}
		st.Keys += tb.used
		st.Expires += s.wheel.volatileKeys[db]
		st.VolatileHashes += s.wheel.volatileHashes[db]
		st.TableBytes += tb.width * int(slotBytes)
		if t.extent == extentTables || tb.used == 0 {
			continue
		}
		t.Parts.add(&tb.counts.parts, 1)
		for k := range tb.counts.kinds {
			t.Kinds[k] += tb.counts.kinds[k]
		}
		if t.extent < extentSizes {
			continue
		}
		if st.Sizes == nil {
			st.Sizes = new(Sizes)
		}
		for k := range tb.counts.sizes {
			left, from, to := tb.counts.kinds[k+1], &tb.counts.sizes[k], &st.Sizes[k]
			for i := 0; left > 0 && i < SizeBins; i++ { // lengths are mostly small, so most bins need not be read
				n := from[i]
				to[i] += int64(n)
				left -= int(n)
			}
		}
	}
	if t.extent > extentTables {
		s.wheel.ttls(t.DBs, nowMillis)
	}
}

// ttls samples some deadlines, different ones each time.
func (w *wheel) ttls(dbs []DBStats, nowMillis int64) {
	n := len(w.nodes) - wheelHeads
	if n <= 0 {
		return
	}
	samples := 0
	for i := 0; i < min(n, ttlNodes) && samples < ttlSamples; i++ {
		w.sampled = (w.sampled + 1) % n
		ref := w.nodes[wheelHeads+w.sampled].ref
		if ref == nil {
			continue
		}
		e := Entry{(*header)(ref)}
		if at := e.Deadline(); at > nowMillis {
			st := &dbs[e.dueRef().db]
			st.ttlMillis += at - nowMillis
			st.ttls++
			samples++
		}
	}
}

// add adds the counts of another tally.
func (t *Tally) add(o *Tally) {
	t.Stats.add(&o.Stats)
	t.Parts.add(&o.Parts, 1)
	t.WaitingKeys += o.WaitingKeys
	t.WaitingKeysNoKey += o.WaitingKeysNoKey
	for k := range t.Kinds {
		t.Kinds[k] += o.Kinds[k]
		t.Waiters[k] += o.Waiters[k]
	}
	for db := range t.DBs {
		st, from := &t.DBs[db], &o.DBs[db]
		st.Keys += from.Keys
		st.Expires += from.Expires
		st.VolatileHashes += from.VolatileHashes
		st.TableBytes += from.TableBytes
		st.ttlMillis += from.ttlMillis
		st.ttls += from.ttls
		if from.Sizes == nil || t.extent < extentSizes {
			continue
		}
		if st.Sizes == nil {
			st.Sizes = new(Sizes)
		}
		for k := range from.Sizes {
			for i, n := range from.Sizes[k] {
				st.Sizes[k][i] += n
			}
		}
	}
}

// ResetStats sets the counters of all shards, which are held, to zero.
func (v *View) ResetStats() {
	for i := range v.KS.shards {
		v.KS.shards[i].stats = Stats{}
	}
}
