package persistence

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/rdb"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/engine/stream"
	"github.com/limitkv/limitkv/server/params"
	"github.com/limitkv/limitkv/zset"
)

// largeKeys changes large values in all ways.
type largeKeys struct {
	ks  *engine.Keyspace
	lim rdb.Limits
	did [7]atomic.Int64
}

const (
	largeDBs   = 2
	largeNames = 8 // keys of each kind
)

func (l *largeKeys) element(rnd *rand.Rand) []byte {
	return fmt.Appendf(nil, "element:%d", rnd.IntN(4000))
}

// fill makes a key of a kind with some elements.
func (l *largeKeys) fill(v *engine.View, rnd *rand.Rand, key []byte, n int) {
	switch key[0] {
	case 'z':
		v.PutObject(key, engine.KindZSet, zset.New(n, 1, l.lim.ZSet), 0)
	case 's':
		s := set.New([]byte("x"), n, l.lim.Set)
		v.PutObject(key, engine.KindSet, &s, 0)
	case 'h':
		v.PutObject(key, engine.KindHash, &hash.Hash{}, 0)
	case 'q':
		q := delayqueue.New()
		q.Configure(delayqueue.Settings{Tries: 2, Dead: "dead"})
		v.PutObject(key, engine.KindDelayQueue, q, 0)
	case 'l':
		v.PutObject(key, engine.KindList, &list.List{}, 0)
	case 'x':
		s := &stream.Stream{}
		for i := range 2 {
			g, _ := s.CreateGroup(fmt.Append(nil, i), stream.MinID, 0)
			g.CreateConsumer([]byte("idle"), 1)
		}
		v.PutObject(key, engine.KindStream, s, 0)
	case 't':
		v.PutString(key, make([]byte, rdb.LargeBytes), 0)
	}
	for range n {
		l.add(v, rnd, v.Peek(key))
	}
}

func (l *largeKeys) add(v *engine.View, rnd *rand.Rand, e engine.Entry) {
	m, n := l.element(rnd), rnd.IntN(1000)
	defer v.StoreEdit()
	switch o := editable(v, e).(type) {
	case *zset.Set:
		o.Add(m, float64(n), 0, l.lim.ZSet)
	case *set.Set:
		o.Add(m, l.lim.Set)
	case *hash.Hash:
		o.Set(m, fmt.Appendf(nil, "%d", n), l.lim.Hash)
		if n%3 == 0 {
			o.SetDeadline(m, v.Now/1000+1e8+int64(n))
		}
	case *delayqueue.Queue:
		o.Add(v.Now, m, fmt.Appendf(nil, "p%d", n), v.Now+int64(n)-500, nil, delayqueue.Put)
	case *list.List:
		m = append(m, make([]byte, 100)...)
		switch n % 4 {
		case 0:
			o.Set(rnd.IntN(o.Len()+1), m, l.lim.List)
		case 1:
			o.Insert(m, []byte("inserted"), true, l.lim.List)
		default:
			o.Push([][]byte{m}, n%4 == 2, l.lim.List)
		}
	case *stream.Stream:
		id, _ := o.NextID(v.Now / 1000)
		o.Add(id, [][]byte{m, make([]byte, 100)}, stream.DefaultLimits)
		g := o.Groups()[n%2]
		c, _ := g.CreateConsumer(fmt.Append(nil, n%3), v.Now)
		o.Deliver(g, c, 1, false, v.Now/1000, func(*stream.Iter) {})
	default: // a string
		at, had := rnd.IntN(2*rdb.LargeBytes), e.Len()
		if n%2 == 0 {
			at = min(had, 2*rdb.LargeBytes)
		}
		copy(v.EditString(e.Key(), at, max(had, at+len(m)))[at:], m)
	}
}

// editable returns a key's object, which may be changed until StoreEdit.
func editable(v *engine.View, e engine.Entry) any {
	switch e.Kind() {
	case engine.KindHash:
		return v.EditHash(e.Key(), e)
	case engine.KindZSet:
		return v.EditZSet(e.Key(), e)
	}
	return e.Object()
}

func (l *largeKeys) remove(v *engine.View, rnd *rand.Rand, e engine.Entry) {
	m := l.element(rnd)
	defer v.StoreEdit()
	switch o := editable(v, e).(type) {
	case *zset.Set:
		o.Remove(m)
	case *set.Set:
		o.Remove(m)
	case *hash.Hash:
		o.Delete(m)
	case *delayqueue.Queue:
		switch rnd.IntN(4) {
		case 0:
			o.Remove(m, 0, v.Now)
		case 1:
			o.Pop(v.Now, 1e9, 3, func(delayqueue.Entry) {})
		case 2:
			o.Nack(m, 0, v.Now, 10, rnd.IntN(2) == 0, nil)
		default:
			o.Ack(m, 0, v.Now)
		}
	case *list.List:
		switch n := o.Len(); rnd.IntN(4) {
		case 0:
			o.RemoveValue(append(m, make([]byte, 100)...), 0, true, l.lim.List)
		case 1:
			list.Move(o, o, true, false, l.lim.List)
		default:
			o.Trim(rnd.IntN(2), n-rnd.IntN(2), l.lim.List)
		}
	case *stream.Stream:
		if g := o.Groups()[rnd.IntN(2)]; g.Pending() > 0 {
			o.Delete(g.LastPending().ID)
			g.Ack(g.FirstPending().ID)
		}
		o.Trim(stream.Trim{MaxLen: o.Len() - rnd.IntN(2)})
	default:
		v.PutString(e.Key(), bytes.Repeat(m, 10_000), 0)
	}
}

func largeKey(rnd *rand.Rand) []byte {
	return fmt.Appendf(nil, "%c%d", "zshqlxt"[rnd.IntN(7)], rnd.IntN(largeNames))
}

// change makes a change in a database, under the locks that it needs.
func (l *largeKeys) change(rnd *rand.Rand) {
	v := &engine.View{KS: l.ks, Now: l.ks.Clock.Now(), DB: rnd.IntN(largeDBs)}
	v.Held.AddAll()
	key := largeKey(rnd)
	to := fmt.Appendf(nil, "%c%d", key[0], rnd.IntN(largeNames))
	n := rnd.IntN(1000)
	v.Held.AddKey(key)
	switch {
	case n == 0:
		v.Held.AddAll()
	case n < 20:
		v.Held.AddKey(to)
	}
	l.ks.LockWaiting(v.Held)
	defer l.ks.Unlock(v.Held)
	e := v.Peek(key)
	switch {
	case n == 0 && rnd.IntN(8) == 0:
		l.flush(v)
	case n == 0:
		l.swap(v)
	case !e.Ok():
		l.did[2].Add(1)
		l.fill(v, rnd, key, 600+rnd.IntN(600))
	case n < 20:
		if string(to) != string(key) {
			l.did[3].Add(1)
			v.Rename(key, to)
		}
	case n < 25:
		l.did[4].Add(1)
		v.Delete(key)
	case n < 600:
		l.did[5].Add(1)
		for range 4 {
			l.add(v, rnd, e)
		}
	default:
		l.did[6].Add(1)
		l.remove(v, rnd, e)
	}
}

func (l *largeKeys) flush(v *engine.View) {
	l.did[0].Add(1)
	v.Flush()
}

func (l *largeKeys) swap(v *engine.View) {
	l.did[1].Add(1)
	v.Swap(0, 1)
}

// valueOf returns a key's object, or the bytes of a string.
func valueOf(e engine.Entry) any {
	if e.Kind() == engine.KindString {
		return e.Bytes(nil)
	}
	return e.Object()
}

// contents lists all elements of an object, or returns a string.
func contents(o any) string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	switch o := o.(type) {
	case *zset.Set:
		o.Ascend(0, o.Len(), func(m []byte, score float64) bool {
			add("%s %v", m, score)
			return true
		})
	case *set.Set:
		for it := o.Iter(); it.Next(); {
			add("%s", it.Member())
		}
	case *hash.Hash:
		for it := o.Iter(); it.Next(); {
			add("%s %s %d", it.Field(), it.Value(), it.Deadline())
		}
	case *delayqueue.Queue:
		add("%+v", o.Head())
		for _, state := range delayqueue.SavedStates {
			o.Each(state, func(s delayqueue.Saved) { add("%+v", s) })
		}
	case *list.List:
		for it := o.Iter(0, false); it.Next(); {
			add("%06d %s", len(all), it.Value())
		}
	case *stream.Stream:
		add("%v %v %v %v", o.Len(), o.LastID(), o.MaxDeletedID(), o.EntriesAdded())
		for it := o.Range(stream.MinID, stream.MaxID, false); it.Next(); {
			for it.NextPair() {
				add("%v %s %s", it.ID(), it.Field(), it.Value())
			}
		}
		for _, g := range o.Groups() {
			add("%s %v %v", g.Name, g.LastID, g.EntriesRead)
			for _, c := range g.Consumers() {
				add("%s %s %v %v", g.Name, c.Name, c.SeenMillis, c.ActiveMillis)
			}
			g.EachPending(stream.MinID, func(p stream.Pending) bool {
				add("%s %v %s %v %v", g.Name, p.ID, p.Consumer.Name, p.DeliveredMillis, p.Deliveries)
				return true
			})
		}
	case []byte:
		return string(o)
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// newSnapshotWriter begins a snapshot of a keyspace. The caller holds all locks.
func newSnapshotWriter(f *Files, v *engine.View) *snapshotWriter {
	p := &snapshotWriter{f: f, format: f.dumps.FileFormat(), killed: make(chan struct{})}
	p.cut = v.BeginCut(p.take)
	return p
}

func newLargeFamily() *Files {
	config := params.NewConfig()
	config.Add(&params.Param{Name: "maxmemory-policy", Get: func() string { return "noeviction" }})
	f := &Files{dumps: config.Dumps()}
	f.p.saveDelay = new(atomic.Int64)
	return f
}

// TestImagesEnd: a snapshot's copies of values that have changed are released when it is written.
func TestImagesEnd(t *testing.T) {
	const elements, size = 200, 100_000 // of a list and of a stream, and twice a string of all
	f := newLargeFamily()
	v := &engine.View{KS: engine.New(engine.NewClock(), 1), Now: 1e15}
	v.Held.AddAll()
	change := func() {
		lst, str, long := &list.List{}, &stream.Stream{}, v.Peek([]byte("t"))
		if e := v.Peek([]byte("l")); e.Ok() {
			lst, str = e.Object().(*list.List), v.Peek([]byte("x")).Object().(*stream.Stream)
			copy(v.EditString(long.Key(), 0, long.Len()), "x")
		} else {
			v.PutObject([]byte("l"), engine.KindList, lst, 0)
			v.PutObject([]byte("x"), engine.KindStream, str, 0)
			v.PutString([]byte("t"), make([]byte, elements*size), 0)
		}
		for i := range elements {
			if !lst.Set(i, make([]byte, size), f.dumps.Limits().List) {
				lst.Push([][]byte{make([]byte, size)}, false, f.dumps.Limits().List)
			}
			str.Add(stream.ID{Millis: str.LastID().Millis + 1}, [][]byte{{}, make([]byte, size)}, stream.DefaultLimits)
		}
		str.Trim(stream.Trim{MaxLen: elements})
	}
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	change()
	before := heap()
	p := newSnapshotWriter(f, v)
	change()
	during := heap()
	out := output{dump: rdb.NewWriter(io.Discard, p.format, true)}
	if !p.cut.Walk(func() {}) || p.pass(out, true) != nil || out.end() != nil {
		t.Fatal("it is not written")
	}
	if after := heap(); during-before < 3*elements*size/2 || after-before > elements*size/2 {
		t.Errorf("%d bytes before it, %d more while it was made, %d after it", before, during-before, after-before)
	}
	runtime.KeepAlive(p)
	runtime.KeepAlive(v)
}

// TestSnapshotLarge: large values that change in all ways during a snapshot are in it as they were at its beginning.
func TestSnapshotLarge(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f := newLargeFamily()
	rnd := rand.New(rand.NewPCG(seed, 0))
	l := &largeKeys{ks: engine.New(engine.NewClock(), largeDBs), lim: f.dumps.Limits()}
	for range 100 {
		l.change(rnd)
	}
	early, inPieces := 0, 0
	for round := range 5 {
		for range 100 {
			l.change(rnd)
		}
		want := map[string]string{}
		v := &engine.View{KS: l.ks, Now: l.ks.Clock.Now()}
		v.Held.AddAll()
		l.ks.LockWaiting(v.Held)
		for v.DB = range largeDBs {
			v.EachStored(func(e engine.Entry) { want[fmt.Sprint(v.DB, string(e.Key()))] = contents(valueOf(e)) })
		}
		v.DB = 0
		p := newSnapshotWriter(f, v)
		l.ks.Unlock(v.Held)
		var file bytes.Buffer
		out := output{dump: rdb.NewWriter(&file, p.format, true)}
		stop := make(chan struct{})
		var changing sync.WaitGroup
		for i := range 2 {
			changing.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, uint64(2*round+i+1)))
				for {
					select {
					case <-stop:
						return
					default:
						l.change(rnd)
					}
				}
			})
		}
		before, steps := inPieces, 0
		whole := p.cut.Walk(func() {
			if steps++; steps == 20 {
				l.ks.LockWaiting(v.Held)
				if round%2 == 1 {
					l.flush(v)
				} else {
					l.swap(v)
				}
				l.ks.Unlock(v.Held)
			}
			p.mu.Lock()
			inPieces += len(p.large)
			p.mu.Unlock()
			if round == 2 && inPieces > before { // it is aborted, and the next one finds all values intact
				p.kill()
				p.giveUp()
			} else if err := p.pass(out, false); err != nil {
				t.Error(err)
			}
		})
		err := p.pass(out, true)
		close(stop)
		changing.Wait()
		if round == 2 {
			if p.ended(p.unwanted()); p.unwanted() != errKilled || len(p.large) > 0 {
				t.Fatalf("%v, %d values are left", p.unwanted(), len(p.large))
			}
			continue
		}
		if !whole || err != nil || out.end() != nil {
			t.Fatalf("whole %v, %v", whole, err)
		}
		_, _, bytesEarly := p.progress()
		early += bytesEarly
		got := map[string]string{}
		var mu sync.Mutex
		loader := rdb.NewLoader(&file, rdb.LoadOptions{Limits: f.dumps.Limits(), Databases: largeDBs, Enter: func(items []rdb.Item) error {
			mu.Lock()
			defer mu.Unlock()
			for _, it := range items {
				var o any = it.Value.String
				if it.Value.Object != nil {
					o = it.Value.Object
				}
				got[fmt.Sprint(it.DB, string(it.Key))] = contents(o)
			}
			return nil
		}})
		if err := loader.Load(); err != nil {
			t.Fatal(err)
		}
		for k, text := range want {
			if got[k] != text {
				t.Errorf("round %d: %s differs: %d bytes, want %d", round, k, len(got[k]), len(text))
			}
		}
		if len(got) != len(want) || t.Failed() {
			t.Fatalf("round %d: %d keys, want %d", round, len(got), len(want))
		}
	}
	if early == 0 || inPieces < 20 {
		t.Errorf("%d bytes were early, %d values in pieces", early, inPieces)
	}
	for i := range l.did {
		if l.did[i].Load() == 0 {
			t.Errorf("change %d was never made", i)
		}
	}
}
