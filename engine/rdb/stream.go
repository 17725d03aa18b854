package rdb

// Streams: their blocks unchanged, facts about past entries, and their groups.

import (
	"encoding/binary"

	"github.com/limitkv/limitkv/engine/stream"
)

const idBytes = 16

// rawID writes an ID as in Redis's radix trees.
func (w *encoder) rawID(id stream.ID) {
	w.b = binary.BigEndian.AppendUint64(w.b, id.Millis)
	w.b = binary.BigEndian.AppendUint64(w.b, id.Seq)
}

func (w *encoder) id(id stream.ID) {
	w.len(id.Millis)
	w.len(id.Seq)
}

func (w *encoder) stream(s *stream.Stream, t byte) {
	w.len(uint64(s.Blocks()))
	s.EachBlock(func(b stream.Block) {
		w.len(idBytes)
		w.rawID(b.ID)
		w.string(b.Listpack)
	})
	w.len(uint64(s.Len()))
	w.id(s.LastID())
	if t != typeStream1 {
		w.id(s.FirstID())
		w.id(s.MaxDeletedID())
		w.len(s.EntriesAdded())
	}
	w.len(uint64(len(s.Groups())))
	for _, g := range s.Groups() {
		w.string([]byte(g.Name))
		w.id(g.LastID)
		if read := g.EntriesRead; t != typeStream1 {
			// Redis after 8.0 refuses a number above the entries ever added, which XGROUP allows.
			if w.For.strict() && read > int64(s.EntriesAdded()) {
				read = stream.UnknownRead
			}
			w.len(uint64(read))
		}
		w.len(uint64(g.Pending()))
		g.EachPending(stream.MinID, func(p stream.Pending) bool {
			w.rawID(p.ID)
			w.millis(p.DeliveredMillis)
			w.len(p.Deliveries)
			return w.room()
		})
		w.len(uint64(len(g.Consumers())))
		for _, c := range g.Consumers() {
			w.string([]byte(c.Name))
			w.millis(c.SeenMillis)
			if t >= typeStream3 {
				w.millis(c.ActiveMillis)
			}
			w.len(uint64(c.Pending()))
			g.EachPendingOf(c, stream.MinID, func(p stream.Pending) bool {
				w.rawID(p.ID)
				return w.room()
			})
		}
		if t >= typeStream {
			w.len(0) // entries that consumers have given back
		}
	}
	if t >= typeStream4 {
		w.dedup(s.Dedup())
	}
}

// dedup writes what the stream remembers of its producers.
func (w *encoder) dedup(d stream.Dedup) {
	w.len(d.Seconds)
	w.len(d.Entries)
	w.len(uint64(len(d.Producers())))
	for _, p := range d.Producers() {
		w.string([]byte(p.Name))
		w.len(uint64(len(p.IDs)))
		for _, id := range p.IDs {
			w.string([]byte(id.ID))
			w.id(id.Entry)
			if !w.room() {
				return
			}
		}
	}
	w.len(d.Added)
	w.len(d.Duplicates)
}

func toID(b []byte) stream.ID {
	return stream.ID{Millis: binary.BigEndian.Uint64(b), Seq: binary.BigEndian.Uint64(b[8:])}
}

func (r *decoder) rawID() stream.ID {
	if b := r.take(idBytes); b != nil {
		return toID(b)
	}
	return stream.ID{}
}

func (r *decoder) id() stream.ID {
	millis := r.Len()
	return stream.ID{Millis: millis, Seq: r.Len()}
}

func (r *decoder) stream(t byte) *stream.Stream {
	var blocks []stream.Block
	for n := r.Len(); n > 0 && !r.Failed(); n-- {
		id, lp := r.String(), r.String()
		if r.Failed() || len(id) != idBytes || len(lp) == 0 {
			r.fail(damaged("Stream listpack"))
			return nil
		}
		blocks = append(blocks, stream.Block{ID: toID(id), Listpack: lp})
	}
	said := stream.Said{Length: r.Len(), Last: r.id(), Sanitize: r.lim.Sanitize}
	if t != typeStream1 {
		r.id() // the first ID, which is known from the blocks
		said.MaxDeleted = r.id()
		said.EntriesAdded, said.KnowsAdded = r.Len(), true
	}
	if r.Failed() {
		return nil
	}
	s, repairs, err := stream.Restore(blocks, said)
	if err != nil {
		r.fail(damaged("Stream listpack"))
		return nil
	}
	r.repairs = append(r.repairs, repairs...)
	for n := r.Len(); n > 0 && !r.Failed(); n-- {
		r.group(&s, t)
	}
	if t >= typeStream4 {
		r.dedup(&s)
	}
	return &s
}

// dedup reads what the stream remembers of its producers. Redis writes producers without IDs if these are too old.
func (r *decoder) dedup(s *stream.Stream) {
	d := stream.Dedup{Seconds: r.Len(), Entries: r.Len()}
	var producers []*stream.Producer
	for n := r.Len(); n > 0 && !r.Failed(); n-- {
		p := &stream.Producer{Name: string(r.String())}
		seen := map[string]bool{}
		for n := r.Len(); n > 0 && !r.Failed(); n-- {
			id := stream.Produced{ID: string(r.String()), Entry: r.id()}
			if !seen[id.ID] { // Redis keeps the first one
				seen[id.ID] = true
				p.IDs = append(p.IDs, id)
			}
		}
		if len(p.IDs) > 0 {
			producers = append(producers, p)
		}
	}
	d.Added, d.Duplicates = r.Len(), r.Len()
	if !r.Failed() && !s.RestoreDedup(d, producers) {
		r.fail("what a stream remembers of its producers is out of range")
	}
}

func (r *decoder) group(s *stream.Stream, t byte) {
	name, last := r.String(), r.id()
	read := int64(0)
	if t == typeStream1 {
		read = s.Position(last)
	} else if read = int64(r.Len()); read < stream.UnknownRead {
		r.repairs.Note("a group that has read %d entries", read)
		read = stream.UnknownRead
	}
	if r.Failed() {
		return
	}
	g, ok := s.CreateGroup(name, last, read)
	if !ok {
		r.fail("a consumer group twice")
		return
	}
	// The entries are listed once for the group, and by ID for the consumer that has them.
	pending := map[stream.ID]stream.Pending{}
	for n := r.Len(); n > 0 && !r.Failed(); n-- {
		p := stream.Pending{ID: r.rawID(), DeliveredMillis: r.millis(), Deliveries: r.Len()}
		if _, twice := pending[p.ID]; twice {
			r.fail("a pending entry twice")
		}
		pending[p.ID] = p
	}
	owners := map[stream.ID]int{}
	for n := r.Len(); n > 0 && !r.Failed(); n-- {
		r.consumer(g, t, pending, owners)
	}
	if r.Failed() {
		return
	}
	without := len(pending) - len(owners)
	if t >= typeStream { // entries that consumers have given back belong to nobody
		for n := r.Len(); n > 0 && !r.Failed(); n-- {
			id := r.rawID()
			if _, ok := pending[id]; !ok || owners[id] != 0 {
				r.fail("an entry that was given back is not pending, or has a consumer")
				return
			}
			without--
		}
	}
	if without > 0 {
		r.broken("%d pending entries without a consumer", without)
	}
	if len(pending) > len(owners) {
		r.unowned(g, pending)
	}
}

// unowned assigns pending entries without a consumer to the consumer with the empty name, so that XAUTOCLAIM and XCLAIM
// find them, as they do in Redis.
func (r *decoder) unowned(g *stream.Group, pending map[stream.ID]stream.Pending) {
	c, _ := g.CreateConsumer(nil, 0)
	for _, p := range pending {
		if _, has := g.PendingAt(p.ID); !has {
			p.Consumer = c
			g.Restore(p)
		}
	}
}

func (r *decoder) consumer(g *stream.Group, t byte, pending map[stream.ID]stream.Pending, owners map[stream.ID]int) {
	name, seen := r.String(), r.millis()
	active := seen
	if t >= typeStream3 {
		active = r.millis()
	}
	if r.Failed() {
		return
	}
	c, created := g.CreateConsumer(name, seen)
	if !created {
		r.fail("Duplicate stream consumer detected")
		return
	}
	c.ActiveMillis = active
	number := len(g.Consumers()) // a different number for each consumer
	for n := r.Len(); n > 0 && !r.Failed(); n-- {
		p, ok := pending[r.rawID()]
		if !ok {
			r.fail("a consumer has an entry that is not pending")
			return
		}
		switch owner := owners[p.ID]; owner {
		case 0:
		case number:
			r.fail("a consumer has a pending entry twice")
			return
		default: // the last consumer gets it, as in Redis
			r.repairs.Note("a pending entry %v of two consumers", p.ID)
		}
		owners[p.ID] = number
		p.Consumer = c
		g.Restore(p)
	}
}
