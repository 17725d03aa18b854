package command

// The parameter that every family that makes lists goes by.

import (
	"sync/atomic"

	"github.com/limitkv/limitkv/engine/list"
)

// ListNodeSize is list-max-listpack-size: how many elements, or -1 to -5 for 4
// to 64 KB, a node of a list holds. It is declared once.
func (c *Config) ListNodeSize() *atomic.Int64 {
	if c.listNodeSize == nil {
		c.listNodeSize = c.Int("list-max-listpack-size", int64(list.DefaultLimits.NodeSize), -1<<31, 1<<31-1, "elements, or -1 to -5 for 4 to 64 KB, in a node of a list")
		c.Alias("list-max-listpack-size", "list-max-ziplist-size")
	}
	return c.listNodeSize
}
