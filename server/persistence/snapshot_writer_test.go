package persistence

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/engine/rdb"
	"github.com/limitkv/limitkv/server/params"
)

// TestSnapshotMemory: a snapshot's memory does not grow with the number of keys, in either form, because written blocks are
// reused.
func TestSnapshotMemory(t *testing.T) {
	const keys, valueBytes = 50_000, 200
	ks := engine.New(engine.NewClock(), 1)
	v := &engine.View{KS: ks, Now: ks.Clock.Now()}
	v.Held.AddAll()
	v.Held.AddAll()
	for i := range keys {
		v.PutString(fmt.Appendf(nil, "key:%d", i), fmt.Appendf(nil, "%0*d", valueBytes, i), 0)
	}
	config := params.NewConfig()
	config.Add(&params.Param{Name: "maxmemory-policy", Get: func() string { return "noeviction" }})
	f := &Files{dumps: config.Dumps()}
	f.p.saveDelay = new(atomic.Int64)
	for _, words := range []bool{false, true} {
		var n counter
		out := output{dump: rdb.NewWriter(&n, f.dumps.FileFormat(), true)}
		if words {
			commands, err := journal.NewCommandWriter(&n, 0, v.Now, true, false)
			if err != nil {
				t.Fatal(err)
			}
			out = output{words: commands}
		}
		p := &snapshotWriter{f: f, words: words, killed: make(chan struct{})}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if ks.Lock(v.Held) != nil {
			t.Fatal("somebody holds keys")
		}
		p.cut = v.BeginCut(p.take)
		ks.Unlock(v.Held)
		whole := p.cut.Walk(func() {
			if err := p.pass(out, false); err != nil {
				t.Fatal(err)
			}
		})
		err := p.pass(out, true)
		runtime.ReadMemStats(&after)
		done, _, early := p.progress()
		if !whole || err != nil || out.end() != nil || done != keys || early != 0 || n < keys*20 {
			t.Fatalf("words %v: %d keys, %d bytes, %d early, whole %v, %v", words, done, n, early, whole, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20 && !raceBuild {
			t.Errorf("words %v: %d bytes are allocated for a file of %d", words, took, n)
		}
	}
}

// counter counts the bytes written.
type counter int

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}
