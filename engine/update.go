package engine

// Transactions that no client's command is: each has its one beginning and its one end here. A client's command has them in
// commands/pipeline.go, since it is the hot path: what it holds may become a reservation, or the next command's.
//
// A panic inside leaves no lock behind. If no key has been changed yet, what has been done is committed – keys may have expired –
// and the panic goes on to the caller. If one has, the process ends before anybody else can see it (doubt.go).

import "sync"

// Update does a transaction: fn changes keys of some shards through a View. Then its effects go to the journal as one whole,
// its changes are counted, those who wait for its keys are served, and the locks are let go. It waits for whoever has a
// shard reserved, so neither an event loop may call it nor who has any lock. The View is not to be kept.
func (ks *Keyspace) Update(set LockSet, fn func(v *View)) {
	ks.LockWaiting(set)
	ks.begin(set, ks.Clock.Now(), false).transact(fn)
}

// TryUpdate is Update for who must not wait: where somebody has a shard reserved, who is returned, it does nothing. The
// caller can have itself called again (OnRelease).
func (ks *Keyspace) TryUpdate(set LockSet, fn func(v *View)) (holder *Reservation) {
	h := ks.Lock(set)
	if h == nil {
		ks.begin(set, ks.Clock.Now(), false).transact(fn)
	}
	return h
}

// upkeep is TryUpdate for what the keyspace does by itself, at a time. Its effects have nothing to do with each other, and
// nobody counts its changes.
func (ks *Keyspace) upkeep(set LockSet, nowMicros int64, fn func(v *View)) (holder *Reservation) {
	h := ks.Lock(set)
	if h == nil {
		ks.begin(set, nowMicros, true).transact(fn)
	}
	return h
}

// UpdateEach is Update for each of n keys, one after the other, as long as fn returns true: for loading, where what they share
// is a good part of what they cost.
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

// views are for transactions, with the memory in which they make their effects.
var views = sync.Pool{New: func() any { return new(View) }}

// begin makes a View, of which the locks are held.
func (ks *Keyspace) begin(set LockSet, nowMicros int64, system bool) *View {
	v := views.Get().(*View)
	*v = View{KS: ks, Now: nowMicros, Held: set, system: system, NoTouch: system,
		ready: v.ready[:0], tx: tx{resp: v.resp[:0], ends: v.ends[:0], keys: v.keys[:0], scratch: v.scratch}}
	return v
}

// transact calls fn and ends the transaction and the View.
func (v *View) transact(fn func(v *View)) {
	func() {
		defer v.finish()
		fn(v)
	}()
	views.Put(v)
}

// finish is deferred where a transaction has begun. To serve those who wait it takes further locks, and lets them go.
func (v *View) finish() {
	defer v.KS.Unlock(v.Held)
	if v.doubt {
		v.KS.Sched.ends(recover())
	}
	v.doubt = true // an end that ends halfway is a change that did
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

// Reader is a View without the verbs that change keys, or bring them up to now.
type Reader View

// Reader is the view for who only looks.
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

// TryInspect is to Inspect as TryUpdate is to Update.
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
