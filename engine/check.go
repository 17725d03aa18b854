package engine

// The invariants of the keyspace, for tests.

import (
	"fmt"
	"unsafe"

	"github.com/limitkv/limitkv/engine/lock"
)

// Check tests that everything that the keyspace stores twice agrees. It returns the first difference. It takes all
// locks.
func (ks *Keyspace) Check() (err error) {
	if ks.TryInspect(LockSet{allShards}, func(*Reader) { err = ks.check() }) != nil {
		return fmt.Errorf("engine: shards are reserved")
	}
	return err
}

func (ks *Keyspace) check() error {
	var bytes int64
	for i := range ks.shards {
		s := &ks.shards[i]
		nodes, bound := 0, 0
		waiters := waiterCounts{}
		for _, l := range s.waits {
			n, noKey := 0, 0
			var kinds [kindCount]int32
			for node := l.head; node != nil; node = node.next {
				n++
				if node == &node.w.places[0] {
					waiters.kinds[node.w.Kind]++
				}
				if node.w.NoKey {
					noKey++
				}
				kinds[node.w.Kind]++
			}
			if n != l.n || noKey != l.noKey || kinds != l.kinds {
				return fmt.Errorf("a line counts %d, %d and %v, has %d, %d and %v", l.n, l.noKey, l.kinds, n, noKey, kinds)
			}
			if noKey > 0 {
				waiters.noKey++
			}
		}
		if waiters != s.waiters {
			return fmt.Errorf("shard %d counts waiters %v, has %v", i, s.waiters, waiters)
		}
		for db := range s.tables {
			t := &s.tables[db]
			volatileKeys, promisedKeys, promised, volatileHashes := 0, 0, 0, 0
			bytes += t.bytes
			if err := t.check(); err != nil {
				return fmt.Errorf("shard %d, database %d: %w", i, db, err)
			}
			var err error
			t.each(func(e Entry) bool {
				if _, sh := locate(e.Key()); sh != i {
					err = fmt.Errorf("key %q is in shard %d, not %d", e.Key(), i, sh)
				}
				if e.promises() {
					promised++
				}
				d := e.dueRef()
				if d == nil {
					return err == nil
				}
				if d.at != 0 {
					volatileKeys++
					if e.promises() {
						promisedKeys++
					}
				}
				has := false
				if e.h.kind == KindHash && !e.InBytes() {
					x, ok := e.object().obj.(Settler)
					has = ok && x.NextDue() != 0
				}
				if has {
					volatileHashes++
				}
				if counted := e.h.flags&flagInnerCounted != 0; counted != has {
					err = fmt.Errorf("hash %q with deadlines inside (%t) counts as such: %t", e.Key(), has, counted)
				}
				if e.h.kind == KindLock {
					var work lock.Lock
					l := e.Lock(&work)
					if err = l.Check(); err != nil {
						err = fmt.Errorf("lock %q: %w", e.Key(), err)
					}
					if l.Bound() {
						bound++
						if _, ok := s.bound[unsafe.Pointer(e.h)]; !ok || int(d.db) != db {
							err = fmt.Errorf("lock %q has leases bound to connections, which its shard does not know", e.Key())
						}
					}
				}
				if d.node != 0 {
					nodes++
					if s.wheel.nodes[d.node].ref != unsafe.Pointer(t.entry(e.Key()).h) {
						err = fmt.Errorf("node of key %q is another entry's", e.Key())
					}
					if int(d.db) != db {
						err = fmt.Errorf("key %q of database %d says %d", e.Key(), db, d.db)
					}
				} else if d.at != 0 && d.at < never-1 {
					err = fmt.Errorf("key %q has a deadline and no node", e.Key())
				}
				return err == nil
			})
			if err != nil {
				return err
			}
			if volatileKeys != s.wheel.volatileKeys[db] {
				return fmt.Errorf("shard %d counts %d keys with deadlines, has %d", i, s.wheel.volatileKeys[db], volatileKeys)
			}
			if promised != t.promised() || promisedKeys != s.wheel.promisedKeys[db] {
				return fmt.Errorf("shard %d counts %d keys that are never evicted, %d with deadlines, has %d and %d",
					i, t.promised(), s.wheel.promisedKeys[db], promised, promisedKeys)
			}
			if volatileHashes != s.wheel.volatileHashes[db] {
				return fmt.Errorf("shard %d counts %d hashes with deadlines inside, has %d", i, s.wheel.volatileHashes[db], volatileHashes)
			}
		}
		if bound != len(s.bound) {
			return fmt.Errorf("shard %d knows %d locks with leases bound to connections, has %d", i, len(s.bound), bound)
		}
		if nodes != s.wheel.count {
			return fmt.Errorf("shard %d has %d nodes for %d entries", i, s.wheel.count, nodes)
		}
		if err := s.wheel.check(); err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
	}
	if n := ks.bytes.Load(); n != bytes {
		return fmt.Errorf("the keys are said to take %d bytes, the tables %d", n, bytes)
	}
	return nil
}

func (p *segment) check() error {
	used, deleted := 0, 0
	for g, word := range p.ctrl {
		for i := range groupSlots {
			c := byte(word >> (8 * i))
			r := p.slots[g*groupSlots+i]
			switch {
			case c&0x80 != 0:
				used++
				if r == nil {
					return fmt.Errorf("slot %d is in use and empty", g*groupSlots+i)
				}
			case r != nil:
				return fmt.Errorf("slot %d is free and not empty", g*groupSlots+i)
			case c == ctrlDeleted:
				deleted++
			case c != 0:
				return fmt.Errorf("slot %d has control byte %#x", g*groupSlots+i, c)
			}
		}
	}
	if used != int(p.used) || deleted != int(p.deleted) {
		return fmt.Errorf("segment counts %d and %d deleted, has %d and %d", p.used, p.deleted, used, deleted)
	}
	return nil
}

func (t *table) check() error {
	used, width := 0, 0
	var own counts
	for n := 0; n < len(t.segments); n = t.nextSegment(n) {
		p := t.segment(n)
		if err := p.check(); err != nil {
			return fmt.Errorf("segment %d of %d: %w", n, len(t.segments), err)
		}
		for at := n; at < t.nextSegment(n); at++ {
			if t.segment(at) != p {
				return fmt.Errorf("segment %d of %d is another one than segment %d", at, len(t.segments), n)
			}
		}
		used += int(p.used)
		width += len(p.slots)
	}
	if used != t.used || width != t.width {
		return fmt.Errorf("table counts %d in %d slots, has %d in %d", t.used, t.width, used, width)
	}
	var err error
	bytes := int64(width) * slotBytes
	t.each(func(e Entry) bool {
		bytes += e.counted()
		own.kinds[e.h.kind]++
		if e.h.kind <= sizedKinds {
			own.sizes[e.h.kind-1][binOf(e.Len())]++
		}
		if e.h.kind.hasParts() && e.h.flags&flagObject != 0 {
			p := partsOf(e.Object())
			own.parts.add(&p, 1)
		}
		if t.find(HashBytes(e.Key()), e.Key()) < 0 {
			err = fmt.Errorf("key %q is not found", e.Key())
		}
		return err == nil
	})
	if err == nil && bytes != t.bytes {
		err = fmt.Errorf("table says %d bytes, has %d", t.bytes, bytes)
	}
	if err == nil && t.counts != nil && *t.counts != own {
		err = fmt.Errorf("table counts %v, has %v", *t.counts, own)
	}
	if err == nil && !t.checkQueues(own.kinds[KindDelayQueue]) {
		err = fmt.Errorf("table lists %d queues, has %d", len(t.queues), own.kinds[KindDelayQueue])
	}
	return err
}

func (w *wheel) check() error {
	if w.nodes == nil {
		if w.count != 0 {
			return fmt.Errorf("wheel counts %d and has no nodes", w.count)
		}
		return nil
	}
	n := 0
	for head := range uint32(wheelHeads) {
		for x := w.nodes[head].next; x != head; x = w.nodes[x].next {
			n++
			if w.nodes[w.nodes[x].next].prev != x {
				return fmt.Errorf("node %d is not linked back", x)
			}
		}
		marked := false
		if head < wheelSlots0 {
			marked = w.occupied0[head>>6]>>(head&63)&1 != 0
		} else {
			marked = w.occupied[(head-wheelSlots0)>>wheelBits]>>((head-wheelSlots0)&(wheelSlots-1))&1 != 0
		}
		if marked != (w.nodes[head].next != head) {
			return fmt.Errorf("slot %d is marked %v", head, marked)
		}
	}
	if n != w.count {
		return fmt.Errorf("wheel counts %d nodes, has %d", w.count, n)
	}
	return nil
}
