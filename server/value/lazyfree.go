package value

// Values that Redis would free on a background thread, for its counters in INFO. Here the garbage collector frees everything,
// in the background; the counters have the same values for the same commands.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/lock"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/engine/stream"
	"github.com/limitkv/limitkv/zset"
)

// lazyEffortMin is the effort from which Redis frees a value in the background.
const lazyEffortMin = 65

// LazyEffort returns about how many pieces of memory a value has in Redis, 0 if there are so few that UNLINK frees them at
// once.
func LazyEffort(e engine.Entry) int {
	if n := freeEffort(e); n >= lazyEffortMin {
		return n
	}
	return 0
}

func freeEffort(e engine.Entry) int {
	switch o := e.Object().(type) {
	case *list.List:
		n := 0
		o.Nodes(func([]byte, bool) { n++ })
		return n
	case *set.Set:
		if o.Encoding() == "hashtable" {
			return o.Len()
		}
	case *zset.Set:
		if o.Encoding() == "skiplist" {
			return o.Len()
		}
	case *hash.Hash:
		if o.Encoding() == "hashtable" {
			return o.Len()
		}
	case *stream.Stream:
		n := o.RadixNodes()
		if groups := o.Groups(); len(groups) > 0 {
			n += len(groups) * (1 + groups[0].Pending())
		}
		return n
	case *delayqueue.Queue:
		return o.Len()
	case *lock.Lock:
		return o.Len()
	case *limiter.Named:
		return o.Len()
	}
	return 1
}
