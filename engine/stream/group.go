package stream

// Consumer groups: how far a group has read, its consumers, and what was delivered but not acknowledged.

import (
	"slices"
	"strings"
	"unsafe"

	"github.com/tidwall/btree"
)

// UnknownRead is the EntriesRead of a group if that is unknown.
const UnknownRead = -1

// Group is a consumer group. Its pending entries are in a B-tree by ID, and their IDs are also in a B-tree of their
// consumer. A group mostly adds at the end and acknowledges near the beginning, and XPENDING and XAUTOCLAIM read the
// entries in order from any ID on.
type Group struct {
	Name        string
	LastID      ID    // the last entry that was delivered
	EntriesRead int64 // how many entries of the stream are up to LastID, or UnknownRead
	pending     *btree.BTreeG[Pending]
	consumers   []*Consumer // by name
}

// Consumer is a member of a group.
type Consumer struct {
	Name         string
	SeenMillis   int64 // when it last tried to read or claim
	ActiveMillis int64 // when it last got something, -1 if never
	pending      *btree.BTreeG[ID]
}

// Pending is an entry that was delivered to a consumer and not acknowledged.
type Pending struct {
	ID              ID
	Consumer        *Consumer
	DeliveredMillis int64
	Deliveries      uint64
}

// pendingDegree keeps the nodes of the trees small: most groups have few pending entries.
const pendingDegree = 16

func newPending() *btree.BTreeG[Pending] {
	less := func(a, b Pending) bool { return a.ID.Compare(b.ID) < 0 }
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true, Degree: pendingDegree})
}

func newPendingIDs() *btree.BTreeG[ID] {
	less := func(a, b ID) bool { return a.Compare(b) < 0 }
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true, Degree: pendingDegree})
}

// Groups returns the groups in the order of their names.
func (s *Stream) Groups() []*Group { return s.groups }

// Group returns the group with this name, nil if there is none.
func (s *Stream) Group(name []byte) *Group {
	if i, ok := s.searchGroup(string(name)); ok {
		return s.groups[i]
	}
	return nil
}

func (s *Stream) searchGroup(name string) (int, bool) {
	return slices.BinarySearchFunc(s.groups, name, func(g *Group, n string) int { return strings.Compare(g.Name, n) })
}

// CreateGroup adds a group that has read up to an ID, and reports whether there was none with this name.
// entriesRead may be UnknownRead.
func (s *Stream) CreateGroup(name []byte, last ID, entriesRead int64) (*Group, bool) {
	i, ok := s.searchGroup(string(name))
	if ok {
		return nil, false
	}
	g := &Group{Name: string(name), LastID: last, EntriesRead: entriesRead, pending: newPending()}
	s.groups = slices.Insert(s.groups, i, g)
	return g, true
}

// DestroyGroup removes a group and reports whether there was one.
func (s *Stream) DestroyGroup(name []byte) bool {
	i, ok := s.searchGroup(string(name))
	if ok {
		s.groups = slices.Delete(s.groups, i, i+1)
	}
	return ok
}

// Lag returns how many entries of the stream the group has not read, and whether that is known.
func (s *Stream) Lag(g *Group) (int64, bool) {
	switch {
	case s.entriesAdded == 0 || s.length == 0:
		return 0, true
	case g.LastID.Compare(s.first) < 0 && s.maxDeleted.Compare(s.first) < 0:
		return int64(s.length), true
	}
	read := g.EntriesRead
	if read == UnknownRead || s.deletedAfter(g.LastID) {
		read = s.position(g.LastID)
	}
	return int64(s.entriesAdded) - read, read != UnknownRead
}

// deletedAfter reports whether an entry from an ID on may have been deleted.
func (s *Stream) deletedAfter(id ID) bool {
	return s.length > 0 && !s.maxDeleted.Zero() && id.Compare(s.maxDeleted) <= 0
}

// Position returns how many entries were ever added up to an ID, or UnknownRead if that is unknown, for RESTORE of a
// group that does not say how many it has read.
func (s *Stream) Position(id ID) int64 { return s.position(id) }

// position returns how many entries were ever added up to an ID, or UnknownRead if that is unknown.
func (s *Stream) position(id ID) int64 {
	added := int64(s.entriesAdded)
	last := id.Compare(s.last)
	switch {
	case added == 0:
		return 0
	case s.length == 0 && last <= 0:
		return added
	case !id.Zero() && id.Compare(s.maxDeleted) < 0:
		return UnknownRead
	case last == 0:
		return added
	case last > 0:
		return UnknownRead
	}
	if s.maxDeleted.Zero() || s.maxDeleted.Compare(s.first) < 0 {
		switch id.Compare(s.first) {
		case -1:
			return added - int64(s.length)
		case 0:
			return added - int64(s.length) + 1
		}
	}
	return UnknownRead
}

// Consumers returns the consumers in the order of their names.
func (g *Group) Consumers() []*Consumer { return g.consumers }

// Consumer returns the consumer with this name, nil if there is none.
func (g *Group) Consumer(name []byte) *Consumer {
	if i, ok := g.searchConsumer(string(name)); ok {
		return g.consumers[i]
	}
	return nil
}

func (g *Group) searchConsumer(name string) (int, bool) {
	return slices.BinarySearchFunc(g.consumers, name, func(c *Consumer, n string) int { return strings.Compare(c.Name, n) })
}

// CreateConsumer returns the consumer with this name and whether it had to be made.
func (g *Group) CreateConsumer(name []byte, nowMillis int64) (c *Consumer, created bool) {
	i, ok := g.searchConsumer(string(name))
	if ok {
		return g.consumers[i], false
	}
	c = &Consumer{Name: string(name), SeenMillis: nowMillis, ActiveMillis: -1, pending: newPendingIDs()}
	g.consumers = slices.Insert(g.consumers, i, c)
	return c, true
}

// DeleteConsumer removes a consumer with its pending entries and returns how many there were.
func (g *Group) DeleteConsumer(name []byte) (pending int) {
	i, ok := g.searchConsumer(string(name))
	if !ok {
		return 0
	}
	c := g.consumers[i]
	c.pending.Scan(func(id ID) bool {
		g.pending.Delete(Pending{ID: id})
		return true
	})
	g.consumers = slices.Delete(g.consumers, i, i+1)
	return c.pending.Len()
}

// Pending returns the number of entries pending in the group.
func (g *Group) Pending() int { return g.pending.Len() }

// Pending returns the number of entries pending with the consumer.
func (c *Consumer) Pending() int { return c.pending.Len() }

// FirstPending returns the pending entry with the lowest ID. There must be one.
func (g *Group) FirstPending() Pending { p, _ := g.pending.Min(); return p }

// LastPending returns the pending entry with the highest ID. There must be one.
func (g *Group) LastPending() Pending { p, _ := g.pending.Max(); return p }

// PendingAt returns the pending entry with an ID, and whether there is one.
func (g *Group) PendingAt(id ID) (Pending, bool) { return g.pending.Get(Pending{ID: id}) }

// EachPending calls fn with the group's pending entries in the order of their IDs, from an ID on, until it returns
// false. fn must not change the group.
func (g *Group) EachPending(from ID, fn func(p Pending) bool) {
	g.pending.Ascend(Pending{ID: from}, fn)
}

// EachPendingOf is EachPending for the entries of a consumer.
func (g *Group) EachPendingOf(c *Consumer, from ID, fn func(p Pending) bool) {
	c.pending.Ascend(from, func(id ID) bool {
		p, _ := g.pending.Get(Pending{ID: id})
		return fn(p)
	})
}

// set records a pending entry, which may have been with another consumer before.
func (g *Group) set(p Pending) {
	if old, ok := g.pending.Set(p); ok && old.Consumer != p.Consumer {
		old.Consumer.pending.Delete(p.ID)
	}
	p.Consumer.pending.Set(p.ID)
}

// Restore records a pending entry as it was, for RESTORE.
func (g *Group) Restore(p Pending) { g.set(p) }

// Ack acknowledges an entry and reports whether it was pending.
func (g *Group) Ack(id ID) bool {
	p, ok := g.pending.Delete(Pending{ID: id})
	if ok {
		p.Consumer.pending.Delete(id)
	}
	return ok
}

func (g *Group) memoryUsage() int {
	n := int(unsafe.Sizeof(*g)) + len(g.Name) + g.pending.Len()*int(unsafe.Sizeof(Pending{})+unsafe.Sizeof(ID{}))*3/2
	for _, c := range g.consumers {
		n += int(unsafe.Sizeof(*c)) + len(c.Name)
	}
	return n
}

// memoryEstimate is memoryUsage with an assumed length of the consumers' names.
func (g *Group) memoryEstimate() int {
	return int(unsafe.Sizeof(*g)) + len(g.Name) + g.pending.Len()*int(unsafe.Sizeof(Pending{})+unsafe.Sizeof(ID{}))*3/2 +
		len(g.consumers)*(int(unsafe.Sizeof(Consumer{}))+consumerNameBytes)
}

// consumerNameBytes is the assumed length of a consumer's name.
const consumerNameBytes = 16

func (g *Group) clone() *Group {
	c := &Group{Name: g.Name, LastID: g.LastID, EntriesRead: g.EntriesRead, pending: newPending()}
	own := make(map[*Consumer]*Consumer, len(g.consumers))
	for _, from := range g.consumers {
		to := &Consumer{Name: from.Name, SeenMillis: from.SeenMillis, ActiveMillis: from.ActiveMillis, pending: newPendingIDs()}
		own[from] = to
		c.consumers = append(c.consumers, to)
	}
	g.pending.Scan(func(p Pending) bool {
		p.Consumer = own[p.Consumer]
		c.set(p)
		return true
	})
	return c
}
