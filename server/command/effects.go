package command

// The effects of what the keyspace does by itself, in Redis's words.

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

// Removed is the word for a removal that Redis would leave to a thread of its own
// if lazy says so.
func Removed(lazy bool) []byte {
	if lazy {
		return wordUnlink
	}
	return wordDel
}

// EffectRemoved says that the running command's effect is that a key is gone which the server removes for it.
func (c *Ctx) EffectRemoved(key []byte) { c.Effect(Removed(c.Server.LazyServerDel.Load()), key) }

// CauseEffects makes the keyspace tell what it does by itself. lazyExpire and
// lazyEvict say whether Redis would free such keys later; image writes the dump of
// a value.
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

// Number is an integer as an effect's argument.
func Number(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

// EffectNumber is Effect for a word, a key and a number.
func (c *Ctx) EffectNumber(word string, key []byte, n int64) {
	if c.Logging() {
		c.Effect([]byte(word), key, Number(n))
	}
}

// EffectGone says that the running command's effect is that a key is gone because
// its time is over.
func (c *Ctx) EffectGone(key []byte) {
	c.NoEffect()
	if c.Logging() {
		c.KS.Causes.Gone(&c.View, key, false)
	}
}

// EffectMoved says that the running command's effects are that some keys are gone, and then what a key is now. It is for
// values of types that Redis does not have: replicas that know Redis's types alone are told only what is gone.
func (c *Ctx) EffectMoved(now []byte, gone ...[]byte) {
	c.NoEffect()
	if c.Logging() {
		for _, key := range gone {
			c.Effect(wordDel, key)
		}
		c.KS.Causes.Image(&c.View, now)
	}
}

// EffectImage says that the running command's effect is what a key is now.
func (c *Ctx) EffectImage(key []byte) {
	c.NoEffect()
	if c.Logging() {
		c.KS.Causes.Image(&c.View, key)
	}
}
