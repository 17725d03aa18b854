package hash

// Restoring a packed hash as it is, for RESTORE.

import (
	"errors"

	"github.com/limitkv/limitkv/engine/packed"
)

// ErrCorrupt is returned by Restore for data that is no packed hash.
var ErrCorrupt = errors.New("hash: corrupted listpack")

// DeadlineMax is the last deadline that a field can have, in Unix milliseconds.
const DeadlineMax = 1<<48 - 1

// Restore returns a hash of a listpack that Listpack returned, which it verifies and copies. As in Redis the hash stays
// packed however long its fields are, unless there are too many.
func Restore(lp []byte, deadlines bool, lim Limits) (Hash, error) {
	var h Hash
	if deadlines {
		h.large = withDeadlines
	}
	if lp == nil || packed.Check(lp) != nil {
		return Hash{}, ErrCorrupt
	}
	n := packed.Count(lp)
	if n == 0 || n%h.stride() != 0 {
		return Hash{}, ErrCorrupt
	}
	h.lp = packed.Clone(lp)
	if packed.Twice(h.lp, h.stride()) {
		return Hash{}, ErrCorrupt
	}
	before := int64(1) // the deadline before
	for it := h.Iter(); deadlines && it.Next(); {
		due, ok := packed.Int(h.lp, packed.Next(h.lp, it.valueAt))
		if !ok || due < 0 || due > DeadlineMax || due > 0 && due < before {
			return Hash{}, ErrCorrupt
		}
		if before = due; due == 0 {
			before = 1<<63 - 1 // no deadline may follow
		}
	}
	if h.Len() > lim.MaxPackedFields {
		h.enlarge()
	}
	return h, nil
}

// RestoreDisordered is Restore for a listpack whose deadlines are not in order; each field must be there once. Redis
// accepts such a listpack, and expires its fields late.
func RestoreDisordered(lp []byte, lim Limits) (Hash, error) {
	var h Hash
	h.PrepareDeadlines()
	lim.MaxPackedBytes = packed.MaxBytes
	var field, value packed.Scratch
	for p := packed.First(lp); p < packed.End(lp); {
		f := packed.Get(lp, p, &field)
		p = packed.Next(lp, p)
		v := packed.Get(lp, p, &value)
		p = packed.Next(lp, p)
		due, ok := packed.Int(lp, p)
		p = packed.Next(lp, p)
		if !ok || due < 0 || due > DeadlineMax {
			return Hash{}, ErrCorrupt
		}
		h.Set(f, v, lim)
		if due != 0 {
			h.SetDeadline(f, due)
		}
	}
	return h, nil
}
