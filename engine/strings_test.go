package engine

// Long strings that are written over are written in place where their lengths are alike, and are counted as new ones are.

import (
	"bytes"
	"testing"
)

func TestLongStringsInPlace(t *testing.T) {
	clock := NewClock()
	clock.Freeze(1_700_000_000_000_000)
	ks := New(clock, 1)
	key := []byte("k")
	put := func(n int, deadline int64) {
		t.Helper()
		value := bytes.Repeat([]byte{byte('a' + n%26)}, n)
		v := View{KS: ks, Now: clock.Now()}
		v.Held.AddKey(key)
		ks.Lock(v.Held)
		v.PutString(key, value, deadline)
		e := v.Peek(key)
		if !bytes.Equal(e.Bytes(nil), value) || e.Deadline() != deadline {
			t.Errorf("%d bytes: %d are there, until %d", n, len(e.Bytes(nil)), e.Deadline())
		}
		v.Commit()
		v.Account()
		ks.Unlock(v.Held)
		if err := ks.Check(); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	later := clock.Now()/1000 + 1000
	for _, n := range []int{inlineStringMax + 1, inlineStringMax, inlineStringMax + 1, 100_000, 99_000, 90_000, 10_000, 100_000, 100_001, 106_000, 120_000, 5} {
		for _, deadline := range []int64{0, later, later + 1, 0} {
			put(n, deadline)
		}
	}
	value := bytes.Repeat([]byte("v"), 100_000)
	v := View{KS: ks, Now: clock.Now()}
	v.Held.AddKey(key)
	ks.Lock(v.Held)
	if n := testing.AllocsPerRun(100, func() {
		value[0]++
		v.PutString(key, value, 0)
	}); n != 0 {
		t.Errorf("a string of the same length over another takes %.0f allocations", n)
	}
	v.Commit()
	v.Account()
	ks.Unlock(v.Held)
}
