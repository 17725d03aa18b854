package stream

// Reading with a group, and passing pending entries from one consumer to another.

// Deliver reads for a consumer the entries after the group's last ID, at most count of them (0: all), and calls
// fn with each. Unless noAck, they are pending with the consumer from then on, also those that were pending with
// another, which is possible after the group's last ID was set back. It returns how many they were.
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

// History reads the entries that are pending with a consumer after an ID, at most count of them (0: all), and
// calls fn with each; it is nil for one that is no longer in the stream. The others count as delivered once more.
// It returns how many they were.
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

// Claim says how entries pass to another consumer.
type Claim struct {
	MinIdleMillis   int64 // only those that were delivered at least so long ago
	DeliveredMillis int64 // when they count as delivered from then on
	Deliveries      int64 // how often, or -1: once more than before
	Force           bool  // also those that are not pending
	JustID          bool  // an attempt to read is not counted
}

// Claim passes a pending entry to a consumer and reports whether it did. An entry that is no longer in the
// stream is not pending any more.
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

// idle reports whether the entry was delivered at least minMillis ago. 0 asks for nothing, even if the clock
// went back.
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

// autoClaimEffort is how many pending entries AutoClaim looks at for each that it may pass.
const autoClaimEffort = 10

// AutoClaim looks through the group's pending entries from an ID on and passes those that were delivered at
// least minIdleMillis ago to a consumer; claimed is called with each. Those that are no longer in the stream are
// not pending any more; deleted is called with each. It ends after count of both. It returns where to go on,
// 0-0 at the end.
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
