package engine

// Following a journal: what it tells happens, and nothing else does.

import "sync"

// Follow has keys stay until their end is told, as where a journal is applied:
// they are there whatever their deadlines say.
func (ks *Keyspace) Follow(on bool) {
	ks.setExpiry(expiryFollows, !on)
	if !on {
		ks.forwards.flush(ks)
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
		go func() {
			defer ks.Sched.caught()
			ks.Forward(ks, k.db, []byte(k.key), ks.Clock.Now())
		}()
	}
}

// Follows tells whether the keyspace is made of a journal's effects.
func (ks *Keyspace) Follows() bool { return ks.expiryOff.Load()&expiryFollows != 0 }
