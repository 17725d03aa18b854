package engine

// Transactions other than clients' commands: each begins and ends in one place, here. Those of clients' commands are
// in server/pipeline.go, since it is the hot path: their locks may become a reservation, or pass to the next command.
//
// No panic leaves a lock behind. If a transaction that panics has changed no key yet, what it has done is committed
// (keys may have expired), and the panic goes on to the caller. If it has changed one, the process ends before
// anybody can see the change (doubt.go).

import "sync"

// Update runs a transaction: fn changes keys of some shards through a View. Then Update appends its effects to the
// journal as one whole, counts its changes, serves those who wait for its keys, and releases the locks. It waits for
// reservations of the shards, so neither an event loop may call it nor a caller that holds a lock. fn must not keep
// the View.
func (ks *Keyspace) Update(set LockSet, fn func(v *View)) {
	ks.LockWaiting(set)
	ks.begin(set, ks.Clock.Now(), false).transact(fn)
}

// TryUpdate is Update for callers that must not wait: if a shard is reserved, it does nothing and returns the
// reservation. The caller can try again when that ends (OnRelease).
func (ks *Keyspace) TryUpdate(set LockSet, fn func(v *View)) (holder *Reservation) {
	h := ks.Lock(set)
	if h == nil {
		ks.begin(set, ks.Clock.Now(), false).transact(fn)
	}
	return h
}

// upkeep is TryUpdate for what the keyspace does by itself, at a given time. Its effects are independent of each
// other, and it does not count its changes.
func (ks *Keyspace) upkeep(set LockSet, nowMicros int64, fn func(v *View)) (holder *Reservation) {
	h := ks.Lock(set)
	if h == nil {
		ks.begin(set, nowMicros, true).transact(fn)
	}
	return h
}

// UpdateEach is Update for each of n keys, one after the other, until fn returns false. It is for loading: there one
// View for all keys saves a good part of the time.
func (ks *Keyspace) UpdateEach(n int, key func(i int) []byte, fn func(v *View, i int) bool) {
	v := ks.begin(LockSet{}, ks.Clock.Now(), false)
	for i, more := 0, true; more && i < n; i++ {
		v.Forget()
		v.Held.Reset()
		v.Need(&v.Held, key(i))
		ks.LockWaiting(v.Held)
		v.doubt = false
		func() {
			defer v.finish()
			more = fn(v, i)
		}()
	}
	views.Put(v)
}

// views are reused by transactions, with their memory for effects.
var views = sync.Pool{New: func() any { return new(View) }}

// begin makes a View of shards whose locks are held.
func (ks *Keyspace) begin(set LockSet, nowMicros int64, system bool) *View {
	v := views.Get().(*View)
	*v = View{KS: ks, Now: nowMicros, Held: set, system: system, NoTouch: system,
		ready: v.ready[:0], tx: tx{resp: v.resp[:0], ends: v.ends[:0], keys: v.keys[:0], scratch: v.scratch}}
	return v
}

// transact calls fn, then ends the transaction and the View.
func (v *View) transact(fn func(v *View)) {
	func() {
		defer v.finish()
		fn(v)
	}()
	views.Put(v)
}

// finish is deferred by every transaction, and ends it. To serve those who wait it may take further locks, which it
// releases.
func (v *View) finish() {
	defer v.KS.Unlock(v.Held)
	if v.doubt {
		v.KS.Sched.ends(recover())
	}
	v.doubt = true // a panic below leaves a change half done
	defer v.KS.Sched.caught()
	if v.system {
		v.CommitApart()
	} else {
		v.EndCommand(nil)
		v.Commit()
		if n := v.TakeChanges(); n != 0 {
			v.KS.Dirty.Add(n)
		}
	}
	v.ServeReady()
	v.Account()
}

// Reader is a View without the verbs that change keys or bring them up to now.
type Reader View

// Reader returns the view as a Reader.
func (v *View) Reader() *Reader { return (*Reader)(v) }

// Find is View.Find.
func (r *Reader) Find(key []byte) Entry { return (*View)(r).Find(key) }

// EachStored is View.EachStored.
func (r *Reader) EachStored(fn func(Entry)) { (*View)(r).EachStored(fn) }

// Idle is View.Idle.
func (r *Reader) Idle(e Entry) bool { return (*View)(r).Idle(e) }

// Inspect calls fn with a Reader of some shards. It waits as Update does.
func (ks *Keyspace) Inspect(set LockSet, fn func(r *Reader)) {
	ks.LockWaiting(set)
	ks.look(set, fn)
}

// TryInspect is to Inspect what TryUpdate is to Update.
func (ks *Keyspace) TryInspect(set LockSet, fn func(r *Reader)) (holder *Reservation) {
	h := ks.Lock(set)
	if h == nil {
		ks.look(set, fn)
	}
	return h
}

func (ks *Keyspace) look(set LockSet, fn func(r *Reader)) {
	defer ks.Unlock(set)
	v := ks.begin(set, ks.Clock.Now(), true)
	fn(v.Reader())
	if ks.Strict && (v.doubt || v.changes != 0) {
		panic("engine: who looks has changed keys")
	}
	views.Put(v)
}
