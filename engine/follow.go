package engine

// Following: what a journal or a primary tells happens, and nothing else does.

import "sync"

// Follow has keys stay until their end is told, as where a journal is applied:
// they are there whatever their deadlines say.
func (ks *Keyspace) Follow(on bool) {
	ks.setExpiry(expiryFollows, !on)
	if !on {
		ks.forwards.flush(ks)
	}
}

// Leave has what falls due left to a primary whose copy the keyspace is, or served again. A key whose time is over stays
// until the primary tells its end, though clients do not see it any more; leases and the other parts of objects are as they
// were told.
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

// forwards are the keys of which parts are to go to others when the keyspace does
// not follow any more.
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

// fromLog tells whether what goes from one key to another does so because that is fromLog.
func (ks *Keyspace) fromLog() bool { return ks.expiryOff.Load()&(expiryFollows|expiryLeft) != 0 }

// Follows tells whether the view makes what a journal or a primary tells.
func (v *View) Follows() bool { return v.expiry()&expiryFollows != 0 }

// without is a hash as it is for who reads it, without the fields whose time is over, which stay until the primary tells
// their end: a copy, as they are rarely there for longer than that takes.
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

// expiry is why what is over for the view stays.
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
