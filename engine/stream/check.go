package stream

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/limitkv/limitkv/engine/packed"
)

// Check verifies what must hold between any two calls; tests run it after each step.
func (s *Stream) Check() error {
	length, first, last, err := s.checkBlocks()
	if err != nil {
		return err
	}
	if length != s.length || first != s.first || last.Compare(s.last) > 0 {
		return fmt.Errorf("%d entries from %v to %v; recorded are %d, %v, %v", length, first, last, s.length, s.first, s.last)
	}
	for _, g := range s.groups {
		if err := g.check(); err != nil {
			return fmt.Errorf("group %q: %w", g.Name, err)
		}
	}
	return nil
}

// checkBlocks verifies the blocks and returns the number of entries, the ID of the first, and that of the last, deleted or
// not.
func (s *Stream) checkBlocks() (length int, first, last ID, err error) {
	for i := range s.blocks {
		b := &s.blocks[i]
		if i > 0 && s.blocks[i-1].id.Compare(b.id) >= 0 {
			return 0, first, last, fmt.Errorf("block %d: %v after %v", i, b.id, s.blocks[i-1].id)
		}
		before := last
		var order error
		live, deleted, err := b.walk(func(id ID, gone bool) {
			if order == nil && (id.Compare(last) <= 0 || id.Compare(b.id) < 0) {
				order = fmt.Errorf("%v after %v in a block of %v", id, last, b.id)
			}
			if last = id; !gone {
				length++
				if first.Zero() {
					first = id
				}
			}
		})
		if err = cmp.Or(err, order); err != nil {
			return 0, first, last, fmt.Errorf("block %d: %w", i, err)
		}
		if saysLive, saysDeleted := b.counts(); saysLive != live || saysDeleted != deleted {
			return 0, first, last, fmt.Errorf("block %d: %d entries and %d deleted, says %d and %d", i, live, deleted, saysLive, saysDeleted)
		}
		if last == before {
			return 0, first, last, fmt.Errorf("block %d has no entry", i)
		}
	}
	return length, first, last, nil
}

// walk calls fn with the entries of the block, deleted or not, and returns how many there are of both; the block's
// counts may be wrong. It does not trust anything else either, because the block may come from outside.
func (b *block) walk(fn func(id ID, deleted bool)) (live, deleted int, err error) {
	if err := packed.Check(b.lp); err != nil {
		return 0, 0, err
	}
	p := packed.First(b.lp)
	var broken error
	skip := func() {
		if broken == nil && p >= packed.End(b.lp) {
			broken = errors.New("it ends within an entry")
		}
		if broken == nil {
			p = packed.Next(b.lp, p)
		}
	}
	number := func() int64 {
		at := p
		if skip(); broken != nil {
			return 0
		}
		n, ok := packed.Int(b.lp, at)
		if !ok {
			broken = fmt.Errorf("no number at %d", at)
		}
		return n
	}
	number() // the number of entries
	number() // and of deleted ones
	fields := number()
	for i := int64(0); i < fields && broken == nil; i++ {
		skip()
	}
	if number() != 0 || fields < 0 {
		return 0, 0, errors.New("no master entry")
	}
	for broken == nil && p < packed.End(b.lp) {
		flags := number()
		id := ID{b.id.Millis + uint64(number()), b.id.Seq + uint64(number())}
		elements, own := 3+fields, fields
		if flags&flagSameFields == 0 {
			own = 2 * number()
			elements = 4 + own
		}
		for i := int64(0); i < own && broken == nil; i++ {
			skip()
		}
		if n := number(); broken == nil && (n != elements || own < 0) {
			return 0, 0, fmt.Errorf("entry %v has %d elements, and says %d", id, elements, n)
		}
		if broken != nil {
			break
		}
		if flags&flagDeleted != 0 {
			deleted++
		} else {
			live++
		}
		fn(id, flags&flagDeleted != 0)
	}
	return live, deleted, broken
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
