package list

import "slices"

// Image returns the list, which must be a quicklist, as it is now. It can be read without the list's lock while the
// list changes. Both share the nodes: the list copies a node before it changes it. So an image takes some bytes for
// each node.
func (l *List) Image() List {
	for i := range l.q.nodes.n {
		l.q.nodes.at(i).shared = true
	}
	q := *l.q
	q.nodes.ring = slices.Clone(q.nodes.ring)
	return List{q: &q}
}
