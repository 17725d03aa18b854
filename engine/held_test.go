package engine

// What is due in a shard that a script holds waits until the script releases the shard, even if the script is marked
// slow before: until its end it changes the shard without its lock.

import "testing"

func TestDueWaitsForASlowHolder(t *testing.T) {
	clock := NewClock()
	clock.Freeze(1_000_000)
	ks := New(clock, 1)
	key := []byte("k")
	var set LockSet
	set.AddKey(key)
	ks.Lock(set)
	v := &View{KS: ks, Now: clock.Now(), Held: set}
	v.PutString(key, []byte("v"), 1001)
	ks.Unlock(set)
	_, s := v.locate(key)
	run := hold(ks, set, nil)
	clock.Freeze(2_000_000)
	if more := ks.expireShard(s, clock.Now()); more || s.nextDue.Load() != never {
		t.Fatalf("a shard that is held was served: more %v, next at %d", more, s.nextDue.Load())
	}
	run.MarkSlow()
	if at := s.nextDue.Load(); at != never {
		t.Errorf("a slow holder has the shard, and it is to be served at %d", at)
	}
	run.letGo()
	if at := s.nextDue.Load(); at > clock.Now()/1000 {
		t.Errorf("the shard is free, and is to be served at %d, not at once", at)
	}
}
