package debug

// DEBUG DIGEST and DIGEST-VALUE: a number for all keys, or for one. It is the same for the same values, on a real Redis too.
// Where order does not matter, parts are joined with XOR.

import (
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/lock"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/engine/stream"
	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/zset"
)

type digest [sha1.Size]byte

// add joins a part whose order does not matter.
func (d *digest) add(part []byte) {
	for i, b := range sha1.Sum(part) {
		d[i] ^= b
	}
}

// mix joins a part whose order matters.
func (d *digest) mix(part []byte) {
	d.add(part)
	*d = sha1.Sum(d[:])
}

// mixNumber joins a number, as Redis has it in memory.
func (d *digest) mixNumber(n int) {
	d.mix(binary.BigEndian.AppendUint32(nil, uint32(n)))
}

// redisTypes are Redis's numbers of its types. Kinds that Redis does not have come after them.
var redisTypes = map[engine.Kind]int{
	engine.KindString: 0, engine.KindList: 1, engine.KindSet: 2, engine.KindZSet: 3, engine.KindHash: 4, engine.KindStream: 6,
}

// value joins an entry's value and whether it has a deadline.
func (d *digest) value(e engine.Entry) {
	kind, ok := redisTypes[e.Kind()]
	if !ok {
		kind = 100 + int(e.Kind())
	}
	d.mixNumber(kind)
	switch o := e.Object().(type) {
	case *list.List:
		for it := o.Iter(0, false); it.Next(); {
			d.mix(it.Value())
		}
	case *set.Set:
		for it := o.Iter(); it.Next(); {
			d.add(it.Member())
		}
	case *zset.Set:
		o.Ascend(0, o.Len(), func(member []byte, score float64) bool {
			var part digest
			part.mix(member)
			part.mix(appendScore(nil, score))
			d.add(part[:])
			return true
		})
	case *hash.Hash:
		for it := o.Iter(); it.Next(); {
			var part digest
			part.mix(it.Field())
			part.mix(it.Value())
			if it.Deadline() != 0 {
				part.add([]byte("!!hexpire!!"))
			}
			d.add(part[:])
		}
	case *stream.Stream:
		for it := o.Range(stream.ID{}, stream.MaxID, false); it.Next(); {
			d.mix(fmt.Appendf(nil, "%d.%d", it.ID().Millis, it.ID().Seq))
			for it.NextPair() {
				d.mix(it.Field())
				d.mix(it.Value())
			}
		}
	case *delayqueue.Queue:
		o.Peek(delayqueue.Any, 0, math.MaxInt, func(x delayqueue.Entry) {
			var part digest
			part.mix(x.ID)
			part.mix(x.Payload)
			part.mix(strconv.AppendInt(nil, x.DueMicros, 10))
			if extra := x.Extra(); extra.Append(nil) != nil {
				part.mix(extra.Append(nil))
			}
			d.add(part[:])
		})
		o.Each(delayqueue.Behind, func(x delayqueue.Saved) {
			var part digest
			part.mix([]byte("behind"))
			part.mix(x.ID)
			part.mix(x.Payload)
			part.mix(strconv.AppendInt(nil, x.DueMicros, 10))
			part.mix(x.Extra)
			d.add(part[:])
		})
	case *limiter.Named:
		d.mix(limiter.WithoutRefused(o.State()))
		o.Each(func(id, saved []byte) {
			var part digest
			part.mix(id)
			part.mix(saved)
			d.add(part[:])
		})
	default:
		if e.Kind() == engine.KindLimiter { // refusals are counted without an effect, so they are left out
			d.mix(limiter.WithoutRefused(e.Bytes(nil)))
			break
		}
		if e.Kind() != engine.KindLock {
			d.mix(e.Bytes(nil))
			break
		}
		var work lock.Lock
		e.Lock(&work).Each(func(h lock.Holder) bool {
			d.mix(h.Owner)
			d.mix(strconv.AppendInt(nil, h.Fence, 10))
			d.mix(strconv.AppendInt(nil, h.UntilMicros, 10))
			return true
		})
	}
	if e.Deadline() != 0 {
		d.add([]byte("!!expire!!"))
	}
}

// appendScore appends a score with the digits that identify it, an integer too.
func appendScore(dst []byte, score float64) []byte {
	if math.IsInf(score, 0) {
		return number.AppendDouble(dst, score)
	}
	return number.AppendFinite(dst, score)
}

// debugDigest replies the digest of all databases, including expired entries that are still there.
func debugDigest(_ *family, c *command.Ctx) {
	var all digest
	db := c.DB
	for c.DB = range c.KS.Databases() {
		if c.Count() == 0 {
			continue
		}
		all.mixNumber(c.DB)
		c.EachStored(func(e engine.Entry) {
			var d digest
			d.mix(e.Key())
			d.value(e)
			all.add(d[:])
		})
	}
	c.DB = db
	c.Status(fmt.Sprintf("%x", all))
}

// debugDigestValue replies the digests of single values; that of a missing key is zero.
func debugDigestValue(_ *family, c *command.Ctx) {
	c.Array(len(c.Args) - 2)
	for _, key := range c.Args[2:] {
		var d digest
		if e := c.Find(key); e.Ok() {
			d.value(e)
		}
		c.Status(fmt.Sprintf("%x", d))
	}
}
