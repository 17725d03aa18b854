package stream

import "slices"

// Image returns the stream with its groups as it is now. It can be read without the stream's lock while the stream
// changes. Both share the blocks and the tree nodes of pending entries: the stream copies them before it changes them.
// So an image takes some bytes for each block, group and consumer. The Consumer of a pending entry is the stream's, not
// the image's.
func (s *Stream) Image() *Stream {
	for i := range s.blocks {
		s.blocks[i].shared = true
	}
	c := *s
	c.blocks = slices.Clone(s.blocks)
	c.groups = make([]*Group, len(s.groups))
	for i, g := range s.groups {
		c.groups[i] = g.image()
	}
	c.dedup = s.dedup.image()
	return &c
}

func (g *Group) image() *Group {
	c := *g
	c.pending = g.pending.Copy()
	c.consumers = make([]*Consumer, len(g.consumers))
	for i, of := range g.consumers {
		own := *of
		own.pending = of.pending.Copy()
		c.consumers[i] = &own
	}
	return &c
}
