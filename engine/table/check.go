package table

import (
	"fmt"

	"github.com/limitkv/limitkv/zset/wyhash"
)

// Check verifies what must hold between any two calls; tests run it after each step.
func (t *Table) Check() error {
	n, bytes, chained := 0, 0, 0
	for i := range t.buckets {
		inChain := 0
		chained--
		for b := t.bucket(i); b != nil; b = b.next() {
			used := b.used()
			if used < 2 && b != t.bucket(i) {
				return fmt.Errorf("bucket %d: a chained bucket with %d records", i, used)
			}
			chained++
			if b.next() != nil && used != slots-1 {
				return fmt.Errorf("bucket %d: %d records before a chained bucket", i, used)
			}
			for j := range slots {
				if j >= used && b.next() == nil && (b.tags[j] != 0 || b.slot[j] != nil) {
					return fmt.Errorf("bucket %d: slot %d is not free", i, j)
				}
				if j < used {
					r := Record{b.slot[j]}
					hash := wyhash.Sum(r.Key())
					if t.index(hash) != i || b.tags[j] != tagOf(hash) {
						return fmt.Errorf("bucket %d: %q does not belong here", i, r.Key())
					}
					if p, ok := t.find(hash, r.Key()); !ok || p.b != b || p.i != j {
						return fmt.Errorf("bucket %d: %q is there twice", i, r.Key())
					}
					bytes += r.allocated()
				}
			}
			inChain += used
		}
		n += inChain
		if inChain > t.chainMax {
			return fmt.Errorf("bucket %d: chain of %d, at most %d recorded", i, inChain, t.chainMax)
		}
	}
	if n != t.count || bytes != t.bytes || chained != t.chained {
		return fmt.Errorf("%d records of %d bytes, %d chained buckets; recorded are %d, %d, %d",
			n, bytes, chained, t.count, t.bytes, t.chained)
	}
	if t.buckets > 0 && (t.count > t.buckets*loadMax || len(t.segments)*segmentSize < t.buckets) {
		return fmt.Errorf("%d records in %d buckets of %d segments", t.count, t.buckets, len(t.segments))
	}
	return nil
}
