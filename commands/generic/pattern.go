package generic

// The patterns of SORT's BY and GET.

import (
	"bytes"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/packed"
	"github.com/limitkv/limitkv/server/command"
)

// pattern names, for an element, the string under the key that has the element in place of the first star, or behind "->" a
// field of a hash there; "#" names the element.
type pattern struct {
	all           []byte
	itself        bool
	names         bool   // there is a star
	before, after []byte // what stands before and after the star
	field         []byte // nil: a string is named
}

func parsePattern(b []byte) pattern {
	p := pattern{all: b, itself: string(command.Text(b)) == "#"}
	star := bytes.IndexByte(command.Text(b), '*')
	if p.names = star >= 0; !p.names {
		return p
	}
	p.before, p.after = b[:star], b[star+1:]
	if i := bytes.Index(command.Text(p.after), []byte("->")); i >= 0 && len(command.Text(p.after)) > i+2 {
		p.after, p.field = p.after[:i], p.after[i+2:]
	}
	return p
}

// finder finds what patterns name. A result is valid until the next.
type finder struct {
	c       *command.Ctx
	key     []byte
	scratch packed.Scratch
	work    hash.Hash
}

// find returns what a pattern names for an element; found is false if there is none.
func (f *finder) find(p *pattern, element []byte) (value []byte, found bool) {
	if p.itself {
		return element, true
	}
	if !p.names {
		return nil, false
	}
	f.key = append(append(append(f.key[:0], p.before...), element...), p.after...)
	e := f.c.Get(f.key)
	if p.field != nil {
		h := e.Hash(&f.work)
		if h == nil {
			return nil, false
		}
		return h.Get(p.field, &f.scratch)
	}
	if e.Kind() != engine.KindString {
		return nil, false
	}
	return e.Bytes(f.scratch[:0]), true
}
