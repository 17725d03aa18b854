package set

import "github.com/limitkv/limitkv/engine/table"

// Image begins an image of the set: fn is called once with each member that it had at the beginning. It is nil if the
// set is small. See table.Image.
func (s *Set) Image(fn func(member []byte)) *table.Image {
	if s.form() != formTable {
		return nil
	}
	return s.large.Image(func(r table.Record) { fn(r.Key()) })
}
