package rdb

// Streams: their blocks as they are, what they know of the entries they had,
// and their groups.

import (
	"encoding/binary"

	"github.com/limitkv/limitkv/engine/stream"
)

const idBytes = 16

// rawID writes an ID as Redis's trees have it.
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
		if t != typeStream1 {
			w.len(uint64(g.EntriesRead))
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
			if t == typeStream {
				w.millis(c.ActiveMillis)
			}
			w.len(uint64(c.Pending()))
			g.EachPendingOf(c, stream.MinID, func(p stream.Pending) bool {
				w.rawID(p.ID)
				return w.room()
			})
		}
	}
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
	length, last := r.Len(), r.id()
	var deleted stream.ID
	added := length
	if t != typeStream1 {
		r.id() // the first, which the blocks tell
		deleted = r.id()
		added = r.Len()
	}
	if r.Failed() {
		return nil
	}
	s, err := stream.Restore(blocks, last, deleted, added)
	if err != nil || uint64(s.Len()) != length {
		r.fail(damaged("Stream listpack"))
		return nil
	}
	for n := r.Len(); n > 0 && !r.Failed(); n-- {
		r.group(&s, t)
	}
	return &s
}

func (r *decoder) group(s *stream.Stream, t byte) {
	name, last := r.String(), r.id()
	read := int64(0)
	if t == typeStream1 {
		read = s.Position(last)
	} else {
		read = int64(r.Len())
	}
	if r.Failed() {
		return
	}
	g, ok := s.CreateGroup(name, last, read)
	if !ok {
		r.fail("a consumer group twice")
		return
	}
	// The entries are listed once for the group, and by their IDs for each
	// consumer that has them.
	pending := map[stream.ID]stream.Pending{}
	for n := r.Len(); n > 0 && !r.Failed(); n-- {
		p := stream.Pending{ID: r.rawID(), DeliveredMillis: r.millis(), Deliveries: r.Len()}
		if _, twice := pending[p.ID]; twice {
			r.fail("a pending entry twice")
		}
		pending[p.ID] = p
	}
	for n := r.Len(); n > 0 && !r.Failed(); n-- {
		r.consumer(g, t, pending)
	}
	if len(pending) != 0 { // nobody has them
		r.fail("a pending entry without a consumer")
	}
}

func (r *decoder) consumer(g *stream.Group, t byte, pending map[stream.ID]stream.Pending) {
	name, seen := r.String(), r.millis()
	active := seen
	if t == typeStream {
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
	for n := r.Len(); n > 0 && !r.Failed(); n-- {
		p, ok := pending[r.rawID()]
		if !ok {
			r.fail("a consumer has an entry that is not pending")
			return
		}
		delete(pending, p.ID)
		p.Consumer = c
		g.Restore(p)
	}
}
