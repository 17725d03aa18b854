package hash

import "github.com/limitkv/limitkv/engine/table"

// Image begins an image of the hash, nil if it is packed: fn is called with each field
// once, as it was then, and with its deadline. See table.Image.
func (h *Hash) Image(fn func(field, value []byte, millis int64)) *table.Image {
	if h.packed() {
		return nil
	}
	l := h.large
	return l.table.Image(func(r table.Record) { fn(r.Key(), valueOf(r), l.deadlineOf(r)) })
}
