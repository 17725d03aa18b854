// This file is the order of delivery among entries that are not all alike: those of
// groups take turns, and within a group the higher priority goes first.
//
// A queue without such entries has none of this. In one that has, they stand in two
// trees: by time, as others do, and by group, priority and time. A group that has
// something due, and may have it delivered, is ready. The ready group that was
// served longest ago is next, so a group waits for one round at most, however much
// others have. When a group may be ready, it stands by that time in a third tree.
// That is found again when its entries change or when it turns out not to be ready;
// so a delivery looks at a few groups, whatever their number.

package delayqueue

import (
	"bytes"
	"math"

	"github.com/tidwall/btree"

	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/engine/table"
)

// promotedMax is how many groups whose time has come are taken among the ready ones
// before one is chosen. A million that fall due together so take their place over as
// many deliveries.
const promotedMax = 16

type ranks struct {
	byTime  *btree.BTreeG[item] // the waiting entries that have a group or a priority
	byGroup *btree.BTreeG[rankItem]
	groups  map[string]*group
	// plain stands for all entries without a group. Those without a priority either
	// are in the queue's own tree only.
	plain *group
	later *btree.BTreeG[*group] // by when they may be ready
	ready *btree.BTreeG[*group] // by turn
	// full have something due, and as many leased as can be, the fewest first.
	full *btree.BTreeG[*group]
	// held have something due that their limiters refuse, by when these do not; idle have nothing but a limiter, by when
	// that is full.
	held, idle *btree.BTreeG[*group]
	// With other rules those become freed and spare, until they are looked at again, a few at a time.
	freed, spare []*btree.BTreeG[*group]
	turn         uint64 // the last one
	serial       uint32 // the last group's number
}

// rankItem is a waiting entry: the number of its group, 255 less its priority, and
// its time.
type rankItem struct {
	group uint32
	low   uint8
	item
}

func beforeInRank(a, b rankItem) bool {
	switch {
	case a.group != b.group:
		return a.group < b.group
	case a.low != b.low:
		return a.low < b.low
	}
	return before(a.item, b.item)
}

// Where a group stands.
const (
	groupOut   = iota // nowhere: it has nothing that could be delivered
	groupLater        // in later, by its time
	groupReady        // in ready, by its turn
	groupFull         // in full
	groupHeld         // in held, or what that was
	groupIdle         // in idle, or what that was
)

type group struct {
	name            string
	number          uint32
	turn            uint64 // when it was served last, or made
	waiting, leased int
	at              int64 // when it may be ready
	state           uint8
	// bucket is the group's limiter, nil until something is taken from it; rules tells of
	// which of the queue's (Queue.rules).
	bucket []byte
	rules  uint64
	// in is the tree where it is if it is held or idle, most how many were leased when it was full.
	in   *btree.BTreeG[*group]
	most int
}

func newRanks() *ranks {
	no := btree.Options{NoLocks: true}
	k := &ranks{
		byTime:  newTree(),
		byGroup: btree.NewBTreeGOptions(beforeInRank, no),
		groups:  map[string]*group{},
		plain:   &group{},
		later:   newGroupTree(),
		held:    newGroupTree(),
		idle:    newGroupTree(),
		full: btree.NewBTreeGOptions(func(a, b *group) bool {
			return a.most < b.most || a.most == b.most && a.number < b.number
		}, no),
		ready: btree.NewBTreeGOptions(func(a, b *group) bool {
			return a.turn < b.turn || a.turn == b.turn && a.number < b.number
		}, no),
	}
	return k
}

// newGroupTree has groups by their times.
func newGroupTree() *btree.BTreeG[*group] {
	return btree.NewBTreeGOptions(func(a, b *group) bool {
		return a.at < b.at || a.at == b.at && a.number < b.number
	}, btree.Options{NoLocks: true})
}

// ranked tells whether an entry has a group or a priority.
func ranked(r table.Record) bool { return r.Value()[headPlace]&rankBit != 0 }

// Ranked says that entries of the queue take turns, or have priorities.
func (q *Queue) Ranked() bool { return q.rank != nil }

// groupOf is an entry's group, which is made if there is none.
func (q *Queue) groupOf(x *Extra) *group {
	k := q.rank
	if k == nil {
		k = newRanks()
		q.rank = k
		q.refresh(k.plain)
	}
	if len(x.Group) == 0 {
		return k.plain
	}
	g := k.groups[string(x.Group)]
	if g != nil && g.rules != q.rules && g.empty() { // as if it had been forgotten by now
		k.forget(g)
		g = nil
	}
	if g == nil {
		k.turn++
		k.serial++
		g = &group{name: string(x.Group), number: k.serial, turn: k.turn, rules: q.rules}
		k.groups[g.name] = g
	}
	return g
}

// begin gives a group that has nothing, and is kept for its limiter, a new turn.
func (q *Queue) begin(g *group) {
	if k := q.rank; g != k.plain && q.bucketOf(g) != nil && g.empty() {
		k.out(g)
		k.turn++
		g.turn = k.turn
	}
}

func rankItemOf(g *group, x *Extra, r table.Record) rankItem {
	return rankItem{g.number, math.MaxUint8 - x.Prio, itemOf(r)}
}

// enterRanked puts an entry into the trees that it belongs to.
func (q *Queue) enterRanked(r table.Record) (twice bool) {
	x := extraOf(r)
	switch placeOf(r) {
	case waiting:
		g := q.groupOf(&x)
		q.begin(g)
		_, twice = q.rank.byTime.Load(itemOf(r))
		q.rank.byGroup.Set(rankItemOf(g, &x, r))
		g.waiting++
		switch {
		case g.state == groupFull || g.state == groupHeld: // it has something due already
		case g.state != groupLater || itemOf(r).at < g.at:
			q.refresh(g)
		}
	case leased:
		_, twice = q.trees[leased].Load(itemOf(r))
		if len(x.Group) > 0 {
			g := q.groupOf(&x)
			q.begin(g)
			g.leased++
			q.refresh(g)
		}
	default:
		_, twice = q.tree(r).Load(itemOf(r))
	}
	return twice
}

// takeRanked is the opposite.
func (q *Queue) takeRanked(r table.Record) {
	x := extraOf(r)
	switch placeOf(r) {
	case waiting:
		g := q.groupOf(&x)
		q.rank.byTime.Delete(itemOf(r))
		q.rank.byGroup.Delete(rankItemOf(g, &x, r))
		g.waiting--
		q.prune(g)
	case leased:
		q.trees[leased].Delete(itemOf(r))
		if len(x.Group) > 0 {
			g := q.groupOf(&x)
			g.leased--
			q.prune(g)
		}
	default:
		q.tree(r).Delete(itemOf(r))
	}
}

// empty tells whether a group has no entries.
func (g *group) empty() bool { return g.waiting == 0 && g.leased == 0 }

// relocate finds a group's place anew, and forgets it if there is nothing that it is kept for: no entry, and no limiter, or one of
// former rules.
func (q *Queue) relocate(g *group) {
	if k := q.rank; g != k.plain && g.empty() && q.bucketOf(g) == nil {
		k.forget(g)
		return
	}
	q.refresh(g)
}

// prune is relocate after a group has lost an entry, and forgets all ranks when nothing is left.
func (q *Queue) prune(g *group) {
	k := q.rank
	q.relocate(g)
	if k.byTime.Len() == 0 && q.Groups() == 0 && q.template == nil {
		q.rank = nil
	}
}

// pin keeps the group of an entry, and its turn, while the entry is taken out and put
// in again; unpin follows.
func (q *Queue) pin(r table.Record) *group {
	if r.None() || !ranked(r) || placeOf(r) != waiting && placeOf(r) != leased {
		return nil
	}
	x := extraOf(r)
	if len(x.Group) == 0 {
		return nil
	}
	g := q.groupOf(&x)
	g.leased++
	return g
}

func (q *Queue) unpin(g *group) {
	if g == nil {
		return
	}
	g.leased--
	q.prune(g)
}

// out takes a group out of where it stands.
func (k *ranks) out(g *group) {
	switch g.state {
	case groupLater:
		k.later.Delete(g)
	case groupReady:
		k.ready.Delete(g)
	case groupFull:
		k.full.Delete(g)
	case groupHeld, groupIdle:
		g.in.Delete(g)
	}
	g.state = groupOut
}

// full says that as many of a group are leased as can be at once.
func (q *Queue) full(g *group) bool {
	return q.settings.GroupConc > 0 && g != q.rank.plain && int64(g.leased) >= q.settings.GroupConc
}

const never = math.MaxInt64

// head is the entry of a group that is next at now, and if none is due, when one
// will be.
func (q *Queue) head(g *group, now int64) (r table.Record, at int64) {
	at = never
	pivot := rankItem{group: g.number, item: item{at: math.MinInt64}}
	for {
		var it rankItem
		found := false
		q.rank.byGroup.Ascend(pivot, func(i rankItem) bool {
			it, found = i, i.group == g.number
			return false
		})
		if !found {
			break
		}
		if it.at <= now {
			return it.record, it.at
		}
		if at = min(at, it.at); it.low == math.MaxUint8 {
			break
		}
		pivot.low = it.low + 1
	}
	if g == q.rank.plain {
		if first, ok := q.trees[waiting].Min(); ok {
			if first.at <= now {
				return first.record, first.at
			}
			at = min(at, first.at)
		}
	}
	return table.Record{}, at
}

// refresh finds out when a group may be ready. One that is among the ready ones is
// looked at when its turn comes.
func (q *Queue) refresh(g *group) {
	if g.state == groupReady {
		return
	}
	k := q.rank
	k.out(g)
	switch _, at := q.head(g, math.MinInt64); {
	case at < never:
		g.at, g.state = at, groupLater
		k.later.Set(g)
	case g.leased == 0 && q.bucketOf(g) != nil: // it is not needed any more when that is full
		k.stand(g, limiter.FullAt(g.bucket), groupIdle, k.idle)
	}
}

// stand has a group, which stands nowhere, be held or idle until a time.
func (k *ranks) stand(g *group, at int64, state uint8, in *btree.BTreeG[*group]) {
	g.at, g.state, g.in = at, state, in
	in.Set(g)
}

// fill puts a group, which stands nowhere and has something due, among the full ones.
func (k *ranks) fill(g *group) {
	g.most, g.state = g.leased, groupFull
	k.full.Set(g)
}

// bucketOf is a group's limiter, nil for none. It changes nothing: who only looks at a queue may ask.
func (q *Queue) bucketOf(g *group) []byte {
	if g.rules != q.rules {
		return nil
	}
	return g.bucket
}

// refused is when a group's limiter would let something pass, 0 if it does now.
func (q *Queue) refused(g *group, now int64) int64 {
	if q.bucketOf(g) == nil {
		return 0 // nothing was taken yet
	}
	_, d, err := limiter.Take(g.bucket, now, 1, limiter.Peek)
	if err != nil || !d.Limited {
		return 0
	}
	return now + max(d.RetryAfterMicros, 1)
}

// charge takes one delivery from a group's limiter.
func (q *Queue) charge(g *group, now int64) {
	if q.template == nil || g == q.rank.plain {
		return
	}
	if q.bucketOf(g) == nil {
		g.rules, g.bucket = q.rules, bytes.Clone(q.template)
	}
	if p, _, err := limiter.Take(g.bucket, now, 1, limiter.Force); err == nil {
		g.bucket = p
	}
}

// setRules gives each group a limiter of these rules, in which nothing is in use.
func (q *Queue) setRules(text string) error {
	q.template = nil
	q.rules++
	if k := q.rank; k != nil {
		if k.held.Len() > 0 {
			k.freed, k.held = append(k.freed, k.held), newGroupTree()
		}
		if k.idle.Len() > 0 {
			k.spare, k.idle = append(k.spare, k.idle), newGroupTree()
		}
		q.prune(k.plain)
	}
	if text == "" {
		return nil
	}
	rules, err := ParseRules(text)
	if err == nil {
		q.template = limiter.AppendWide(nil, limiter.New(nil, rules, true)) // as it is saved
	}
	return err
}

// ParseRules reads the rules that groups can have: those in which time brings back
// what was taken.
func ParseRules(text string) ([]limiter.Rule, error) {
	rules, err := limiter.ParseRules(nil, bytes.Fields([]byte(text)))
	for _, r := range rules {
		if r.Untimed() {
			return nil, limiter.ErrLease
		}
	}
	return rules, err
}

// next is what is delivered next at now, and whose turn it is.
func (q *Queue) next(now int64) (r table.Record, of *group) {
	k := q.rank
	for {
		q.promote(now)
		g, ok := k.ready.Min()
		if !ok {
			return table.Record{}, nil
		}
		at := int64(0)
		r, _ := q.head(g, now)
		full := !r.None() && q.full(g)
		if !r.None() && !full {
			if at = q.refused(g, now); at == 0 {
				return r, g
			}
		}
		k.out(g)
		switch {
		case full:
			k.fill(g)
		case at != 0:
			k.stand(g, at, groupHeld, k.held)
		default:
			q.relocate(g)
		}
	}
}

// promote puts some groups among the ready ones whose time has come, or for whom there are other bounds now.
func (q *Queue) promote(now int64) {
	k := q.rank
	for _, in := range []*btree.BTreeG[*group]{k.later, k.held} {
		for range promotedMax {
			g, ok := in.Min()
			if !ok || g.at > now {
				break
			}
			k.promote(g)
		}
	}
	for range promotedMax {
		g, ok := k.full.Min()
		if !ok || q.settings.GroupConc > 0 && int64(g.most) >= q.settings.GroupConc {
			break
		}
		k.promote(g)
	}
	for n := promotedMax; n > 0 && len(k.freed) > 0; n-- {
		if g, ok := k.freed[0].Min(); ok {
			k.promote(g)
		} else {
			k.freed = k.freed[1:]
		}
	}
}

func (k *ranks) promote(g *group) {
	k.out(g)
	g.state = groupReady
	k.ready.Set(g)
}

// forgetIdle forgets up to max groups that have nothing but limiters: those of former rules, and those that are full at now. It makes
// no difference when: a group that comes back has a new turn and nothing in use either way.
func (q *Queue) forgetIdle(now int64, max int) {
	k := q.rank
	for ; max > 0 && len(k.spare) > 0; max-- {
		if g, ok := k.spare[0].Min(); ok {
			k.forget(g)
		} else {
			k.spare = k.spare[1:]
		}
	}
	for ; max > 0; max-- {
		g, ok := k.idle.Min()
		if !ok || g.at > now {
			return
		}
		k.forget(g)
	}
}

func (k *ranks) forget(g *group) {
	k.out(g)
	delete(k.groups, g.name)
}

// idleGraceMicros is for how long a group is left in place once its limiter is full: so many are forgotten together.
const idleGraceMicros = 3_000_000

// idleDue is when forgetIdle is to be called at the latest, though nothing is delivered, in Unix microseconds; 0 for never.
func (k *ranks) idleDue() int64 {
	if len(k.spare) > 0 {
		return 1
	}
	if g, ok := k.idle.Min(); ok {
		return min(g.at, TimeMax) + idleGraceMicros
	}
	return 0
}

// deliver hands an entry out, leased or for good, and puts its group at the end of
// the round.
func (q *Queue) deliver(r table.Record, now, leaseMicros int64) {
	k := q.rank
	if k == nil {
		q.take(r)
		q.handOut(r, now, leaseMicros)
		return
	}
	q.forgetIdle(now, promotedMax) // each delivery leaves one at most; a queue at rest has Settle for it
	x := extraOf(r)
	g := q.groupOf(&x)
	k.out(g)
	k.turn++
	g.turn = k.turn
	q.charge(g, now)
	pinned := q.pin(r)
	q.take(r)
	q.handOut(r, now, leaseMicros)
	q.unpin(pinned)
	if q.rank != k {
		return // nothing was ranked any more, and what follows the entry may have begun anew
	}
	if q.prune(g); q.rank != k || g.state != groupLater || g.at > now {
		return
	}
	if due, _ := q.head(g, now); !due.None() {
		if q.full(g) {
			k.out(g)
			k.fill(g)
		} else {
			k.promote(g)
		}
	}
}

// nextRanked is NextDelivery where entries are ranked. A group that is among the ready ones may have nothing due any more,
// so they are looked at first: those that are not ready go where their time is found.
func (q *Queue) nextRanked(now int64) (at int64, ok bool) {
	if r, _ := q.next(now); !r.None() {
		return now, true
	}
	for _, in := range []*btree.BTreeG[*group]{q.rank.later, q.rank.held} {
		if g, has := in.Min(); has && (!ok || g.at < at) {
			at, ok = g.at, true
		}
	}
	return at, ok
}
