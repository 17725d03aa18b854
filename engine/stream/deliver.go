package stream

// Reading with a group, and moving pending entries from one consumer to another.

// Deliver reads the entries after the group's last ID for a consumer, at most count of them (0: all), and calls fn with
// each. Unless noAck is true, they are then pending with the consumer, even if they were pending with another one,
// which is possible after the group's last ID was set back. It returns how many.
func (s *Stream) Deliver(g *Group, c *Consumer, count int, noAck bool, nowMillis int64, fn func(it *Iter)) int {
	start, _ := g.LastID.Next()
	n := 0
	it := s.Range(start, MaxID, false)
	for it.Next() {
		id := it.ID()
		if id.Compare(g.LastID) > 0 {
			if g.EntriesRead != UnknownRead && g.LastID.Compare(s.first) >= 0 && !s.deletedAfter(g.LastID) {
				g.EntriesRead++
			} else if s.entriesAdded > 0 {
				g.EntriesRead = s.position(id)
			}
			g.LastID = id
		}
		fn(&it)
		if !noAck {
			g.set(Pending{ID: id, Consumer: c, DeliveredMillis: nowMillis, Deliveries: 1})
			c.ActiveMillis = nowMillis
		}
		if n++; n == count {
			break
		}
	}
	return n
}

// History reads the entries after an ID that are pending with a consumer, at most count of them (0: all), and calls fn
// with each; it is nil if the entry is no longer in the stream. The others count as delivered once more. It returns how
// many.
func (s *Stream) History(g *Group, c *Consumer, after ID, count int, nowMillis int64, fn func(id ID, it *Iter)) int {
	start, _ := after.Next()
	var pending []Pending
	g.EachPendingOf(c, start, func(p Pending) bool {
		pending = append(pending, p)
		return len(pending) != count
	})
	for _, p := range pending {
		it := s.Range(p.ID, p.ID, false)
		if !it.Next() {
			fn(p.ID, nil)
			continue
		}
		fn(p.ID, &it)
		p.DeliveredMillis = nowMillis
		p.Deliveries++
		g.set(p)
	}
	return len(pending)
}

// Claim says how entries move to another consumer.
type Claim struct {
	MinIdleMillis   int64 // only those that were delivered at least so long ago
	DeliveredMillis int64 // the new time of delivery
	Deliveries      int64 // the new number of deliveries, or -1: one more than before
	Force           bool  // also those that are not pending
	JustID          bool  // with Deliveries -1: the number stays
}

// Claim moves a pending entry to a consumer and reports whether it did. An entry that is no longer in the stream is
// removed from the pending ones.
func (s *Stream) Claim(g *Group, c *Consumer, id ID, how Claim, nowMillis int64) bool {
	p, pending := g.pending.Get(Pending{ID: id})
	switch {
	case !s.Exists(id):
		g.Ack(id)
		return false
	case !pending && how.Force:
		p = Pending{ID: id, Deliveries: 1}
	case !pending || !p.idle(how.MinIdleMillis, nowMillis):
		return false
	}
	g.pass(p, c, how, nowMillis)
	return true
}

// idle reports whether the entry was delivered at least minMillis ago. With 0 it always is, even if the clock went
// back.
func (p Pending) idle(minMillis, nowMillis int64) bool {
	return minMillis <= 0 || nowMillis-p.DeliveredMillis >= minMillis
}

func (g *Group) pass(p Pending, c *Consumer, how Claim, nowMillis int64) {
	p.Consumer, p.DeliveredMillis = c, how.DeliveredMillis
	switch {
	case how.Deliveries >= 0:
		p.Deliveries = uint64(how.Deliveries)
	case !how.JustID:
		p.Deliveries++
	}
	g.set(p)
	c.ActiveMillis = nowMillis
}

// autoClaimEffort is how many pending entries AutoClaim looks at for each that it may move.
const autoClaimEffort = 10

// AutoClaim looks through the group's pending entries from an ID on. Those that were delivered at least minIdleMillis
// ago it moves to a consumer, and calls claimed with each. Those that are no longer in the stream it removes from the
// pending ones, and calls deleted with each. It ends after count of both, and returns the ID to continue with, 0-0 at
// the end.
func (s *Stream) AutoClaim(g *Group, c *Consumer, from ID, count int, minIdleMillis int64, justID bool, nowMillis int64,
	claimed func(id ID), deleted func(p Pending)) ID {
	how := Claim{DeliveredMillis: nowMillis, Deliveries: -1, JustID: justID}
	for attempts := autoClaimEffort * count; ; attempts-- {
		var p Pending
		found := false
		g.EachPending(from, func(at Pending) bool {
			p, found = at, true
			return false
		})
		switch {
		case !found:
			return ID{}
		case attempts == 0 || count == 0:
			return p.ID
		case !s.Exists(p.ID):
			g.Ack(p.ID)
			deleted(p)
			count--
		case p.idle(minIdleMillis, nowMillis):
			g.pass(p, c, how, nowMillis)
			claimed(p.ID)
			count--
		}
		var more bool
		if from, more = p.ID.Next(); !more {
			return ID{}
		}
	}
}
