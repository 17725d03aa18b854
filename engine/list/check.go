package list

import (
	"fmt"

	"github.com/limitkv/limitkv/engine/packed"
)

// Check verifies what must hold between any two calls; tests run it after each step.
func (l *List) Check() error {
	if l.q == nil {
		return packed.Check(l.lp)
	}
	if l.lp != nil {
		return fmt.Errorf("a quicklist keeps a listpack")
	}
	count := 0
	for i := range l.q.nodes.n {
		n := l.q.nodes.at(i)
		count += n.count
		if n.plain {
			if n.count != 1 {
				return fmt.Errorf("node %d: %d elements, %d bytes, plain", i, n.count, len(n.data))
			}
			continue
		}
		if err := packed.Check(n.data); err != nil {
			return fmt.Errorf("node %d: %w", i, err)
		}
		if n.count == 0 || n.count != packed.Count(n.data) {
			return fmt.Errorf("node %d: %d elements, %d counted", i, n.count, packed.Count(n.data))
		}
	}
	if count != l.q.count {
		return fmt.Errorf("%d elements, %d counted", count, l.q.count)
	}
	for i := l.q.nodes.n; i < len(l.q.nodes.ring); i++ {
		if l.q.nodes.at(i).data != nil {
			return fmt.Errorf("a node beyond the last is kept")
		}
	}
	return nil
}
