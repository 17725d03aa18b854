package command

// What the commands share that take elements from the first of several keys
// that has any, waiting for them or not: of lists and of sorted sets.

import "github.com/limitkv/limitkv/engine"

// MPop is numkeys key ... LEFT|RIGHT [COUNT count], or MIN|MAX.
type MPop struct {
	Keys   [][]byte
	Second bool // the second of the two words: the tail, the highest
	Count  int64
}

// ParseMPop reads it from an argument on. It replies the error and returns
// false if there is one.
func ParseMPop(c *Ctx, from int, first, second string) (q MPop, ok bool) {
	const errKeys, errCount = "ERR numkeys should be greater than 0", "ERR count should be greater than 0"
	q.Count = 1
	a := c.Cursor(from)
	n := a.IntOr(errKeys)
	if a.Err() == "" && n <= 0 {
		a.Fail(errKeys)
	}
	if a.Err() == "" && n >= int64(a.Left()) { // the word comes behind the keys
		a.Syntax()
	}
	if a.Failed(c) {
		return q, false
	}
	for range n {
		q.Keys = append(q.Keys, a.Bytes())
	}
	if !a.Is(first) {
		if q.Second = a.Is(second); !q.Second {
			a.Syntax()
		}
	}
	for counted := false; a.More(); counted = true {
		if counted || !a.IsWith("COUNT", 1) {
			a.Syntax()
			break
		}
		if q.Count = a.IntOr(errCount); q.Count <= 0 {
			a.Fail(errCount)
		}
	}
	return q, !a.Failed(c)
}

// First finds the first key that exists and must be of the kind. done is set
// when it replied the error for one that is not.
func (c *Ctx) First(keys [][]byte, kind engine.Kind) (key []byte, e engine.Entry, done bool) {
	for _, key := range keys {
		e, ok := c.LookupWrite(key, kind)
		if !ok {
			return nil, e, true
		}
		if e.Ok() {
			return key, e, false
		}
	}
	return nil, engine.Entry{}, false
}

// TakeOrWait takes from the first key that exists, and waits for one if there
// is none. take replies; it may run later, with another Ctx.
func (c *Ctx) TakeOrWait(keys [][]byte, kind engine.Kind, deadline int64, take func(c *Ctx, key []byte, e engine.Entry)) {
	key, e, done := c.First(keys, kind)
	switch {
	case done:
	case e.Ok():
		take(c, key, e)
	case !c.CanBlock():
		c.NullArray()
	default:
		c.Block(Wait{
			Keys:     keys,
			Kind:     kind,
			Deadline: deadline,
			Serve: func(c *Ctx, key []byte) (engine.Served, int64) {
				e := c.GetWrite(key)
				switch {
				case !e.Ok():
					return engine.ServedHold, 0
				case e.Kind() != kind:
					return engine.ServedSkip, 0 // those behind may wait for this kind
				}
				take(c, key, e)
				return engine.ServedDone, 0
			},
		})
	}
}
