package rdb

// Entering what was read in a keyspace.

import (
	"fmt"
	"sync"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/limiter"
)

// Put stores a value under a key, in place of what is there. expireMillis is in Unix
// milliseconds, 0 for never.
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

// forwarding tells whether an object has parts that are to go to another key.
func forwarding(object any) bool {
	x, ok := object.(engine.Forwarder)
	return ok && x.Forwarding()
}

// SetUsage has an entry as it was used: idle for so many seconds, or with an LFU
// counter, as far as they are not negative and the keyspace goes by them.
func SetUsage(v *engine.View, e engine.Entry, idleSeconds, freq int64) {
	switch lfu := v.KS.LFU.Load(); {
	case lfu && freq >= 0:
		v.SetFreq(e, uint8(freq))
	case !lfu && idleSeconds >= 0:
		e.SetLastAccess(max(v.Now/1e6-idleSeconds, 0))
	}
}

// DuplicateError is what Enter returns for a key that there is already.
type DuplicateError struct {
	DB  int
	Key string
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("the key %.200q of database %d is there already", e.Key, e.DB)
}

// Into enters what a Loader reads in a keyspace, taking the locks of the keys. Its
// Enter is the Loader's.
//
// Nothing must fall due meanwhile (Keyspace.PauseExpiry): a lease that ends makes a
// dead-letter queue of which the keys are yet to be read.
type Into struct {
	KS *engine.Keyspace
	// Replace has keys replaced that are there already; else they are an error.
	Replace bool
	// View is what to enter through where its holder has all locks; it then takes
	// none. nil has locks taken.
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

// later remembers a queue that has dead letters to pass on.
func (x *Into) later(it *Item) {
	if x.View == nil {
		x.mu.Lock()
		defer x.mu.Unlock()
	}
	x.forward = append(x.forward, place{it.DB, string(it.Key)})
}

// Done is called when all is entered and no lock is held by who calls, or by its
// View's holder.
func (x *Into) Done() {
	for _, p := range x.forward {
		x.KS.ForwardSoon(p.db, []byte(p.key))
	}
}
