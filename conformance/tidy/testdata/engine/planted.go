// The engine's own ways round its gate, to be found by the test. It is no part of any program.
package engine

func (ks *Keyspace) plantedRemove(key []byte) {
	hash, i := locate(key)
	t := &ks.shards[i].tables[0]
	t.remove(t.find(hash, key)) // want "remove changes a value of the keyspace"
}

func (ks *Keyspace) plantedDeadline(s *shard, key []byte) {
	plantedEntry(s, key).dueRef().at = 1 // want "assignment changes a value of the keyspace"
}

func plantedEntry(s *shard, key []byte) Entry {
	t := &s.tables[0]
	return t.at(t.find(HashBytes(key), key))
}

func plantedBytes(s *shard, key []byte) {
	copy(plantedEntry(s, key).raw(), "text") // want "copy changes a value of the keyspace"
}

func plantedSwap(s *Scheduler) {
	for _, ks := range s.keyspaces() {
		plantedTables(&ks.shards[0].tables[0], &ks.shards[0].tables[1]) // want "plantedTables changes a value"
	}
}

// plantedTables is right where a View's method calls it.
func plantedTables(a, b *table) { a.exchange(b) }

func (v *View) plantedRight() {
	plantedTables(&v.KS.shards[0].tables[0], &v.KS.shards[0].tables[1])
}

func plantedOwn() *table {
	t := &table{}
	t.empty()
	return t
}
