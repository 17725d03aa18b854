package persistence

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/limitkv/limitkv/commands/params"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/rdb"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/zset"
)

// largeKeys change large values in all ways.
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
	}
	for range n {
		l.add(v, rnd, v.Peek(key))
	}
}

func (l *largeKeys) add(v *engine.View, rnd *rand.Rand, e engine.Entry) {
	m, n := l.element(rnd), rnd.IntN(1000)
	switch o := e.Object().(type) {
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
	}
}

func (l *largeKeys) remove(v *engine.View, rnd *rand.Rand, e engine.Entry) {
	m := l.element(rnd)
	switch o := e.Object().(type) {
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
	}
}

func largeKey(rnd *rand.Rand) []byte {
	return fmt.Appendf(nil, "%c%d", "zshq"[rnd.IntN(4)], rnd.IntN(largeNames))
}

// change changes something of a database, under the locks that it needs.
func (l *largeKeys) change(rnd *rand.Rand) {
	v := &engine.View{KS: l.ks, Now: l.ks.Clock.Now(), DB: rnd.IntN(largeDBs)}
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

// contents are all elements of an object.
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
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// TestPictureLarge: large values that change in all ways while a picture is written are in it as they were when it began.
func TestPictureLarge(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	config := params.NewConfig()
	config.Add(&params.Param{Name: "maxmemory-policy", Get: func() string { return "noeviction" }})
	f := &family{dumps: config.Dumps()}
	f.p.saveDelay = new(atomic.Int64)
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
		p := &picture{f: f, format: f.dumps.FileFormat(), killed: make(chan struct{})}
		want := map[string]string{}
		v := &engine.View{KS: l.ks, Now: l.ks.Clock.Now()}
		v.Held.AddAll()
		l.ks.LockWaiting(v.Held)
		for v.DB = range largeDBs {
			v.EachStored(func(e engine.Entry) { want[fmt.Sprint(v.DB, string(e.Key()))] = contents(e.Object()) })
		}
		v.DB = 0
		p.cut = v.BeginCut(p.take)
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
			if round == 2 && inPieces > before { // it is given up, and the next one finds all as it should be
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
				got[fmt.Sprint(it.DB, string(it.Key))] = contents(it.Value.Object)
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
