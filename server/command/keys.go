package command

// Finding the keys among a command's arguments. The table compiles each row's key specs into a plan. Most commands have one
// range, for which a few comparisons are enough.

import (
	"strconv"

	"github.com/limitkv/limitkv/server/hashslot"
)

type keyPlan struct {
	simple            bool // one spec, a range that begins at an index
	first, last, step int  // last relative to first, or negative from the end
	none              bool
	count, counted    int // the positions of the number of keys and of the first key, if one spec counts its keys
}

func planKeys(c *Command) keyPlan {
	if len(c.Keys) == 0 && c.GetKeys == nil {
		return keyPlan{none: true}
	}
	if len(c.Keys) == 1 && c.GetKeys == nil {
		k := c.Keys[0]
		if k.Keyword == "" && !k.Unknown && !k.Numbered && k.Limit <= 1 && k.Flags&NotKey == 0 {
			return keyPlan{simple: true, first: k.Index, last: k.Last, step: k.Step}
		}
		if k.Keyword == "" && !k.Unknown && k.Numbered && k.Flags&NotKey == 0 {
			return keyPlan{count: k.Index + k.NumAt, counted: k.Index + k.FirstAt}
		}
	}
	return keyPlan{}
}

// HasKeys tells whether the command can have keys.
func (c *Command) HasKeys() bool { return !c.plan.none }

// SoleKey returns the position of the key if there is exactly one, which the row names by its index, else 0. This case is the
// fast path.
func (c *Command) SoleKey(args [][]byte) int {
	if p := &c.plan; p.simple && p.first < len(args) &&
		(p.last == 0 || p.last < 0 && len(args)+p.last < p.first+p.step) {
		return p.first
	}
	return 0
}

// FirstKey returns the position of the first key if it is fixed, else 0. It is for prefetching, and does not check the other
// arguments.
func (c *Command) FirstKey(args [][]byte) int {
	switch p := &c.plan; {
	case p.simple && p.first < len(args):
		return p.first
	case p.counted > 0 && p.counted < len(args) && string(args[p.count]) != "0":
		return p.counted
	}
	return 0
}

// EachKey calls fn with the position of every key among the arguments. It reports false if the arguments contradict the
// command's key specs, such as a wrong number of keys. The handler then replies the error.
func (c *Command) EachKey(args [][]byte, fn func(pos int)) bool {
	p := &c.plan
	if p.none {
		return true
	}
	if p.simple {
		last := p.first + p.last
		if p.last < 0 {
			last = len(args) + p.last
		}
		for i := p.first; i <= last && i < len(args); i += p.step {
			fn(i)
		}
		return true
	}
	if c.GetKeys != nil {
		for _, i := range c.GetKeys(args) {
			fn(i)
		}
		return true
	}
	ok := true
	for i := range c.Keys {
		if c.Keys[i].Flags&NotKey == 0 && !c.Keys[i].each(args, fn) {
			ok = false
		}
	}
	return ok
}

// EachKeyFlags is EachKey with the flags of each key.
func (c *Command) EachKeyFlags(args [][]byte, fn func(pos int, flags KeyFlags)) bool {
	if c.GetKeys != nil {
		for _, i := range c.GetKeys(args) {
			flags := KeyFlags(0)
			if len(c.Keys) > 0 {
				flags = c.Keys[0].Flags
			}
			if c.KeyFlags != nil {
				flags = c.KeyFlags(args, i)
			}
			fn(i, flags)
		}
		return true
	}
	ok := true
	for i := range c.Keys {
		k := &c.Keys[i]
		if k.Flags&NotKey != 0 {
			continue
		}
		ok = k.each(args, func(pos int) {
			flags := k.Flags
			if c.KeyFlags != nil {
				flags = c.KeyFlags(args, pos)
			}
			fn(pos, flags)
		}) && ok
	}
	return ok
}

// each calls fn with the positions that the spec describes.
func (k *KeySpec) each(args [][]byte, fn func(pos int)) bool {
	if k.Unknown {
		return true
	}
	first := k.Index
	if k.Keyword != "" {
		if first = k.Seek(args); first < 0 {
			return true
		}
	}
	if first >= len(args) {
		return false
	}
	if k.Numbered {
		at := first + k.NumAt
		if at >= len(args) {
			return false
		}
		n, err := strconv.Atoi(string(args[at]))
		start := first + k.FirstAt
		if err != nil || n < 0 || n > len(args) || start+(n-1)*k.Step >= len(args) {
			return false
		}
		for i := range n {
			fn(start + i*k.Step)
		}
		return true
	}
	last := first + k.Last
	if k.Last < 0 {
		last = len(args) + k.Last
		if k.Limit > 1 {
			last = first + (len(args)-first)/k.Limit - 1
		}
	}
	for i := first; i <= last && i < len(args); i += k.Step {
		fn(i)
	}
	return true
}

// LegacyRange returns the first key, last key and step in the old fields of COMMAND INFO. They cover the specs that are plain
// ranges.
func (c *Command) LegacyRange() (first, last, step int) {
	for i := range c.Keys {
		k := &c.Keys[i]
		if k.Unknown || k.Keyword != "" || k.Numbered {
			continue
		}
		kl := k.Last
		if kl >= 0 {
			kl += k.Index
		}
		if first == 0 {
			first, last, step = k.Index, kl, k.Step
			continue
		}
		if k.Index == last+1 && step == k.Step { // two specs in a row (RENAME)
			last = kl
		}
	}
	return first, last, step
}

// Slot returns the slot of a command's keys and shard channels, hashslot.None if there are none. slot is that of the commands
// before, or None. ok is false if there are several slots.
func (c *Command) Slot(args [][]byte, slot int) (of int, ok bool) {
	ok = true
	see := func(i int) {
		s := hashslot.Of(args[i])
		ok = ok && (slot == hashslot.None || s == slot)
		slot = s
	}
	c.EachKey(args, see)
	for i := range c.Keys {
		if k := &c.Keys[i]; k.Flags&NotKey != 0 {
			k.each(args, see)
		}
	}
	return slot, ok
}
