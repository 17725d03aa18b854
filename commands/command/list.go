package command

// The parameters that every family that makes lists goes by.

import (
	"sync/atomic"

	"github.com/limitkv/limitkv/engine/list"
)

// ListLimits are list-max-listpack-size: how many elements, or -1 to -5 for 4
// to 64 KB, a node of a list holds.
type ListLimits struct {
	nodeSize *atomic.Int64
	// Large, if not 0, is from how many bytes on an element has a node to itself
	// (DEBUG QUICKLIST-PACKED-THRESHOLD).
	Large atomic.Int64
}

// List returns the limits of lists, declaring the parameters once.
func (c *Config) List() *ListLimits {
	if c.list == nil {
		c.list = &ListLimits{
			nodeSize: c.Int("list-max-listpack-size", int64(list.DefaultLimits.NodeSize), -1<<31, 1<<31-1, "elements, or -1 to -5 for 4 to 64 KB, in a node of a list"),
		}
		c.Alias("list-max-listpack-size", "list-max-ziplist-size")
	}
	return c.list
}

// Now are the limits as they are set now.
func (l *ListLimits) Now() list.Limits {
	return list.Limits{NodeSize: int(l.nodeSize.Load()), Large: int(l.Large.Load())}
}
