package engine

// Several keyspaces in one server.

import (
	"fmt"
	"testing"
)

// Each keyspace has its own keys. What falls due in any of them happens in order of time, until the keyspace is
// retired.
func TestSiblings(t *testing.T) {
	ks := frozen(idleEpoch)
	var order []string
	ks.Events = func(v *View, _ int, _ EventClass, event string, key []byte) {
		order = append(order, fmt.Sprintf("%s %s %d", event, key, (v.Now-idleEpoch)/1000))
	}
	ks.EventMask.Store(uint32(EventExpired))
	a, b := ks.Sibling(), ks.Sibling()
	for i, x := range []*Keyspace{ks, a, b} {
		for j := range 2 {
			all(x).PutString(fmt.Appendf(nil, "%d%d", i, j), []byte("v"), idleEpoch/1000+int64(100*(3-i)+50*j))
		}
	}
	a.Each(func(x *Keyspace) { x.EventMask.Store(uint32(EventExpired | EventString)) })
	if ks.EventMask.Load() != b.EventMask.Load() || a.Sched != ks.Sched {
		t.Error("a setting is not the same for all")
	}
	ks.Sched.Advance(120_000)
	b.Retire()
	ks.Sched.Advance(1_000_000)
	got := fmt.Sprint(order)
	if got != "[expired 20 101 expired 10 201 expired 11 251 expired 00 301 expired 01 351]" {
		t.Error(got)
	}
	if n := all(b).Count(); n != 1 {
		t.Errorf("%d keys where nothing falls due any more", n)
	}
}

func BenchmarkSibling(b *testing.B) {
	ks := New(NewClock(), 16)
	b.ReportAllocs()
	for b.Loop() {
		ks.Sibling().Retire()
	}
}
