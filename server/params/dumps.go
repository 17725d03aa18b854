package params

// The parameters of Redis's dump format.

import (
	"strings"
	"sync/atomic"

	"github.com/limitkv/limitkv/engine/rdb"
	"github.com/limitkv/limitkv/resp/number"
)

// Dumps holds the parameters for writing and reading values in Redis's dump format.
type Dumps struct {
	compress *atomic.Bool
	maxBulk  *atomic.Int64
	list     *ListLimits
	hash     *HashLimits
	set      *SetLimits
	zset     *ZSetLimits
	config   *Config
}

// Dumps returns the settings.
func (c *Config) Dumps() *Dumps {
	return &Dumps{c.Compression(), c.MaxBulk(), c.List(), c.Hash(), c.Set(), c.ZSet(), c}
}

// Format returns how values are written.
func (d *Dumps) Format() rdb.Format {
	return rdb.Format{Compress: d.compress.Load(), AppendScore: number.AppendDouble}
}

// FileFormat returns how files are written. They have a key's last access or its frequency if maxmemory-policy needs it.
func (d *Dumps) FileFormat() rdb.Format {
	format := d.Format()
	switch policy := d.config.Find("maxmemory-policy").Get(); {
	case strings.HasSuffix(policy, "-lru"):
		format.Usage = rdb.IdleUsage
	case strings.HasSuffix(policy, "-lfu"):
		format.Usage = rdb.FreqUsage
	}
	return format
}

// Limits returns what decides the encoding of values that are read.
func (d *Dumps) Limits() rdb.Limits {
	return rdb.Limits{
		Hash:      d.hash.Now(),
		List:      d.list.Now(),
		Set:       d.set.Now(),
		ZSet:      d.zset.Now(),
		MaxString: int(d.maxBulk.Load()),
		Unchecked: d.config.SkipChecksums.Load(),
		Sanitize:  d.config.Value("sanitize-dump-payload") == "yes",
	}
}
