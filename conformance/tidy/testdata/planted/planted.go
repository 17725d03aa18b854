// Package planted goes round the gate in all ways that the test is to find, and keeps to it in some that look alike. It is
// no part of any program.
package planted

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/stream"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/zset"
)

var (
	kept   *list.List
	groups = map[string]*stream.Group{}
	queues chan *delayqueue.Queue
	find   func(key string) any
)

// keeper has values that are the keyspace's.
type keeper struct {
	z    *zset.Set
	last engine.Entry
}

func inAVariable() {
	kept.Push([][]byte{[]byte("x")}, true, list.Limits{}) // want "that is everybody's"
}

func inAMap(name string) {
	g := groups[name]
	g.LastID = stream.MaxID // want "assignment changes a value that is everybody's"
}

func byAFunction(key string) {
	if h, ok := find(key).(*hash.Hash); ok {
		h.Delete([]byte("f")) // want "Delete changes a value that is everybody's"
	}
}

// removes is right as long as whoever calls it has a transaction.
func removes(z *zset.Set, member []byte) { again(z, member) }

func again(z *zset.Set, member []byte) { z.Remove(member) }

// ofKeeper too.
func (k *keeper) ofKeeper() {
	removes(k.z, []byte("m"))
	k.last.SetLastAccess(1)
}

var one keeper

func throughOthers() {
	one.ofKeeper() // want "ofKeeper changes a value that is everybody's"
}

func asAValue() func(*zset.Set, []byte) {
	return removes // want "removes, which changes what it is given, is passed on"
}

func uncommitted(ks *engine.Keyspace, set engine.LockSet, key []byte) {
	v := &engine.View{KS: ks, Held: set} // want "a transaction is begun"
	v.Delete(key)
	ks.Unlock(set) // want "locks are taken or let go"
}

func whileLooking(c *command.Ctx, set engine.LockSet, key []byte) {
	c.KS.Inspect(set, func(r *engine.Reader) {
		if q, ok := shows(r, key).Object().(*delayqueue.Queue); ok {
			q.Configure(delayqueue.Settings{}) // want "that is only shown"
		}
	})
}

func shows(r *engine.Reader, key []byte) engine.Entry { return r.Find(key) }

func elsewhere(c *command.Ctx, key []byte) {
	z := c.EditZSet(key, c.GetWrite(key))
	go func() {
		z.Remove(key) // want "at another time"
	}()
	go removes(z, key) // want "at another time"
	c.KS.Sched.At(1, func(int64) {
		again(z, key) // want "at another time"
	})
}

func inBytes(key string) {
	if p, ok := find(key).([]byte); ok {
		_ = limiter.CountRefused(p) // want "CountRefused changes a value that is everybody's"
	}
}

// right does the same in a transaction, and with what is nobody's yet.
func right(c *command.Ctx, key []byte) {
	z := c.EditZSet(key, c.GetWrite(key))
	removes(z, key)
	k := keeper{z: z}
	k.ofKeeper()
	each(z, func(member []byte) { z.Remove(member) })
}

func each(z *zset.Set, fn func(member []byte)) {
	z.Ascend(0, z.Len(), func(member []byte, _ float64) bool { fn(member); return true })
}

func fresh() *delayqueue.Queue {
	q := delayqueue.New()
	q.Configure(delayqueue.Settings{})
	l := &list.List{}
	l.Push([][]byte{[]byte("x")}, true, list.Limits{})
	return q
}
