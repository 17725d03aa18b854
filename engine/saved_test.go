package engine

// Saved copies against copies of the model's maps.

import (
	"testing"
	"time"
)

// sameObject stands for writing and reading an object: the model's are strings.
func sameObject(e Entry) any                   { return e.Object() }
func thawedObject(_ Kind, frozen any) any      { return frozen }
func (m *model) kept() []map[string]modelValue { return copies(m.dbs) }

func TestSavedAgainstModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	m := newModel(t, seed)
	var saved *Saved
	var was []map[string]modelValue
	restored, merged := 0, 0
	for range 4000 {
		m.step()
		switch m.rng.IntN(40) {
		case 0:
			m.ks.Sched.Advance(int64(m.rng.IntN(300_000)))
		case 1:
			m.do(1, func(v *View) { saved = v.Save(sameObject) })
			was = m.kept()
		case 2:
			if saved == nil {
				continue
			}
			flush := m.rng.IntN(2) == 0
			m.do(2, func(v *View) {
				if flush {
					for v.DB = range m.dbs {
						v.Flush()
						clear(m.dbs[v.DB])
					}
				}
				v.Restore(saved, thawedObject)
			})
			for db := range was {
				for key, x := range was[db] {
					if x.deadline == 0 || x.deadline >= m.nowMillis() {
						m.dbs[db][key] = x
					}
				}
			}
			if restored++; !flush {
				merged++
			}
			m.compareValues()
			if err := m.ks.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if restored == 0 || merged == 0 || merged == restored {
		t.Errorf("%d times restored, %d of them merged", restored, merged)
	}
}

// compareValues looks at everything, with values and deadlines.
func (m *model) compareValues() {
	m.t.Helper()
	m.compare()
	for db := range m.dbs {
		m.do(db, func(v *View) {
			for key := range m.dbs[db] {
				x, ok := m.live(db, key)
				e := v.Peek([]byte(key))
				if e.Ok() != ok || string(e.Bytes(make([]byte, 20))) != x.text || e.Deadline() != x.deadline {
					m.t.Fatalf("%q: %v %q %d, want %v %q %d", key, e.Ok(), e.Bytes(nil), e.Deadline(), ok, x.text, x.deadline)
				}
			}
		})
	}
}
