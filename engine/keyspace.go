// Package engine, internal to the server, is the keyspace: shards and their locks, entries, expiry, the clock and the
// waiters of keys. It knows no protocol and no Lua.
//
// A key belongs to one shard, chosen by the hash of its {hashtag} or of the whole name, so the keys of one limiter or
// queue share a lock. A command locks the shards of its keys in ascending order, works through a View, and releases
// the locks. Only the verbs of View change keys.
package engine

import (
	"bytes"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/limitkv/limitkv/engine/journal"
)

// shardCount is a power of two. More shards collide less and rebuild smaller
// tables; fewer are faster to lock all at once.
const shardCount = 64

// Shards is the number of parts of the keyspace, each with its own lock.
const Shards = shardCount

// DatabasesMax is the most databases a keyspace can be made with.
const DatabasesMax = 16384

// Keyspace holds all the keys of all the databases.
type Keyspace struct {
	shards [shardCount]shard // first, so that they begin at a cache line
	gate   gate
	Clock  *Clock
	Sched  *Scheduler
	dbs    int
	been   []atomic.Bool // by database: whether it ever had entries

	// Events is called for every event whose class is enabled; nil = none.
	Events func(v *View, db int, class EventClass, event string, key []byte)
	// EventMask is the set of classes that Events wants.
	EventMask atomic.Uint32
	// Touched is called for every modified key while Tracking is on (client-side caching), under the key's lock.
	Touched  func(v *View, db int, key []byte)
	Tracking atomic.Bool
	// Forward moves parts of a key's object to another key, such as dead letters (Forwarder). It is called with no
	// lock held; nil = nothing is forwarded.
	Forward func(ks *Keyspace, db int, key []byte)
	// LineLeft, if set, is called under the key's lock when its last waiter has left.
	LineLeft func(ks *Keyspace, db int, key string)
	// LockLost tells a connection that it lost a lock; it is called under the key's lock. Connected tells whether a
	// connection is still open. If nil, no connection is told, and none counts as open.
	LockLost  func(key []byte, session, fence int64)
	Connected func(session int64) bool
	// Fences numbers the grants of locks.
	Fences *Fences
	// Journal takes the effects of all transactions, and Causes logs what the keyspace does by itself.
	Journal *journal.Log
	Causes  Causes
	// Strict makes a broken rule of transactions panic, as in tests.
	Strict bool
	// Clone copies an object, for snapshots; the copy shares nothing with it.
	Clone func(obj any) any
	// Dirty counts changes since the start.
	Dirty atomic.Int64
	// bytes is the memory that the keys take, as far as views have added it (Account).
	bytes atomic.Int64
	// LFU turns on the access counters of keys (maxmemory-policy *-lfu).
	LFU     atomic.Bool
	LFURule LFURule

	// cut is the cut in progress, nil if there is none. In an entry that the cut has already, or that is not part of
	// it, the bit flagSaved equals saved. mixed: after Restore, Take or Abort, the bits of the entries may differ.
	// All three change under all locks.
	cut   *Cut
	saved uint8
	mixed bool

	expiryOff atomic.Uint32 // expiryIdle and so on
	forwards  forwards
	own       ownKeys
	helds     helds
}

// shard is a part of the keyspace. The fields that a command writes are in one cache line, which no other shard
// shares, because that line moves between the processors of the loops.
type shard struct {
	shardState
	_ [shardBytes - unsafe.Sizeof(shardState{})]byte
}

// shardBytes is a multiple of two cache lines, because processors fetch lines in pairs. It makes all shards together
// larger than 32 KB, because Go aligns only such large memory to a cache line.
const shardBytes = 640

type shardState struct {
	mu     sync.Mutex   // see Keyspace.enter, which checks the gate too
	holder *Reservation // the reservation that has the shard, nil if none
	tables []table      // by database
	stats  Stats        // every command writes it: it shares a cache line with the lock
	wheel  wheel
	sweep  sweep
	// waits and watches are by database and key.
	waits   map[waitKey]*waitList
	waiters waiterCounts
	watches map[waitKey][]watch
	// bound is the set of locks with leases that are bound to connections.
	bound map[unsafe.Pointer]struct{}
	// nextDue is when the wheel must be turned or the shard swept next, in Unix milliseconds.
	nextDue atomic.Int64
	// The LSNs of the last changes, while replies may have to wait (Log.Holds): changed is that of any change, near
	// that of a change of one key alone, by the key's hash, and wide that of any other change.
	changed, wide journal.LSN
	near          *[nearSlots]journal.LSN
}

// nearSlots is how many parts of a shard's keys have their own LSN. All shards have 65,536 such parts: with 1,000
// writers at once, one read in 65 waits for another key's write.
const nearSlots = 1 << 10

// nearSlot uses bits that shardOf does not use.
func nearSlot(hash uint64) int { return int(hash >> 54) }

type waitKey struct {
	db  int
	key string
}

// New makes an empty keyspace with the given number of databases.
func New(clock *Clock, databases int) *Keyspace {
	ks := newKeyspace(clock, databases)
	ks.Sched = newScheduler(ks)
	return ks
}

func newKeyspace(clock *Clock, databases int) *Keyspace {
	ks := &Keyspace{Clock: clock, dbs: databases, been: make([]atomic.Bool, databases), Journal: journal.New(), Fences: new(Fences)}
	ks.LFURule.LogFactor.Store(10)
	ks.LFURule.DecayMinutes.Store(1)
	for i := range ks.shards {
		s := &ks.shards[i]
		s.tables = make([]table, 0, databases)
		for db := range databases {
			s.tables = append(s.tables, table{been: &ks.been[db]})
		}
		s.wheel.volatileKeys, s.wheel.promisedKeys, s.wheel.volatileHashes = make([]int, databases), make([]int, databases), make([]int, databases)
		s.nextDue.Store(never)
		s.sweep.earliest = never
	}
	return ks
}

// Databases is the number of databases.
func (ks *Keyspace) Databases() int { return ks.dbs }

// TagOf is the part of the key between the first { and the next }, as Redis
// Cluster defines it, or the whole key.
func TagOf(key []byte) []byte {
	if i := bytes.IndexByte(key, '{'); i >= 0 {
		if j := bytes.IndexByte(key[i+1:], '}'); j > 0 {
			return key[i+1 : i+1+j]
		}
	}
	return key
}

// locate returns the hash of key and its shard. The hash of the {hashtag} chooses the shard, so keys with one tag are
// together, which is what matters of Redis Cluster's CRC16 slots. For keys without a tag it costs nothing more, where
// the CRC of 16 bytes costs 16 ns.
func locate(key []byte) (hash uint64, shard int) {
	hash = HashBytes(key)
	tag := TagOf(key)
	if len(tag) == len(key) {
		return hash, shardOf(hash)
	}
	return hash, shardOf(HashBytes(tag))
}

// Place is where a key belongs: its hash and its shard.
type Place struct {
	hash  uint64
	shard int
}

// PlaceOf finds a key's place. It does not depend on what the keyspace holds.
func PlaceOf(key []byte) Place {
	hash, shard := locate(key)
	return Place{hash, shard}
}

// shardOf uses bits that neither the table's home groups nor its tags use.
func shardOf(hash uint64) int { return int(hash>>48) & (shardCount - 1) }
