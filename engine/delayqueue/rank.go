// This file is the order of delivery among entries that have a group or a priority: groups take turns, and within a
// group the higher priority goes first.
//
// A queue without such entries has none of this. Otherwise these entries are in two trees: by time, like others, and by
// group, priority and time. A group is ready if it has something due that may be delivered. The ready group that was
// served longest ago is next, so a group waits for one round at most, however many entries others have. A third tree
// has the groups by when they may be ready. That time is computed again when a group's entries change, or when it turns
// out not to be ready. So a delivery looks at a few groups, whatever their number.

package delayqueue

import (
	"bytes"
	"math"

	"github.com/tidwall/btree"

	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/engine/table"
)

// promotedMax is how many groups whose time has come become ready before one is chosen. So a million groups that fall
// due together are spread over many deliveries.
const promotedMax = 16

type ranks struct {
	byTime  *btree.BTreeG[item] // the waiting entries that have a group or a priority
	byGroup *btree.BTreeG[rankItem]
	groups  map[string]*group
	// plain is the group of all entries without one. Entries without group and priority are only in the queue's own tree.
	plain *group
	later *btree.BTreeG[*group] // by when they may be ready
	ready *btree.BTreeG[*group] // by turn
	// full has groups with something due and as many leased as allowed, those with the fewest first.
	full *btree.BTreeG[*group]
	// held has groups with something due that their limiters refuse, by when these would allow it; idle has groups with
	// nothing but a limiter, by when that is full.
	held, idle *btree.BTreeG[*group]
	// When the rules change, held and idle move here until their groups are looked at again, a few at a time.
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

// The states of a group.
const (
	groupOut   = iota // in no tree: it has nothing that could be delivered
	groupLater        // in later, by its time
	groupReady        // in ready, by its turn
	groupFull         // in full
	groupHeld         // in held, or in a former one in freed
	groupIdle         // in idle, or in a former one in spare
)

type group struct {
	name            string
	number          uint32
	turn            uint64 // the turn when it was last served, or made
	waiting, leased int
	at              int64 // when it may be ready
	state           uint8
	// bucket is the group's limiter, nil until something is taken from it; rules says which rules it has (Queue.rules).
	bucket []byte
	rules  uint64
	// in is the tree of a group that is held or idle; most is how many entries were leased when it was full.
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

// newGroupTree makes a tree of groups by their times.
func newGroupTree() *btree.BTreeG[*group] {
	return btree.NewBTreeGOptions(func(a, b *group) bool {
		return a.at < b.at || a.at == b.at && a.number < b.number
	}, btree.Options{NoLocks: true})
}

// ranked tells whether an entry has a group or a priority.
func ranked(r table.Record) bool { return r.Value()[headPlace]&rankBit != 0 }

// Ranked says that entries of the queue take turns, or have priorities.
func (q *Queue) Ranked() bool { return q.rank != nil }

// groupOf is an entry's group, which it makes if there is none.
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
	if g != nil && g.rules != q.rules && g.empty() { // as if it were already forgotten
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

// begin gives a new turn to a group that has no entries and exists only for its limiter.
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

// takeRanked undoes enterRanked.
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

// relocate finds a group's place again. It forgets a group that has no entry, and no limiter with the present rules.
func (q *Queue) relocate(g *group) {
	if k := q.rank; g != k.plain && g.empty() && q.bucketOf(g) == nil {
		k.forget(g)
		return
	}
	q.refresh(g)
}

// prune is relocate after a group has lost an entry. It also drops all ranks when nothing is left.
func (q *Queue) prune(g *group) {
	k := q.rank
	q.relocate(g)
	if k.byTime.Len() == 0 && q.Groups() == 0 && q.template == nil {
		q.rank = nil
	}
}

// pin keeps the group of an entry, and its turn, while the entry is taken out and put in again; unpin must follow.
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

// out removes a group from its tree.
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

// full says that as many entries of a group are leased as allowed.
func (q *Queue) full(g *group) bool {
	return q.settings.GroupConc > 0 && g != q.rank.plain && int64(g.leased) >= q.settings.GroupConc
}

const never = math.MaxInt64

// head is the entry of a group that is next at now or, if none is due, when one will be.
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

// refresh computes when a group may be ready. It leaves a ready group, which is looked at when its turn comes.
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
	case g.leased == 0 && q.bucketOf(g) != nil: // it is needed only until that is full
		k.stand(g, limiter.FullAt(g.bucket), groupIdle, k.idle)
	}
}

// stand makes a group, which is in no tree, held or idle until a time.
func (k *ranks) stand(g *group, at int64, state uint8, in *btree.BTreeG[*group]) {
	g.at, g.state, g.in = at, state, in
	in.Set(g)
}

// fill puts a group, which is in no tree and has something due, among the full ones.
func (k *ranks) fill(g *group) {
	g.most, g.state = g.leased, groupFull
	k.full.Set(g)
}

// bucketOf is a group's limiter, nil for none. It changes nothing, so readers of a queue may call it.
func (q *Queue) bucketOf(g *group) []byte {
	if g.rules != q.rules {
		return nil
	}
	return g.bucket
}

// refused is when a group's limiter will allow a delivery, 0 if it does now.
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

// setRules gives each group a new limiter with these rules.
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
		q.template = limiter.AppendWide(nil, limiter.New(nil, rules, true)) // the form in which it is saved
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

// next is the entry that is delivered next at now, and its group.
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

// promote makes some groups ready whose time has come, or that have other limits now.
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

// forgetIdle forgets up to max groups that have nothing but limiters: those with earlier rules, and those whose
// limiters are full at now. It does not matter when: a group that comes back has a new turn and nothing in use either
// way.
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

// idleGraceMicros is how long a group stays after its limiter is full, so that many are forgotten together.
const idleGraceMicros = 3_000_000

// idleDue is when forgetIdle must be called even if nothing is delivered, in Unix microseconds; 0 for never.
func (k *ranks) idleDue() int64 {
	if len(k.spare) > 0 {
		return 1
	}
	if g, ok := k.idle.Min(); ok {
		return min(g.at, TimeMax) + idleGraceMicros
	}
	return 0
}

// deliver delivers an entry, leased or removed, and puts its group at the end of the round.
func (q *Queue) deliver(r table.Record, now, leaseMicros int64) {
	k := q.rank
	if k == nil {
		q.take(r)
		q.handOut(r, now, leaseMicros)
		return
	}
	q.forgetIdle(now, promotedMax) // a delivery leaves at most one behind; without deliveries Settle does this
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
		return // no ranked entry was left, and the entry's successor may have made new ranks
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

// nextRanked is NextDelivery for a queue with ranks. A ready group may have nothing due any more, so it first calls
// next, which moves such groups to the tree of their times.
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
