package hash

import "github.com/limitkv/limitkv/engine/table"

// Image begins an image of the hash: fn is called once with each field, as it was at the beginning, and with its
// deadline. It is nil if the hash is packed. See table.Image.
func (h *Hash) Image(fn func(field, value []byte, millis int64)) *table.Image {
	if h.packed() {
		return nil
	}
	l := h.large
	return l.table.Image(func(r table.Record) { fn(r.Key(), valueOf(r), l.deadlineOf(r)) })
}
