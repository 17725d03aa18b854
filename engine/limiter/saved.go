// This file saves and restores limiters with named grants, for copies, files and effects. It trusts nothing that it
// reads.

package limiter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/limitkv/limitkv/engine/table"
)

// ErrGrant is bytes that are no grant of the limiter.
var ErrGrant = errors.New("limiter: corrupted grant")

// Version is the first version of limitkv's files that has what the limiter uses: 1 for the first releases, 2 for the
// rules, shadows and grants that came later.
func Version(p []byte) int {
	if p[0]&shadowFlag != 0 {
		return 2
	}
	version := 1
	var buf [RulesMax]Rule
	for _, r := range Rules(buf[:0], p) {
		version = max(version, r.row().version)
	}
	return version
}

// SetState gives the limiter other bytes with the same rules.
func (n *Named) SetState(p []byte) { n.state = p }

// AppendGiven appends how much the buckets were given back, which belongs to the limiter's state.
func (n *Named) AppendGiven(dst []byte) []byte {
	for _, micros := range n.given {
		dst = binary.AppendUvarint(dst, uint64(micros))
	}
	return dst
}

// SetGiven reads what AppendGiven appended.
func (n *Named) SetGiven(p []byte) error {
	for i := range n.given {
		v, size := binary.Uvarint(p)
		if size <= 0 || v > uint64(never) {
			return ErrGrant
		}
		n.given[i] = int64(v)
		p = p[size:]
	}
	if len(p) != 0 {
		return ErrGrant
	}
	return nil
}

// AppendGrant appends an open grant in the form that Restore reads, or nothing if there is no such grant.
func (n *Named) AppendGrant(dst, id []byte) []byte {
	if r := n.table.Get(id); !r.None() {
		dst = appendSaved(dst, r)
	}
	return dst
}

// appendSaved appends a grant with its flags in front, without its index in the heap.
func appendSaved(dst []byte, r table.Record) []byte {
	v := r.Value()
	return append(append(dst, byte(uint24(v)>>placeBits)), v[grantEnd:]...)
}

// Each calls fn with all grants, in no order. The arguments are valid until fn returns. fn must not change the limiter.
func (n *Named) Each(fn func(id, saved []byte)) {
	var buf [savedMax]byte
	for it := n.table.Iter(); it.Next(); {
		fn(it.Record().Key(), appendSaved(buf[:0], it.Record()))
	}
}

// Restore sets a grant to its saved form, or removes it if saved is empty.
func (n *Named) Restore(id, saved []byte) error {
	old := n.table.Get(id)
	if len(saved) == 0 {
		if !old.None() {
			n.remove(old)
		}
		return nil
	}
	if CheckName(id) != nil || old.None() && n.Len() == NamedMax {
		return ErrGrant
	}
	g, err := n.parse(saved)
	if err != nil {
		return err
	}
	n.set(id, old, &g)
	return nil
}

// parse reads and checks a saved grant.
func (n *Named) parse(saved []byte) (g grant, err error) {
	defer func() {
		if recover() != nil { // the decoder read past the end
			err = ErrGrant
		}
	}()
	if len(saved) > savedMax {
		return g, ErrGrant
	}
	g = readGrant(saved[0], saved[savedHead:])
	ok := g.cost >= 0 && g.cost <= CountMax && g.remaining >= 0 && g.remaining <= UsedMax &&
		g.resetMs >= -1 && g.resetMs <= FillMicrosMax && g.buckets == len(n.given) && saved[0]&^grantFlags == 0 &&
		g.taken >= 0 && g.taken <= TimeMax
	for _, t := range g.tails {
		ok = ok && t >= 0 && t <= never
	}
	if !ok || g.shadow && g.cost != 0 || g.leased && g.endMillis == 0 {
		return g, ErrGrant
	}
	g.rule = min(g.rule, int(n.state[0]&rulesMask)-1) // there were more rules when it was taken
	return g, nil
}

// Clone is a copy that shares no memory with the limiter.
func (n *Named) Clone() *Named {
	c := &Named{state: append([]byte(nil), n.state...), given: append([]int64(nil), n.given...),
		held: n.held, leased: n.leased, latest: n.latest, heap: make([]table.Record, len(n.heap))}
	c.table = n.table.Clone(func(r table.Record) {
		if endOf(r) != 0 {
			c.heap[placeOf(r)] = r
		}
	})
	return c
}

// MemoryUsage is how many bytes the limiter takes beside its entry.
func (n *Named) MemoryUsage() int {
	return int(unsafe.Sizeof(*n)) + cap(n.state) + n.table.MemoryUsage() + cap(n.heap)*int(unsafe.Sizeof(table.Record{})) + 8*cap(n.given)
}

// MemoryEstimate is MemoryUsage, which does not look at the grants.
func (n *Named) MemoryEstimate() int { return n.MemoryUsage() }

// Check returns what is wrong with the limiter, or nil.
func (n *Named) Check() error {
	if err := Check(n.state); err != nil {
		return err
	}
	if err := n.table.Check(); err != nil {
		return err
	}
	if len(n.given) != bucketsOf(n.state) {
		return fmt.Errorf("limiter: %d buckets of %d", len(n.given), bucketsOf(n.state))
	}
	var held, leased, latest int64
	queued := 0
	for it := n.table.Iter(); it.Next(); {
		r := it.Record()
		g, err := n.parse(appendSaved(nil, r))
		if err != nil {
			return fmt.Errorf("%w: %q", err, r.Key())
		}
		held += g.cost
		if g.leased {
			leased += g.cost
		}
		latest = max(latest, g.endMillis)
		if g.endMillis == 0 {
			continue
		}
		queued++
		if at := placeOf(r); at >= len(n.heap) || n.heap[at] != r || at > 0 && before(r, n.heap[(at-1)/2]) {
			return fmt.Errorf("limiter: grant %q is out of place", r.Key())
		}
	}
	if queued != len(n.heap) || held != n.held || leased != n.leased || n.latest != 0 && n.latest != latest {
		return fmt.Errorf("limiter: grants %d/%d held %d/%d leased %d/%d latest %d/%d",
			queued, len(n.heap), held, n.held, leased, n.leased, latest, n.latest)
	}
	return n.CheckHeld()
}

// CheckHeld is the part of Check that does not look at the grants.
func (n *Named) CheckHeld() error {
	if n.held > UsedMax {
		return fmt.Errorf("limiter: grants hold %d", n.held)
	}
	var o opened
	o.open(n.state)
	for i := 0; i < o.n; i++ {
		row := o.rules[i].row()
		if !row.untimed {
			continue
		}
		if used := loadHold(n.state[o.at[i]:]); used < n.held || row.needsLease && used != n.held {
			return fmt.Errorf("limiter: rule %d holds %d, its grants %d", i, used, n.held)
		}
	}
	return nil
}
