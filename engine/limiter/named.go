// This file is a limiter with open named grants: its bytes, and beside them the grants by name and in the order in
// which they end. A limiter has this form only while grants are open; without them it is its bytes alone, and pays
// nothing.
//
// A grant is one record without pointers in a hash table, and a place in a heap. Beside its name the record stores,
// packed, when the grant was taken, when it ends, what was taken and replied, and for each bucket among the rules when
// its tokens are back.

package limiter

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/limitkv/limitkv/engine/table"
)

const (
	// NamedMax is how many grants of one limiter can be open.
	NamedMax = 1 << 20
	// NameBytesMax is the longest name of a grant.
	NameBytesMax = 512
	// LeaseMicrosMax is the longest lease.
	LeaseMicrosMax = PeriodMicrosMax
)

// Errors of a named grant. A call that returns one changes nothing.
var (
	// ErrNamed is a grant that would exceed NamedMax open grants or UsedMax held.
	ErrNamed = errors.New("limiter: too many open grants")
	// ErrName is a name that is empty or longer than NameBytesMax.
	ErrName = errors.New("limiter: bad name of a grant")
)

// CheckName returns ErrName for a name that no grant can have.
func CheckName(id []byte) error {
	if len(id) == 0 || len(id) > NameBytesMax {
		return ErrName
	}
	return nil
}

// A grant's record has the name as its key. This is its value:
const (
	grantHead = 0 // 20 bits: its index in the heap; 4 bits of flags
	grantEnd  = 3 // uint48: when it ends, in Unix milliseconds, 0 = never by itself; the top bit says that it has a lease
	grantSize = 9
	// Then varints: how long before its end it was taken, in microseconds and signed; the cost; the reply's remaining,
	// and its reset in milliseconds plus 1; and for each bucket, how long after the grant its cost is back (see
	// Named.spent).

	grantRule   = 0x07 // of the flags: the rule that decided
	grantShadow = 0x08 // nothing was taken, since the limiter is a shadow
	grantFlags  = grantRule | grantShadow
	grantLeased = 1 << 47 // of the end

	placeBits = 20 // NamedMax places
	// savedHead is the length of the head in the saved form, which has the flags only.
	savedHead = 1
	savedMax  = savedHead + grantSize - grantEnd + (4+RulesMax)*binary.MaxVarintLen64
)

// grant is a record's value, decoded.
type grant struct {
	taken     int64 // in Unix microseconds
	endMillis int64
	rule      int
	leased    bool
	shadow    bool
	cost      int64
	remaining int64
	resetMs   int64
	tails     [RulesMax]int64 // by bucket, in the order of the rules
	buckets   int
}

func uint24(p []byte) uint32 { return uint32(p[0]) | uint32(p[1])<<8 | uint32(p[2])<<16 }

func putUint24(p []byte, v uint32) { p[0], p[1], p[2] = byte(v), byte(v>>8), byte(v>>16) }

func loadGrant(v []byte) grant { return readGrant(byte(uint24(v)>>placeBits), v[grantEnd:]) }

// readGrant reads a grant with these flags; v begins with its end.
func readGrant(flags byte, v []byte) (g grant) {
	end := uint48(v)
	g.endMillis, g.leased = int64(end&^grantLeased), end&grantLeased != 0
	g.rule, g.shadow = int(flags&grantRule), flags&grantShadow != 0
	at := grantSize - grantEnd
	next := func() int64 {
		var n uint64
		n, at = uvarint(v, at)
		return int64(n)
	}
	before := next()
	g.taken = g.endMillis*1000 - (int64(uint64(before)>>1) ^ -(before & 1))
	g.cost, g.remaining, g.resetMs = next(), next(), next()-1
	for at < len(v) {
		g.tails[g.buckets] = next()
		g.buckets++
	}
	return g
}

func (g *grant) flags() byte {
	if g.shadow {
		return byte(g.rule) | grantShadow
	}
	return byte(g.rule)
}

// append encodes the grant without its head.
func (g *grant) append(dst []byte) []byte {
	var end [grantSize - grantEnd]byte
	bits := uint64(g.endMillis)
	if g.leased {
		bits |= grantLeased
	}
	putUint48(end[:], bits)
	dst = append(dst, end[:]...)
	before := g.endMillis*1000 - g.taken
	for _, n := range [...]int64{before<<1 ^ before>>63, g.cost, g.remaining, g.resetMs + 1} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	for _, n := range g.tails[:g.buckets] {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	return dst
}

// Named is a limiter with named grants. The zero Named has none and no rules.
type Named struct {
	state  []byte
	table  table.Table
	heap   []table.Record
	held   int64 // the sum of the costs
	leased int64 // the same of those with a lease
	// given is, for each bucket among the rules, how much time was given back to it. What was taken before is back
	// earlier by up to that.
	given []int64
	// latest is when the last grant ends, in Unix milliseconds, 0 if that is unknown.
	latest int64
}

// NewNamed makes a limiter without grants from p, a limiter's bytes, which it keeps.
func NewNamed(p []byte) *Named {
	return &Named{state: p, given: make([]int64, bucketsOf(p))}
}

// Room tells whether one more grant with this cost can be open.
func (n *Named) Room(cost int64) bool { return n.Len() < NamedMax && n.held+cost <= UsedMax }

// State is the limiter's bytes.
func (n *Named) State() []byte { return n.state }

// Len is how many grants are open.
func (n *Named) Len() int { return n.table.Len() }

// NextDue is when the next grant ends, in Unix milliseconds, 0 if none does.
func (n *Named) NextDue() int64 {
	if len(n.heap) == 0 {
		return 0
	}
	return endOf(n.heap[0])
}

func endOf(r table.Record) int64 { return int64(uint48(r.Value()[grantEnd:]) &^ grantLeased) }

// before orders records by their ends, then by their names, so that the order is the same in every copy.
func before(a, b table.Record) bool {
	if x, y := endOf(a), endOf(b); x != y {
		return x < y
	}
	return bytes.Compare(a.Key(), b.Key()) < 0
}

func (n *Named) put(i int, r table.Record) {
	n.heap[i] = r
	head := r.Value()[grantHead:]
	putUint24(head, uint24(head)&^(1<<placeBits-1)|uint32(i))
}

// sift puts a record at its place in the heap, starting from the free index i.
func (n *Named) sift(i int, r table.Record) {
	for i > 0 && before(r, n.heap[(i-1)/2]) {
		n.put(i, n.heap[(i-1)/2])
		i = (i - 1) / 2
	}
	for {
		child := 2*i + 1
		if child >= len(n.heap) {
			break
		}
		if child+1 < len(n.heap) && before(n.heap[child+1], n.heap[child]) {
			child++
		}
		if !before(n.heap[child], r) {
			break
		}
		n.put(i, n.heap[child])
		i = child
	}
	n.put(i, r)
}

func placeOf(r table.Record) int {
	return int(uint24(r.Value()[grantHead:]) & (1<<placeBits - 1))
}

// queue adds a record to the heap, unless it never ends.
func (n *Named) queue(r table.Record) {
	end := endOf(r)
	if end == 0 {
		return
	}
	if len(n.heap) == 0 || n.latest != 0 {
		n.latest = max(n.latest, end)
	}
	if len(n.heap) == cap(n.heap) { // by an eighth: append's quarter would cost too much memory
		n.heap = append(make([]table.Record, 0, len(n.heap)+len(n.heap)/8+1), n.heap...)
	}
	n.heap = append(n.heap, r)
	n.sift(len(n.heap)-1, r)
}

// unqueue removes a record from the heap.
func (n *Named) unqueue(r table.Record) {
	if endOf(r) == 0 {
		return
	}
	if endOf(r) == n.latest {
		n.latest = 0
	}
	i, last := placeOf(r), len(n.heap)-1
	moved := n.heap[last]
	n.heap[last] = table.Record{}
	if n.heap = n.heap[:last]; i < last {
		n.sift(i, moved)
	}
	if c := cap(n.heap); c > 64 && last < c/2 {
		n.heap = append(make([]table.Record, 0, last+last/8+1), n.heap...)
	}
}

// set stores g as a grant, in the place of old if there is one.
func (n *Named) set(id []byte, old table.Record, g *grant) {
	var buf [savedMax + grantSize]byte
	putUint24(buf[:], uint32(g.flags())<<placeBits)
	value := g.append(buf[:grantEnd])
	if latest := n.latest; latest != 0 && g.endMillis >= latest {
		defer func() { n.latest = g.endMillis }() // even if unqueue of the old one forgets it
	}
	if !old.None() {
		n.forget(old)
		if v := old.Value(); len(v) == len(value) {
			copy(v, value)
			n.queue(old)
			n.remember(g)
			return
		}
	}
	r := table.NewRecord(id, len(value), false)
	copy(r.Value(), value)
	if old.None() {
		n.table.Add(r)
	} else {
		n.table.Replace(old, r)
	}
	n.queue(r)
	n.remember(g)
}

func (n *Named) remember(g *grant) {
	n.held += g.cost
	if g.leased {
		n.leased += g.cost
	}
}

// forget removes a record from the heap and the sums, not from the table.
func (n *Named) forget(r table.Record) {
	g := loadGrant(r.Value())
	n.held -= g.cost
	if g.leased {
		n.leased -= g.cost
	}
	n.unqueue(r)
}

func (n *Named) remove(r table.Record) {
	n.forget(r)
	n.table.Delete(r.Key())
	if len(n.heap) == 0 {
		n.heap = nil
	}
}

// Decide is the package's Decide for a limiter with grants. p is its State, or what StateFor returned; the caller
// stores the outcome with SetState. n may be nil.
func (n *Named) Decide(p []byte, now int64, c Call) ([]byte, Decision, error) {
	c.named = n
	return Decide(p, now, c)
}

// Open adds a grant that was just taken; d is the decision. leaseMicros is how long it stays open, 0 for until the
// windows that it was taken from are over. The name must be valid and not that of an open grant, and there must be
// Room.
func (n *Named) Open(id []byte, now, leaseMicros int64, d *Decision) {
	g := grant{taken: now, rule: d.Rule, cost: d.Taken, remaining: d.Remaining, resetMs: CeilMillis(d.ResetAfterMicros), shadow: d.Shadowed}
	if d.Shadowed {
		g.cost = 0
	}
	var o opened
	o.open(n.state)
	end, untimed := now, false
	for i := 0; i < o.n; i++ {
		r, state := o.rules[i], n.state[o.at[i]:o.at[i+1]]
		row := r.row()
		untimed = untimed || row.untimed
		end = max(end, row.over(r, state, now))
		if row.bucket {
			g.tails[g.buckets] = min(max(r.loadMoment(state).micros-now, 0)+n.given[g.buckets], never)
			g.buckets++
		}
	}
	switch {
	case leaseMicros > 0:
		g.leased = true
		g.endMillis = leaseEnd(now, leaseMicros)
	case end < never:
		g.endMillis = min(ceilDiv(end, 1000), endMillisMax)
	}
	n.set(id, table.Record{}, &g)
	// When an untimed rule is full again depends on this grant, too.
	if !untimed {
		return
	}
	d.ResetAfterMicros = o.reset(n.state, now, n)
	g.resetMs = CeilMillis(d.ResetAfterMicros)
	n.set(id, n.table.Get(id), &g)
}

// leaseEnd is when a lease ends, in Unix milliseconds: never too early.
func leaseEnd(now, micros int64) int64 { return min(ceilDiv(now+micros, 1000), endMillisMax) }

// endMillisMax is the last moment at which a grant can end, in the year 6429.
const endMillisMax = 1<<47 - 1

// overWhenFull is over for algorithms whose window ends when nothing is in use.
func (r Rule) overWhenFull(state []byte, now int64) int64 {
	if at := r.row().fullAt(r, state); at > now {
		return at
	}
	return now + r.PeriodMicros // nothing was taken
}

// Find returns the decision of an open grant. leaseMicros, if not 0, is its new lease from now on.
func (n *Named) Find(id []byte, now, leaseMicros int64) (d Decision, ok bool) {
	r := n.table.Get(id)
	if r.None() {
		return d, false
	}
	if leaseMicros > 0 {
		n.touch(r, now, leaseMicros)
	}
	g := loadGrant(r.Value())
	var buf [RulesMax]Rule
	rules := Rules(buf[:0], n.state)
	d = Decision{
		Rule: min(g.rule, len(rules)-1), Remaining: g.remaining, RetryAfterMicros: -1,
		ResetAfterMicros: g.resetMs * 1000, Taken: g.cost, Shadowed: g.shadow,
	}
	if d.Limit = rules[d.Rule].Capacity(); g.resetMs < 0 {
		d.ResetAfterMicros = -1
	}
	return d, true
}

// Has tells whether a grant is open.
func (n *Named) Has(id []byte) bool { return !n.table.Get(id).None() }

// Touch makes a grant's lease end leaseMicros from now. It returns whether the grant is open.
func (n *Named) Touch(id []byte, now, leaseMicros int64) bool {
	r := n.table.Get(id)
	if r.None() {
		return false
	}
	n.touch(r, now, leaseMicros)
	return true
}

func (n *Named) touch(r table.Record, now, leaseMicros int64) {
	g := loadGrant(r.Value())
	g.leased, g.endMillis = true, leaseEnd(now, leaseMicros)
	n.set(r.Key(), r, &g)
}

// walkMax is how many grants wait looks at to find when enough of them have ended.
const walkMax = 128

// wait is how long until need fits under an untimed rule if nobody settles, or never if no ending leases bring that
// about. If more than walkMax grants would have to end, it is how long until that many have.
func (n *Named) wait(r Rule, state []byte, now, need int64) int64 {
	if n == nil {
		return never
	}
	over := loadHold(state) + need - r.Count
	// Walk the heap in order: the next grant is the first among the children of those before it.
	var buf [64]int
	open := append(buf[:0], 0)
	if len(n.heap) == 0 {
		return never
	}
	for walked := 0; len(open) > 0; walked++ {
		first := 0
		for i := range open {
			if before(n.heap[open[i]], n.heap[open[first]]) {
				first = i
			}
		}
		at := open[first]
		open[first] = open[len(open)-1]
		open = open[:len(open)-1]
		for child := 2*at + 1; child <= 2*at+2 && child < len(n.heap); child++ {
			open = append(open, child)
		}
		g := loadGrant(n.heap[at].Value())
		if r.row().needsLease || g.leased {
			over -= g.cost
		}
		if over <= 0 || walked == walkMax {
			return max(g.endMillis*1000-now, 1)
		}
	}
	return never
}

// room is the rule's room, with -1 for a reset that neither time nor ending grants bring about.
func (n *Named) room(r Rule, state []byte, now int64) (available, reset int64) {
	if available, reset = r.room(state, now); reset < never {
		return available, reset
	}
	if n == nil || !r.row().needsLease && loadHold(state) > n.leased || len(n.heap) == 0 {
		return available, -1
	}
	if n.latest == 0 {
		for _, r := range n.heap {
			n.latest = max(n.latest, endOf(r))
		}
	}
	return available, max(n.latest*1000-now, 0)
}
