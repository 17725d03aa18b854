package stream

import (
	"fmt"

	"github.com/limitkv/limitkv/engine/packed"
)

// Check verifies what must hold between any two calls; tests run it after each step.
func (s *Stream) Check() error {
	length, before := 0, ID{}
	first := ID{}
	for i := range s.blocks {
		b := &s.blocks[i]
		if i > 0 && s.blocks[i-1].id.Compare(b.id) >= 0 {
			return fmt.Errorf("block %d: %v after %v", i, b.id, s.blocks[i-1].id)
		}
		if err := packed.Check(b.lp); err != nil {
			return fmt.Errorf("block %d: %w", i, err)
		}
		live, deleted := b.counts()
		_, _, p := b.master()
		for p < packed.End(b.lp) {
			id, isDeleted, next, err := b.checkEntry(p)
			if err != nil {
				return fmt.Errorf("block %d: %w", i, err)
			}
			if id.Compare(before) <= 0 || id.Compare(b.id) < 0 {
				return fmt.Errorf("block %d of %v: %v after %v", i, b.id, id, before)
			}
			before, p = id, next
			if isDeleted {
				deleted--
				continue
			}
			live--
			length++
			if first.Zero() {
				first = id
			}
		}
		if live != 0 || deleted != 0 {
			return fmt.Errorf("block %d: %d entries and %d deleted too many in its counts", i, live, deleted)
		}
	}
	if length != s.length || first != s.first || before.Compare(s.last) > 0 {
		return fmt.Errorf("%d entries from %v to %v; recorded are %d, %v, %v", length, first, before, s.length, s.first, s.last)
	}
	for _, g := range s.groups {
		if err := g.check(); err != nil {
			return fmt.Errorf("group %q: %w", g.Name, err)
		}
	}
	return nil
}

// checkEntry walks over the entry at p.
func (b *block) checkEntry(p int) (id ID, deleted bool, next int, err error) {
	n := 0 // elements
	number := func() int64 {
		v, ok := packed.Int(b.lp, p)
		if !ok && err == nil {
			err = fmt.Errorf("no number at %d", p)
		}
		p = packed.Next(b.lp, p)
		n++
		return v
	}
	flags := number()
	id = ID{b.id.Millis + uint64(number()), b.id.Seq + uint64(number())}
	fields, _, _ := b.master()
	elements := fields
	if flags&flagSameFields == 0 {
		elements = 2 * int(number())
	}
	for range elements {
		p = packed.Next(b.lp, p)
		n++
	}
	if want := n; err == nil && number() != int64(want) {
		err = fmt.Errorf("entry %v has %d elements, which it does not say", id, want)
	}
	return id, flags&flagDeleted != 0, p, err
}

func (g *Group) check() error {
	n := 0
	for i, c := range g.consumers {
		if i > 0 && g.consumers[i-1].Name >= c.Name {
			return fmt.Errorf("consumer %q after %q", c.Name, g.consumers[i-1].Name)
		}
		n += c.pending.Len()
		var err error
		c.pending.Scan(func(id ID) bool {
			if p, ok := g.pending.Get(Pending{ID: id}); !ok || p.Consumer != c {
				err = fmt.Errorf("%v pending with %q, but not in the group", id, c.Name)
			}
			return err == nil
		})
		if err != nil {
			return err
		}
	}
	if n != g.pending.Len() {
		return fmt.Errorf("%d entries pending with consumers, %d in the group", n, g.pending.Len())
	}
	return nil
}
