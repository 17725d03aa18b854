package engine

// Following: only what a journal or a primary says happens, and nothing else.

import "sync"

// Follow makes keys stay until the log says that they end, as where a journal is applied: they exist whatever their
// deadlines are. on = false ends that.
func (ks *Keyspace) Follow(on bool) {
	ks.setExpiry(expiryFollows, !on)
	if !on {
		ks.forwards.flush(ks)
	}
}

// Leave leaves what falls due to the primary whose copy the keyspace is; on = false ends that. An expired key stays
// until the primary says that it ends, though clients do not see it any more. Leases and other parts of objects also
// end only when the primary says so.
func (ks *Keyspace) Leave(on bool) {
	ks.setExpiry(expiryLeft, !on)
	if !on {
		ks.forwards.flush(ks)
		ks.Sched.Go(ks.endAllOrphans)
	}
}

// endAllOrphans ends the leases that are bound to connections which ended while the keyspace followed.
func (ks *Keyspace) endAllOrphans() {
	for i := range ks.shards {
		ks.endOrphans(i)
	}
}

// forwards are the keys with parts that must go to other keys once the keyspace stops following.
type forwards struct {
	mu   sync.Mutex
	keys map[waitKey]struct{}
}

func (f *forwards) add(db int, key []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys == nil {
		f.keys = make(map[waitKey]struct{})
	}
	f.keys[waitKey{db, string(key)}] = struct{}{}
}

func (f *forwards) flush(ks *Keyspace) {
	f.mu.Lock()
	keys := f.keys
	f.keys = nil
	f.mu.Unlock()
	for k := range keys {
		ks.Sched.Go(func() { ks.Forward(ks, k.db, []byte(k.key)) })
	}
}

// fromLog tells whether the keyspace follows a journal or a primary. Then nothing is forwarded from one key to
// another except by what they say.
func (ks *Keyspace) fromLog() bool { return ks.expiryOff.Load()&(expiryFollows|expiryLeft) != 0 }

// Follows tells whether the view applies what a journal or a primary says.
func (v *View) Follows() bool { return v.expiry()&expiryFollows != 0 }

// without is a hash as its readers see it while the primary has not yet said that its expired fields end: a copy
// without these fields. Such fields rarely stay for long.
func (v *View) without(e Entry) Entry {
	if e.h.kind != KindHash || v.Writes {
		return e
	}
	e = e.twin(v.KS.Clone)
	x, ok := e.object().obj.(Settler)
	for ok {
		n, empty := x.Settle(v.Now, innerBatch, nil)
		if empty {
			return Entry{}
		}
		ok = n > 0
	}
	return e
}

// expiry has the reasons why the view keeps what has expired.
func (v *View) expiry() uint32 {
	off := v.KS.expiryOff.Load()
	if off&expiryLeft == 0 {
		return off
	}
	if v.Told {
		return off | expiryFollows
	}
	return off | expiryPaused
}
