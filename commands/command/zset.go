package command

// The parameters that every family that makes sorted sets goes by.

import (
	"sync/atomic"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/zset"
)

// ZSetLimits are zset-max-listpack-entries and zset-max-listpack-value.
type ZSetLimits struct {
	entries, value *atomic.Int64
	seed           uint64
}

// ZSet returns the limits of sorted sets, declaring the parameters once.
func (c *Config) ZSet() *ZSetLimits {
	if c.zset == nil {
		c.zset = &ZSetLimits{
			entries: c.Int("zset-max-listpack-entries", zset.DefaultPackedEntriesMax, 0, 1<<62, "most members of a packed sorted set"),
			value:   c.Int("zset-max-listpack-value", zset.DefaultPackedMemberBytesMax, 0, 1<<62, "longest member of a packed sorted set"),
			seed:    engine.HashBytes([]byte("zset")),
		}
		c.Alias("zset-max-listpack-entries", "zset-max-ziplist-entries")
		c.Alias("zset-max-listpack-value", "zset-max-ziplist-value")
	}
	return c.zset
}

// Options are the limits of now.
func (l *ZSetLimits) Options() zset.Options {
	return zset.Options{
		PackedEntriesMax:     int(l.entries.Load()),
		PackedMemberBytesMax: int(l.value.Load()),
		HashSeed:             l.seed,
	}
}
