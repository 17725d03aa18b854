package command

// Taking elements from an end of the first of several keys that exists, with or without waiting: shared by lists and sorted
// sets.

import "github.com/limitkv/limitkv/engine"

// Ends is a kind of value whose elements can be taken from either end.
type Ends struct {
	Kind engine.Kind
	// Words are the names of the two ends: LEFT and RIGHT, MIN and MAX.
	Words [2]string
	// Take takes the elements from a value that is not empty, and replies them with the key.
	Take func(c *Ctx, key []byte, e engine.Entry, p *Pop)
}

// Pop is a request to take elements.
type Pop struct {
	*Ends
	Far bool // the second of the two ends
	// Counted: up to Count elements are taken, and replied as an array.
	Counted bool
	Count   int64

	first, keys int // the position of the first key among the arguments, and the number of keys
}

// parse parses numkeys key ... word [COUNT count], starting at an argument. If there is an error, it replies that and returns
// false.
func (p *Pop) parse(c *Ctx, from int) bool {
	const errKeys, errCount = "ERR numkeys should be greater than 0", "ERR count should be greater than 0"
	p.Counted, p.Count = true, 1
	a := c.Cursor(from)
	n := a.IntOr(errKeys)
	if a.Err() == "" && n <= 0 {
		a.Fail(errKeys)
	}
	if a.Err() == "" && n >= int64(a.Left()) { // the word follows the keys
		a.Syntax()
	}
	if a.Failed(c) {
		return false
	}
	p.first, p.keys = from+1, int(n)
	a = c.Cursor(p.first + p.keys)
	if !a.Is(p.Words[0]) {
		if p.Far = a.Is(p.Words[1]); !p.Far {
			a.Syntax()
		}
	}
	for counted := false; a.More(); counted = true {
		if counted || !a.IsWith("COUNT", 1) {
			a.Syntax()
			break
		}
		if p.Count = a.IntOr(errCount); p.Count <= 0 {
			a.Fail(errCount)
		}
	}
	return !a.Failed(c)
}

// MPop is the handler of LMPOP and ZMPOP.
func (e *Ends) MPop(c *Ctx) {
	p := Pop{Ends: e}
	if p.parse(c, 1) && !p.taken(c) {
		c.NullArray()
	}
}

// BlockingMPop is the handler of BLMPOP and BZMPOP.
func (e *Ends) BlockingMPop(c *Ctx) {
	p := Pop{Ends: e}
	if p.parse(c, 2) {
		p.takeOrWait(c, 1)
	}
}

// BlockingPop returns the handler of BLPOP and the others that take one element.
func (e *Ends) BlockingPop(far bool) func(c *Ctx) {
	return func(c *Ctx) {
		last := len(c.Args) - 1
		p := Pop{Ends: e, Far: far, Count: 1, first: 1, keys: last - 1}
		p.takeOrWait(c, last)
	}
}

// of returns the keys among the arguments.
func (p *Pop) of(args [][]byte) [][]byte { return args[p.first : p.first+p.keys] }

// taken takes from the first key that exists. If there is none, it replies nothing and reports false.
func (p *Pop) taken(c *Ctx) bool {
	for _, key := range p.of(c.Args) {
		if !c.Held.Covers(key) {
			continue // when a wait is served, only keys that were made ready are locked
		}
		e, ok := c.LookupWrite(key, p.Kind)
		if !ok {
			return true // the error is replied
		}
		if e.Ok() {
			p.Take(c, key, e, p)
			return true
		}
	}
	return false
}

// takeOrWait takes from the first key that exists, and waits if there is none. The time-out is the argument at timeout.
func (p *Pop) takeOrWait(c *Ctx, timeout int) {
	a := c.Cursor(timeout)
	deadline := a.Timeout(c)
	switch {
	case a.Failed(c), p.taken(c):
	case !c.CanBlock():
		c.NullArray()
	default:
		kept := *p
		w := c.NewWait(&kept, p.Kind, deadline)
		if w.Keys = p.of(w.Args); len(w.Keys) > 1 {
			w.Order = engine.OrderKeys
		}
		c.Block(w)
	}
}

// Try runs the command again when a key gets a value of the kind, as Redis does. The first of its keys that exists counts, not
// the one that got a value first; if it has another kind, that is an error.
func (p *Pop) Try(c *Ctx, key []byte) (engine.Served, int64) {
	return TryKind(c, key, p.Kind, func(engine.Entry) { p.taken(c) })
}

// TryKind serves a wait for a value of a kind.
func TryKind(c *Ctx, key []byte, kind engine.Kind, take func(e engine.Entry)) (engine.Served, int64) {
	e := c.GetWrite(key)
	switch {
	case !e.Ok():
		return engine.ServedHold, 0
	case e.Kind() != kind:
		return engine.ServedSkip, 0 // the waits behind this one may be for this kind
	}
	take(e)
	return engine.ServedDone, 0
}
