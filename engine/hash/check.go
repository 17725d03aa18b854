package hash

import (
	"fmt"

	"github.com/limitkv/limitkv/engine/packed"
)

// Check verifies what must hold between any two calls; tests run it after each step.
func (h *Hash) Check() error {
	if h.packed() {
		return h.checkPacked()
	}
	if h.lp != nil {
		return fmt.Errorf("a large hash keeps a list")
	}
	if err := h.large.table.Check(); err != nil {
		return err
	}
	marked := 0
	for it := h.Iter(); it.Next(); {
		if it.record.Mark() {
			marked++
			if at := placeOf(it.record); at >= len(h.large.due) || h.large.due[at].record != it.record {
				return fmt.Errorf("%q is not at its place in the heap", it.Field())
			}
		}
	}
	if marked != len(h.large.due) {
		return fmt.Errorf("%d fields with deadlines, %d in the heap", marked, len(h.large.due))
	}
	for i, d := range h.large.due {
		if parent := (i - 1) / children; d.millis < h.large.due[parent].millis || d.millis == 0 {
			return fmt.Errorf("heap: %d at %d, before it %d", d.millis, i, h.large.due[parent].millis)
		}
	}
	return nil
}

func (h *Hash) checkPacked() error {
	if err := packed.Check(h.lp); err != nil {
		return err
	}
	if n := packed.Count(h.lp); n%h.stride() != 0 {
		return fmt.Errorf("%d elements in a packed hash of %d to a field", n, h.stride())
	}
	seen := map[string]bool{}
	before := int64(1)
	for it := h.Iter(); it.Next(); {
		if seen[string(it.Field())] {
			return fmt.Errorf("%q is there twice", it.Field())
		}
		seen[string(it.Field())] = true
		if due := it.Deadline(); h.large != nil && due != 0 && (before == 0 || due < before) {
			return fmt.Errorf("%q is due at %d but stands after %d", it.Field(), due, before)
		}
		before = it.Deadline()
	}
	return nil
}
