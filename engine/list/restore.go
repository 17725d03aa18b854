package list

// Restoring nodes as they are, for RESTORE.

import (
	"errors"

	"github.com/limitkv/limitkv/engine/packed"
)

// ErrCorrupt is returned by Restore for a node that is no listpack.
var ErrCorrupt = errors.New("list: corrupted node")

// Node is a node of a list, as Nodes passes it: a listpack or, if plain, one element.
type Node struct {
	Data  []byte
	Plain bool
}

// Restore returns a list of these nodes, which it verifies and copies, without empty ones. As in Redis the nodes stay
// as they are, however large, but a single node may become a list that is a listpack.
func Restore(from []Node, lim Limits) (List, error) {
	q := &quicklist{lim: lim}
	for _, n := range from {
		x := node{data: append([]byte(nil), n.Data...), count: 1, plain: n.Plain}
		if !n.Plain {
			if n.Data == nil || packed.Check(n.Data) != nil {
				return List{}, ErrCorrupt
			}
			if x.count = packed.Count(x.data); x.count == 0 {
				continue
			}
		}
		q.nodes.insert(q.nodes.n, x)
		q.count += x.count
	}
	l := List{q: q}
	l.shorten(lim, 1)
	return l, nil
}
