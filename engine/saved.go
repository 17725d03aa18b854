package engine

// A copy of all databases, to have them back as they were.

// Saved is a copy of the keys of all databases with their deadlines and when they were used. It does not change.
type Saved struct {
	keys [][]Entry // by database; of an object's entry, the object is what freeze made of it
	n    int
}

// Len is how many keys there are.
func (s *Saved) Len() int { return s.n }

// Save copies all databases. All shards are held. freeze makes of an object what is kept of it, and shares nothing with
// it.
func (v *View) Save(freeze func(e Entry) any) *Saved {
	db := v.DB
	defer func() { v.DB = db }()
	s := &Saved{keys: make([][]Entry, v.KS.Databases())}
	for v.DB = range s.keys {
		if n := v.Count(); n > 0 {
			s.keys[v.DB] = make([]Entry, 0, n)
		}
		v.Each(func(e Entry) bool {
			var obj any
			if e.h.flags&flagObject != 0 {
				if _, big := e.object().obj.(*bigString); !big {
					obj = freeze(e)
				}
			}
			s.keys[v.DB] = append(s.keys[v.DB], v.detached(e, obj))
			return true
		})
		s.n += len(s.keys[v.DB])
	}
	return s
}

// Restore stores copies of all saved keys; those whose time is over meanwhile are left out. All shards are held. thaw
// makes an object of what freeze made of it.
func (v *View) Restore(s *Saved, thaw func(kind Kind, frozen any) any) {
	db := v.DB
	defer func() { v.DB = db }()
	var scratch [20]byte
	for v.DB = range s.keys {
		for _, e := range s.keys[v.DB] {
			deadline := e.Deadline()
			if deadline != 0 && deadline < v.Now/1000 {
				continue
			}
			var obj any
			if e.h.flags&flagObject != 0 {
				if _, big := e.object().obj.(*bigString); !big {
					obj = thaw(e.h.kind, e.object().obj)
				}
			}
			var w Entry
			if e.h.kind == KindString { // the text decides how it is held, not how it came about
				w = v.PutString(e.Key(), e.Bytes(scratch[:0]), deadline)
			} else {
				w = v.detached(e, obj)
				if d := w.dueRef(); d != nil {
					d.at = 0
				}
				w = v.put(w, deadline)
			}
			w.h.access, w.h.freq = e.h.access, e.h.freq
			if x, ok := obj.(Expirer); ok && x.NextDue() != 0 {
				v.InnerDue(w)
			}
			v.Modified(w.Key())
		}
	}
}

// Has tells whether there is a key that is saved as well. All shards are held.
func (s *Saved) Has(v *View) bool {
	db := v.DB
	defer func() { v.DB = db }()
	for v.DB = range s.keys {
		if v.Count() == 0 {
			continue
		}
		for _, e := range s.keys[v.DB] {
			if v.Peek(e.Key()).Ok() {
				return true
			}
		}
	}
	return false
}

// detached is a copy of an entry that is in no table and no wheel. An object's becomes obj.
func (v *View) detached(e Entry, obj any) Entry {
	var w Entry
	if e.h.flags&flagObject == 0 {
		w = v.copied(e, e.Key())
	} else {
		if big, ok := e.object().obj.(*bigString); ok {
			obj = &bigString{append([]byte(nil), big.b...)}
		}
		w = newObjectEntry(e.h.kind, e.Key(), obj)
		w.h.flags |= e.h.flags & (flagIdle | flagRaw)
	}
	w.h.access, w.h.freq = e.h.access, e.h.freq
	if d := w.dueRef(); d != nil {
		d.at = e.Deadline()
	}
	return w
}
