// Package engine, internal to the server, is the keyspace: shards and their locks, entries, expiry,
// the clock and those who wait for a key. It knows no protocol and no Lua.
//
// A key belongs to one shard, chosen by the hash of its {hashtag} or of the
// whole name, so the keys of one limiter or queue share a lock. A command
// locks the shards of its keys in ascending order, works through a View, and
// lets go. Everything that changes keys goes through the verbs of View.
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

// Shards is how many parts the keys are in, each with a lock of its own.
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
	been   []atomic.Bool // by database: it has had entries

	// Events is told of every event whose class is enabled; nil = none.
	Events func(v *View, db int, class EventClass, event string, key []byte)
	// EventMask is the set of classes that Events wants.
	EventMask atomic.Uint32
	// Touched is told of every modified key while Tracking is on (client-side
	// caching); it is called under the key's lock.
	Touched  func(v *View, db int, key []byte)
	Tracking atomic.Bool
	// Forward moves what is to go from a key to another (Forwarder). It is called
	// with no lock held; nil = nothing is forwarded.
	Forward func(ks *Keyspace, db int, key []byte)
	// LineLeft, if set, is told when nobody waits for a key any more, under its lock.
	LineLeft func(ks *Keyspace, db int, key string)
	// LockLost tells a connection that it holds a lock no more; it is called under the key's lock. Connected tells whether
	// a connection is there. nil = nobody is told, none is there.
	LockLost  func(key []byte, session, fence int64)
	Connected func(session int64) bool
	// Fences numbers the grants of locks.
	Fences *Fences
	// Journal takes the effects of all transactions, and Causes names those of
	// what the keyspace does by itself.
	Journal *journal.Log
	Causes  Causes
	// Strict: what breaks a rule of transactions panics, as in tests.
	Strict bool
	// Clone copies an object, for snapshots; the copy shares nothing with it.
	Clone func(obj any) any
	// Dirty counts changes since the start.
	Dirty atomic.Int64
	// bytes is what the keys take, as far as views have entered it.
	bytes atomic.Int64
	// LFU makes accesses count (maxmemory-policy *-lfu) instead of their time.
	LFU     atomic.Bool
	LFURule LFURule

	// cut is the one that is under way; the entries that it has, or that are none of
	// its, have flagSaved as saved says. mixed: a Restore brought others. All change
	// under all locks.
	cut   *Cut
	saved uint8
	mixed bool

	expiryOff atomic.Uint32 // expiryIdle and so on
	forwards  forwards
	own       ownKeys
	helds     helds
}

// shard is a part of the keyspace. What a command writes in it is in one cache
// line, which no other shard shares: the loops take them from each other.
type shard struct {
	shardState
	_ [shardBytes - unsafe.Sizeof(shardState{})]byte
}

// shardBytes is a multiple of two cache lines, since processors fetch pairs, and
// such that all shards take more than 32 KB: Go begins only such memory at a
// cache line.
const shardBytes = 640

type shardState struct {
	mu     sync.Mutex   // see Keyspace.enter: not to be locked otherwise
	holder *Reservation // an off-loop script has the shard for longer
	tables []table      // by database
	stats  Stats        // what every command writes shares a cache line with the lock
	wheel  wheel
	sweep  sweep
	// waits and watches are by database and key.
	waits   map[waitKey]*waitList
	waiters waiterCounts
	watches map[waitKey][]watch
	// bound are the locks of which leases are bound to connections.
	bound map[unsafe.Pointer]struct{}
	// nextDue is when the wheel wants to be turned or the shard to be swept, in
	// Unix milliseconds.
	nextDue atomic.Int64
	// While replies may have to wait (Log.Holds): changed is the place of the last change; near those of changes of one key, by the key's hash, and wide that
	// of the last other one.
	changed, wide journal.LSN
	near          *[nearSlots]journal.LSN
}

// nearSlots is how many parts of a shard's keys have a place in the journal of their own: with 1,000 writers at once, of
// 65,536 parts, one read in 65 waits for another key's write.
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

// locate is the hash of key and its shard. The hash of the {hashtag} chooses
// the shard: it has the property that matters of Redis Cluster's CRC16 slot –
// keys with one tag are together – and for keys without a tag costs nothing,
// where the CRC of 16 bytes costs 16 ns.
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
