package command

// The parameters that every family that makes sorted sets goes by.

import (
	"math"
	"sync/atomic"

	"github.com/limitkv/limitkv/zset"
)

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

// Now are the limits as they are set now.
func (l *ZSetLimits) Now() zset.Limits {
	return zset.Limits{MaxPacked: int(l.entries.Load()), MaxPackedBytes: int(l.value.Load())}
}
