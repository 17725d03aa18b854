package set

import "github.com/limitkv/limitkv/engine/table"

// Image begins an image of the set, nil if it is small: fn is called with each member
// once that there was then. See table.Image.
func (s *Set) Image(fn func(member []byte)) *table.Image {
	if s.form() != formTable {
		return nil
	}
	return s.large.Image(func(r table.Record) { fn(r.Key()) })
}
