package engine

// Limiters with named grants. They are objects while grants are open, and plain bytes, like all others, when none is.

import "github.com/limitkv/limitkv/engine/limiter"

// PutNamed stores a limiter with named grants, in place of the limiter under the key, if there is one. deadline is in
// Unix milliseconds, 0 = none.
func (v *View) PutNamed(key []byte, n *limiter.Named, deadline int64) Entry {
	return v.PutObject(key, KindLimiter, n, deadline)
}

// Bared is called when grants of a limiter have ended. After the last one the limiter becomes plain bytes again. It
// returns the entry, which may be another one.
func (v *View) Bared(e Entry) Entry {
	v.InnerDue(e)
	return v.bared(e)
}

func (v *View) bared(e Entry) Entry {
	if e.h.kind != KindLimiter {
		return e
	}
	if n, ok := e.object().obj.(*limiter.Named); ok && n.Len() == 0 {
		return v.putBytes(KindLimiter, e.Key(), n.State(), e.Deadline())
	}
	return e
}

// CountRefused counts a call that a limiter refused. That is no effect.
func (v *View) CountRefused(e Entry) {
	p := limiter.CountRefused(e.Bytes(nil))
	if n, ok := e.Object().(*limiter.Named); ok {
		n.SetState(p)
		return
	}
	v.Refused(e, p)
}

// Refused stores a limiter without named grants after it refused a call. p is either the entry's own bytes, or longer
// ones because the counts have outgrown those. That is no effect, since it is the same limiter.
func (v *View) Refused(e Entry, p []byte) Entry {
	if len(p) == e.Len() {
		return e
	}
	doubt := v.doubt
	e = v.putBytes(KindLimiter, e.Key(), p, e.Deadline())
	v.doubt = doubt
	return e
}
