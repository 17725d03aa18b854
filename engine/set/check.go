package set

import (
	"fmt"

	"github.com/limitkv/limitkv/engine/packed"
)

// Check verifies what must hold between any two calls; tests run it after each step.
func (s *Set) Check() error {
	switch s.form() {
	case formTable:
		if s.small != nil {
			return fmt.Errorf("a large set keeps a small form")
		}
		return s.large.Check()
	case formPacked:
		if err := packed.Check(s.small); err != nil {
			return err
		}
		seen := map[string]bool{}
		for it := s.Iter(); it.Next(); {
			if seen[string(it.Member())] {
				return fmt.Errorf("%q is there twice", it.Member())
			}
			seen[string(it.Member())] = true
		}
		return nil
	}
	is := intset(s.small)
	if is == nil {
		return nil
	}
	if len(is) != intsetHeader+is.len()*is.width() {
		return fmt.Errorf("intset: %d bytes for %d of width %d", len(is), is.len(), is.width())
	}
	for i := 1; i < is.len(); i++ {
		if is.at(i-1) >= is.at(i) {
			return fmt.Errorf("intset: %d before %d", is.at(i-1), is.at(i))
		}
	}
	return nil
}
