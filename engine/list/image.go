package list

import "slices"

// Image returns the list, a quicklist, as it is now, for whoever reads it while the list changes, without its lock. The
// nodes are the list's own: a node that changes is copied first. So an image takes some bytes for each node.
func (l *List) Image() List {
	for i := range l.q.nodes.n {
		l.q.nodes.at(i).shared = true
	}
	q := *l.q
	q.nodes.ring = slices.Clone(q.nodes.ring)
	return List{q: &q}
}
