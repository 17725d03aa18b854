package command

// The effects of changes that the keyspace makes by itself, as Redis's commands.

import (
	"strconv"

	"github.com/limitkv/limitkv/engine"
)

var (
	wordDel    = []byte("DEL")
	wordUnlink = []byte("UNLINK")
	wordHDel   = []byte("HDEL")
	wordFlush  = []byte("FLUSHALL")
)

// Removed returns the command for a removal: UNLINK if Redis would free the value in the background, as lazy says, else DEL.
func Removed(lazy bool) []byte {
	if lazy {
		return wordUnlink
	}
	return wordDel
}

// EffectRemoved sets the running command's effect: the removal of a key by the server.
func (c *Ctx) EffectRemoved(key []byte) { c.Effect(Removed(c.Server.LazyServerDel.Load()), key) }

// CauseEffects registers the effects of changes that the keyspace makes by itself. lazyExpire and lazyEvict tell whether Redis
// would free such keys in the background. image appends the dump of a value.
func (s *Server) CauseEffects(lazyExpire, lazyEvict func() bool, image func(dst []byte, e engine.Entry) []byte) {
	c := &s.Keyspace.Causes
	c.Gone = func(v *engine.View, key []byte, evicted bool) {
		lazy := lazyExpire
		if evicted {
			lazy = lazyEvict
		}
		v.LogSystem(Removed(lazy()), key)
	}
	c.FieldGone = func(v *engine.View, key, field []byte) { v.LogSystem(wordHDel, key, field) }
	c.Image = func(v *engine.View, key []byte) {
		e := v.Find(key)
		if !e.Ok() {
			v.LogBefore(wordDel, key)
			return
		}
		payload := v.Scratch()
		*payload = image((*payload)[:0], e)
		w := v.Words(6)
		w.Text("RESTORE")
		w.Bytes(key)
		w.Int(e.Deadline())
		w.Bytes(*payload)
		w.Text("REPLACE")
		w.Text("ABSTTL")
		w.End()
	}
	c.Replaced = func(v *engine.View) {
		v.LogBefore(wordFlush)
		for v.DB = range v.KS.Databases() {
			v.EachStored(func(e engine.Entry) { c.Image(v, e.Key()) })
		}
	}
}

// Number formats an integer as an effect's argument.
func Number(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

// EffectNumber is Effect with a word, a key and a number.
func (c *Ctx) EffectNumber(word string, key []byte, n int64) {
	if c.Logging() {
		c.Effect([]byte(word), key, Number(n))
	}
}

// EffectGone sets the running command's effect: the removal of a key whose deadline has passed.
func (c *Ctx) EffectGone(key []byte) {
	c.NoEffect()
	if c.Logging() {
		c.KS.Causes.Gone(&c.View, key, false)
	}
}

// EffectMoved sets the running command's effects: the removal of some keys, and then the new value of a key. It is for types
// that Redis does not have. Replicas that know only Redis's types receive only the removals.
func (c *Ctx) EffectMoved(now []byte, gone ...[]byte) {
	c.NoEffect()
	if c.Logging() {
		for _, key := range gone {
			c.Effect(wordDel, key)
		}
		c.KS.Causes.Image(&c.View, now)
	}
}

// EffectImage sets the running command's effect: the new value of a key.
func (c *Ctx) EffectImage(key []byte) {
	c.NoEffect()
	if c.Logging() {
		c.KS.Causes.Image(&c.View, key)
	}
}
