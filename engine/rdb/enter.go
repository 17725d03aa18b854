package rdb

// Entering values that were read into a keyspace.

import (
	"fmt"
	"sync"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/limiter"
)

// Put stores a value under a key and replaces an existing one. expireMillis is in Unix milliseconds, 0 for never.
func Put(v *engine.View, key []byte, value Value, expireMillis int64) engine.Entry {
	e := put(v, key, value, expireMillis)
	if forwarding(value.Object) {
		v.ForwardSoon(key)
	}
	return e
}

func put(v *engine.View, key []byte, value Value, expireMillis int64) engine.Entry {
	switch value.Kind {
	case engine.KindString:
		return v.PutString(key, value.String, expireMillis)
	case engine.KindLimiter:
		if value.Object != nil {
			break
		}
		return v.PutBytes(value.Kind, key, limiter.Compact(value.String), expireMillis)
	case engine.KindLock:
		return v.EnterLock(key, value.String, value.Object, expireMillis)
	}
	return v.PutObject(key, value.Kind, value.Object, expireMillis)
}

// forwarding reports whether an object has parts that have to move to another key.
func forwarding(object any) bool {
	x, ok := object.(engine.Forwarder)
	return ok && x.Forwarding()
}

// SetUsage sets how an entry was used: idle for so many seconds, or an LFU counter. It ignores negative values, and a
// fact that the keyspace does not track.
func SetUsage(v *engine.View, e engine.Entry, idleSeconds, freq int64) {
	switch lfu := v.KS.LFU.Load(); {
	case lfu && freq >= 0:
		v.SetFreq(e, uint8(freq))
	case !lfu && idleSeconds >= 0:
		e.SetLastAccess(max(v.Now/1e6-idleSeconds, 0))
	}
}

// DuplicateError is what Enter returns for a key that already exists.
type DuplicateError struct {
	DB  int
	Key string
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("the key %.200q of database %d is there already", e.Key, e.DB)
}

// Into enters the keys that a Loader reads into a keyspace, and locks them for that. Its Enter serves as the Loader's.
//
// Nothing may fall due meanwhile (Keyspace.PauseExpiry): a lease that ends could create a dead-letter queue whose key
// has not been read yet.
type Into struct {
	KS *engine.Keyspace
	// Replace replaces existing keys. Without it, an existing key is an error.
	Replace bool
	// View, if not nil, is used to enter the keys. Its holder has all locks, so that Enter takes none.
	View *engine.View

	mu      sync.Mutex
	forward []place
}

// place is a key of a database.
type place struct {
	db  int
	key string
}

// Enter enters keys.
func (x *Into) Enter(items []Item) (err error) {
	if v := x.View; v != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		defer func(db int) { v.DB = db }(v.DB)
		for i := 0; i < len(items) && err == nil; i++ {
			err = x.one(v, &items[i])
		}
		return err
	}
	x.KS.UpdateEach(len(items), func(i int) []byte { return items[i].Key }, func(v *engine.View, i int) bool {
		v.Told = true
		err = x.one(v, &items[i])
		return err == nil
	})
	return err
}

func (x *Into) one(v *engine.View, it *Item) error {
	v.DB = it.DB
	if !x.Replace && v.Find(it.Key).Ok() {
		return &DuplicateError{it.DB, string(it.Key)}
	}
	e := put(v, it.Key, it.Value, it.ExpireMillis)
	SetUsage(v, e, it.IdleSeconds, it.Freq)
	if x.View != nil {
		v.Modified(it.Key)
	}
	if forwarding(it.Value.Object) {
		x.later(it)
	}
	return nil
}

// later records a queue that has to forward dead letters.
func (x *Into) later(it *Item) {
	if x.View == nil {
		x.mu.Lock()
		defer x.mu.Unlock()
	}
	x.forward = append(x.forward, place{it.DB, string(it.Key)})
}

// Done is called after everything was entered, by a caller without locks or by the holder of View.
func (x *Into) Done() {
	for _, p := range x.forward {
		x.KS.ForwardSoon(p.db, []byte(p.key))
	}
}
