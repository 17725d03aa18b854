package params

// The parameters that decide how values are encoded in memory and how they are dumped. Several families use them, so they are
// declared once.

import (
	"math"
	"sync/atomic"

	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/zset"
)

// HashLimits are hash-max-listpack-entries and hash-max-listpack-value.
type HashLimits struct{ entries, value *atomic.Int64 }

// Hash returns the limits of hashes, declaring the parameters once.
func (c *Config) Hash() *HashLimits {
	if c.hash == nil {
		c.hash = &HashLimits{
			entries: c.Int("hash-max-listpack-entries", int64(hash.DefaultLimits.MaxPackedFields), 0, math.MaxInt64, "most fields of a packed hash"),
			value:   c.Memory("hash-max-listpack-value", int64(hash.DefaultLimits.MaxPackedBytes), 0, math.MaxInt64, "longest field or value of a packed hash"),
		}
		c.Alias("hash-max-listpack-entries", "hash-max-ziplist-entries")
		c.Alias("hash-max-listpack-value", "hash-max-ziplist-value")
	}
	return c.hash
}

// Now returns the present limits.
func (l *HashLimits) Now() hash.Limits {
	return hash.Limits{MaxPackedFields: int(l.entries.Load()), MaxPackedBytes: int(l.value.Load())}
}

// SetLimits are set-max-intset-entries, set-max-listpack-entries and
// set-max-listpack-value.
type SetLimits struct{ intset, entries, value *atomic.Int64 }

// Set returns the limits of sets, declaring the parameters once.
func (c *Config) Set() *SetLimits {
	if c.set == nil {
		c.set = &SetLimits{
			intset:  c.Int("set-max-intset-entries", int64(set.DefaultLimits.MaxIntset), 0, math.MaxInt64, "most members of a set of integers"),
			entries: c.Int("set-max-listpack-entries", int64(set.DefaultLimits.MaxPacked), 0, math.MaxInt64, "most members of a packed set"),
			value:   c.Int("set-max-listpack-value", int64(set.DefaultLimits.MaxPackedBytes), 0, math.MaxInt64, "longest member of a packed set"),
		}
	}
	return c.set
}

// Now returns the present limits.
func (l *SetLimits) Now() set.Limits {
	return set.Limits{
		MaxIntset:      int(l.intset.Load()),
		MaxPacked:      int(l.entries.Load()),
		MaxPackedBytes: int(l.value.Load()),
	}
}

// ListLimits is list-max-listpack-size: how many elements a node of a list can have, or, with -1 to -5, 4 to 64 KB.
type ListLimits struct {
	nodeSize *atomic.Int64
	// Large, if not 0, is the size in bytes from which an element has a node to itself (DEBUG QUICKLIST-PACKED-THRESHOLD).
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

// Now returns the present limits.
func (l *ListLimits) Now() list.Limits {
	return list.Limits{NodeSize: int(l.nodeSize.Load()), Large: int(l.Large.Load())}
}

// ZSetLimits are zset-max-listpack-entries and zset-max-listpack-value.
type ZSetLimits struct {
	entries, value *atomic.Int64
}

// ZSet returns the limits of sorted sets, declaring the parameters once.
func (c *Config) ZSet() *ZSetLimits {
	if c.zset == nil {
		c.zset = &ZSetLimits{
			entries: c.Int("zset-max-listpack-entries", int64(zset.DefaultLimits.MaxPacked), 0, math.MaxInt64, "most members of a packed sorted set"),
			value:   c.Memory("zset-max-listpack-value", int64(zset.DefaultLimits.MaxPackedBytes), 0, math.MaxInt64, "longest member of a packed sorted set"),
		}
		c.Alias("zset-max-listpack-entries", "zset-max-ziplist-entries")
		c.Alias("zset-max-listpack-value", "zset-max-ziplist-value")
	}
	return c.zset
}

// Now returns the present limits.
func (l *ZSetLimits) Now() zset.Limits {
	return zset.Limits{MaxPacked: int(l.entries.Load()), MaxPackedBytes: int(l.value.Load())}
}

// Compression is rdbcompression: DUMP compresses strings if that makes them shorter.
func (c *Config) Compression() *atomic.Bool {
	if c.compression == nil {
		c.compression = c.Bool("rdbcompression", true, "compress strings that are dumped")
	}
	return c.compression
}
