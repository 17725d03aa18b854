package value

// What Redis hands to a thread of its own to free, and counts. Here the garbage
// collector frees everything, later and beside the commands; the count tells the
// same of what clients do.

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

// lazyEffortMin is the effort from which on Redis frees a value so.
const lazyEffortMin = 65

// LazyEffort is how many pieces of memory a value is in Redis, about, 0 if these
// are so few that UNLINK does not leave freeing them to others.
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
