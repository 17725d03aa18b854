package engine

// The keyspace compared with a naive model, a map of values and deadlines: every verb, in several databases, while
// the clock moves.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

type modelValue struct {
	text     string
	deadline int64 // Unix ms
}

type model struct {
	t    *testing.T
	ks   *Keyspace
	rng  *rand.Rand
	dbs  []map[string]modelValue
	v    View
	done map[string]int
}

func newModel(t *testing.T, seed uint64) *model {
	clock := NewClock()
	clock.Freeze(1_700_000_000_000_000)
	m := &model{t: t, ks: New(clock, 3), rng: rand.New(rand.NewPCG(seed, 1)), done: map[string]int{}}
	m.ks.Strict = true
	for range 3 {
		m.dbs = append(m.dbs, map[string]modelValue{})
	}
	return m
}

// do runs fn as a command does, with all shards locked, and serves waiters.
func (m *model) do(db int, fn func(v *View)) {
	var all LockSet
	all.AddAll()
	if m.ks.Lock(all) != nil {
		m.t.Fatal("reserved")
	}
	m.v = View{KS: m.ks, DB: db, Now: m.ks.Clock.Now(), Held: all}
	fn(&m.v)
	m.v.EndCommand(nil)
	m.v.Commit()
	m.v.ServeReady()
	m.v.Account()
	m.ks.Unlock(all)
}

func (m *model) nowMillis() int64 { return m.ks.Clock.Now() / 1000 }

// live is the model's value of a key that has not expired.
func (m *model) live(db int, key string) (modelValue, bool) {
	x, ok := m.dbs[db][key]
	if ok && x.deadline != 0 && x.deadline < m.nowMillis() {
		delete(m.dbs[db], key)
		return modelValue{}, false
	}
	return x, ok
}

func (m *model) key() string {
	n := m.rng.IntN(60)
	if n%7 == 0 {
		return fmt.Sprintf("{tag%d}:%d", n%3, n)
	}
	if n%11 == 0 {
		return ""
	}
	return "k" + strconv.Itoa(n)
}

func (m *model) value() string {
	switch m.rng.IntN(4) {
	case 0:
		return strconv.Itoa(m.rng.IntN(1000) - 500)
	case 1:
		return string(make([]byte, m.rng.IntN(3000)))
	default:
		return fmt.Sprintf("value-%d", m.rng.IntN(100))
	}
}

func (m *model) deadline() int64 {
	switch m.rng.IntN(5) {
	case 0:
		return 0
	case 1:
		return m.nowMillis() + int64(m.rng.IntN(5))
	case 2:
		return m.nowMillis() + int64(m.rng.IntN(400))
	case 3:
		return m.nowMillis() + int64(m.rng.IntN(100_000_000))
	default:
		return never - int64(m.rng.IntN(3))
	}
}

func (m *model) step() {
	db, key := m.rng.IntN(3), m.key()
	name := ""
	m.do(db, func(v *View) {
		switch m.rng.IntN(13) {
		case 0, 1:
			name = "put"
			x := modelValue{m.value(), m.deadline()}
			v.PutString([]byte(key), []byte(x.text), x.deadline)
			m.dbs[db][key] = x
		case 2:
			name = "get"
			e := v.Get([]byte(key))
			x, ok := m.live(db, key)
			if e.Ok() != ok || string(e.Bytes(make([]byte, 20))) != x.text || e.Deadline() != x.deadline {
				m.t.Fatalf("get %q: %v %q %d, want %v %q %d", key, e.Ok(), e.Bytes(nil), e.Deadline(), ok, x.text, x.deadline)
			}
		case 3:
			name = "delete"
			_, ok := m.live(db, key)
			if v.Delete([]byte(key)) != ok {
				m.t.Fatalf("delete %q, want %v", key, ok)
			}
			delete(m.dbs[db], key)
		case 4:
			if e := v.GetWrite([]byte(key)); e.Ok() {
				name = "deadline"
				x := m.dbs[db][key]
				x.deadline = m.deadline()
				v.SetDeadline(e, x.deadline)
				m.dbs[db][key] = x
			}
		case 5:
			to := m.key()
			if v.Peek([]byte(key)).Ok() && to != key {
				name = "rename"
				v.Rename([]byte(key), []byte(to))
				m.dbs[db][to] = m.dbs[db][key]
				delete(m.dbs[db], key)
			}
		case 6:
			to, toDB := m.key(), m.rng.IntN(3)
			if e := v.Peek([]byte(key)); e.Ok() && (to != key || toDB != db) {
				name = "copy"
				v.Copy(e, []byte(to), toDB, nil)
				m.dbs[toDB][to] = m.dbs[db][key]
			}
		case 7:
			if toDB := m.rng.IntN(3); toDB != db && v.Peek([]byte(key)).Ok() {
				name = "move"
				v.Move([]byte(key), []byte(key), toDB)
				m.dbs[toDB][key] = m.dbs[db][key]
				delete(m.dbs[db], key)
			}
		case 8:
			name = "edit"
			x, _ := m.live(db, key)
			v.Peek([]byte(key))
			n := m.rng.IntN(2500)
			b := v.EditString([]byte(key), 0, n)
			text := []byte(x.text)
			text = append(text, make([]byte, max(0, n-len(text)))...)[:n]
			if n > 0 {
				b[0], text[0] = 'E', 'E'
			}
			if string(b) != string(text) {
				m.t.Fatalf("edit %q to %d: %q, want %q", key, n, b, text)
			}
			m.dbs[db][key] = modelValue{string(text), x.deadline}
		case 9:
			if n, ok := v.Peek([]byte(key)).intOrNone(); ok {
				name = "setint"
				v.SetInt(v.Peek([]byte(key)), n+1)
				x := m.dbs[db][key]
				x.text = strconv.FormatInt(n+1, 10)
				m.dbs[db][key] = x
			}
		case 10:
			if m.rng.IntN(60) == 0 {
				name = "flush"
				v.Flush()
				clear(m.dbs[db])
			}
		case 11:
			if m.rng.IntN(20) == 0 {
				name = "swap"
				other := m.rng.IntN(3)
				v.Swap(db, other)
				m.dbs[db], m.dbs[other] = m.dbs[other], m.dbs[db]
			}
		case 12:
			name = "object"
			x := modelValue{"", m.deadline()}
			v.PutObject([]byte(key), KindString, &bigString{b: []byte{}}, x.deadline)
			m.dbs[db][key] = x
		}
	})
	m.done[name]++
}

func (e Entry) intOrNone() (int64, bool) {
	if e.h == nil {
		return 0, false
	}
	return e.Int()
}

// compare compares everything, with SCAN and with Each.
func (m *model) compare() {
	for db := range m.dbs {
		var want []string
		for key := range m.dbs[db] {
			if _, ok := m.live(db, key); ok {
				want = append(want, key)
			}
		}
		slices.Sort(want)
		m.do(db, func(v *View) {
			var got, scanned []string
			v.Each(func(e Entry) bool { got = append(got, string(e.Key())); return true })
			for cursor := uint64(0); ; {
				cursor = v.Scan(cursor, 3, func(e Entry) { scanned = append(scanned, string(e.Key())) })
				if cursor == 0 {
					break
				}
			}
			slices.Sort(got)
			slices.Sort(scanned)
			if !slices.Equal(got, want) || !slices.Equal(scanned, want) {
				m.t.Fatalf("database %d:\neach %q\nscan %q\nwant %q", db, got, scanned, want)
			}
		})
	}
}

func TestKeyspaceAgainstModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	m := newModel(t, seed)
	for i := range 20_000 {
		m.step()
		if m.rng.IntN(10) == 0 {
			m.ks.Sched.Advance(int64(m.rng.IntN(300_000)))
		}
		if i%100 == 0 {
			m.compare()
			if err := m.ks.Check(); err != nil {
				t.Fatalf("after %d steps: %v", i, err)
			}
		}
	}
	for _, name := range []string{"put", "get", "delete", "deadline", "rename", "copy", "move", "edit", "setint", "flush", "swap", "object"} {
		if m.done[name] == 0 {
			t.Errorf("%s never ran", name)
		}
	}
	if m.ks.Tally(LockSet{}).Stats.Expired == 0 {
		t.Error("nothing expired")
	}
}

// Advance removes everything that is due, without a look, and nothing else.
func TestActiveExpiryIsExact(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	m := newModel(t, seed)
	const keys = 20_000
	due := make([]int64, keys)
	m.do(0, func(v *View) {
		for i := range due {
			due[i] = m.nowMillis() + m.rng.Int64N(1<<uint(1+m.rng.IntN(40)))
			v.PutString(strconv.AppendInt(nil, int64(i), 10), []byte("x"), due[i])
		}
	})
	for range 300 {
		m.ks.Sched.Advance(m.rng.Int64N(1 << uint(1+m.rng.IntN(43))))
		now, want := m.nowMillis(), 0
		for _, at := range due {
			if at >= now {
				want++
			}
		}
		if got := m.ks.Tally(LockSet{}).DBs[0].Keys; got != want {
			t.Fatalf("%d keys at %d, want %d", got, now, want)
		}
		if err := m.ks.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if m.ks.Tally(LockSet{}).Stats.Expired < keys/2 {
		t.Errorf("only %d of %d expired", m.ks.Tally(LockSet{}).Stats.Expired, keys)
	}
}

// A scan returns a key that exists throughout it once, however the table grows and shrinks meanwhile.
func TestScanReturnsWhatStays(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	m := newModel(t, seed)
	for round := range 30 {
		m.do(0, func(v *View) {
			v.Flush()
			for i := range 500 {
				v.PutString(fmt.Appendf(nil, "stay%d", i), []byte("x"), 0)
			}
		})
		seen := map[string]int{}
		cursor, other := uint64(0), 0
		for calls := 0; ; calls++ {
			m.do(0, func(v *View) {
				cursor = v.Scan(cursor, 1+m.rng.IntN(40), func(e Entry) { seen[string(e.Key())]++ })
				if round%2 == 0 && calls < 40 {
					for range 200 {
						v.PutString(fmt.Appendf(nil, "other%d", other), []byte("x"), 0)
						other++
					}
				} else if round%2 == 1 && other > 0 {
					for range 400 {
						other--
						v.Delete(fmt.Appendf(nil, "other%d", other))
					}
				} else if round%2 == 1 {
					for other = range 9000 {
						v.PutString(fmt.Appendf(nil, "other%d", other), []byte("x"), 0)
					}
				}
			})
			if cursor == 0 {
				break
			}
			if calls > 100_000 {
				t.Fatal("the scan does not end")
			}
		}
		for i := range 500 {
			if n := seen[fmt.Sprintf("stay%d", i)]; n != 1 {
				t.Fatalf("round %d: stay%d was returned %d times", round, i, n)
			}
		}
	}
}
