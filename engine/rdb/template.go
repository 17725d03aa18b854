package rdb

// Hashes whose fields Redis keeps once for many of them, in a template. Here they are hashes like others.

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"strconv"
	"sync"

	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/packed"
)

// The forms of a template's fields in a payload.
const (
	fieldsPacked = 0
	fieldsPlain  = 1
)

// templates are a file's templates by their numbers. The goroutine that reads the file adds them while workers look.
type templates struct {
	mu       sync.RWMutex
	byNumber map[uint64][][]byte
}

// read reads the number and the fields of a template.
func (ts *templates) read(r *Reader) {
	number, fields := r.Len(), r.texts(r.Len())
	if r.Failed() {
		return
	}
	if problem := templateProblem(fields); problem != "" {
		r.fail(problem)
		return
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.byNumber[number] != nil {
		r.fail("a template twice")
		return
	}
	if ts.byNumber == nil {
		ts.byNumber = map[uint64][][]byte{}
	}
	ts.byNumber[number] = fields
}

// fields returns the fields of a template, nil if there is none of that number.
func (ts *templates) fields(number uint64) [][]byte {
	if ts == nil {
		return nil
	}
	ts.mu.RLock()
	defer ts.mu.RUnlock()
	return ts.byNumber[number]
}

// templateProblem says what is wrong with a template's fields, "" for nothing. They are in order of their length, then of
// their bytes.
func templateProblem(fields [][]byte) string {
	if len(fields) == 0 {
		return "a template without fields"
	}
	for i := 1; i < len(fields); i++ {
		if a, b := fields[i-1], fields[i]; cmp.Or(cmp.Compare(len(a), len(b)), bytes.Compare(a, b)) >= 0 {
			return "the fields of a template are not in order"
		}
	}
	return ""
}

// texts reads n strings, as copies.
func (r *Reader) texts(n uint64) (all [][]byte) {
	for ; n > 0 && !r.Failed(); n-- {
		all = append(all, bytes.Clone(r.String()))
	}
	return all
}

// templated reads a hash of a template.
func (r *decoder) templated(t byte) *hash.Hash {
	var fields, values [][]byte
	switch t {
	case typeTemplatePacked, typeTemplatePlain:
		if fields = r.templateFields(); r.Failed() {
			return nil
		}
		if t == typeTemplatePlain {
			values = r.texts(uint64(len(fields)))
		} else {
			_, values = r.packedValues()
		}
	case typeTemplateRef:
		var number uint64
		number, values = r.packedValues()
		fields = r.templates.fields(number)
	case typeTemplateValues:
		fields = r.templates.fields(r.Len())
		values = r.texts(uint64(len(fields)))
	}
	switch {
	case r.Failed():
		return nil
	case len(fields) == 0:
		r.fail("a hash of a template that is not there")
		return nil
	case len(fields) != len(values):
		r.fail(strconv.Itoa(len(values)) + " values of a template with " + strconv.Itoa(len(fields)) + " fields")
		return nil
	}
	h := new(hash.Hash)
	h.Prepare(len(fields), 0, 0, r.lim.Hash)
	for i, field := range fields {
		h.SetNew(field, values[i], r.lim.Hash)
	}
	return h
}

// templateFields reads the fields of the template in a payload.
func (r *decoder) templateFields() (fields [][]byte) {
	switch form := r.Len(); form {
	case fieldsPacked:
		fields = r.packedTexts("template field blob")
	case fieldsPlain:
		fields = r.texts(r.Len())
	default:
		r.fail("the fields of a template are in unknown form " + strconv.FormatUint(form, 10))
	}
	if problem := templateProblem(fields); problem != "" {
		r.fail(problem)
	}
	return fields
}

// packedValues reads the number of a template and a hash's values, which are one listpack.
func (r *decoder) packedValues() (number uint64, values [][]byte) {
	values = r.packedTexts("template-listpack")
	if r.Failed() {
		return 0, nil
	}
	if len(values) > 0 {
		if n, err := strconv.ParseInt(string(values[0]), 10, 64); err == nil && n >= 0 {
			return uint64(n), values[1:]
		}
	}
	r.fail("a hash without the number of its template")
	return 0, nil
}

// packedTexts reads the elements of a listpack.
func (r *decoder) packedTexts(what string) (all [][]byte) {
	lp := r.String()
	if r.Failed() {
		return nil
	}
	if len(lp) == 0 || packed.Check(lp) != nil {
		r.fail(damaged(what))
		return nil
	}
	r.verified++
	for p := packed.First(lp); p < packed.End(lp); p = packed.Next(lp, p) {
		all = append(all, packed.AppendTo(nil, lp, p))
	}
	return all
}

// templated skips a hash of a template.
func (f *frame) templated(t byte) {
	switch t {
	case typeTemplateRef:
		f.string()
	case typeTemplateValues:
		fields := f.templates.fields(f.len())
		if f.ok() && fields == nil {
			f.problem = "a hash of a template that is not there"
			return
		}
		f.strings(uint64(len(fields)))
	default: // of a payload, which a file does not have, but could
		n := uint64(0)
		if form := f.len(); form == fieldsPacked {
			at := f.at
			f.string()
			if !f.ok() {
				return
			}
			r := Reader{rest: f.b[at:f.at], maxString: math.MaxInt}
			if lp := r.String(); len(lp) > 0 && packed.Check(lp) == nil {
				n = uint64(packed.Count(lp))
			}
		} else {
			n = f.len()
			f.strings(n)
		}
		if t == typeTemplatePacked {
			n = 1
		}
		f.strings(n)
	}
}

// metaIgnorable is the flag of metadata that whoever does not know it may leave out.
const metaIgnorable = 1

// meta skips what modules have written about the next key. Redis refuses it without the module, unless it may be left out.
func (f *frame) meta() {
	for n := f.len(); n > 0 && f.ok(); n-- {
		b := f.take(4)
		if b == nil {
			return
		}
		if class := binary.LittleEndian.Uint32(b); class&metaIgnorable == 0 {
			f.problem = "what a module '" + metaName(class) + "' that is not there has written about a key"
			return
		}
		f.module()
	}
}

// metaName is the name in the class of metadata: 4 characters before 8 bits of version and flags.
func metaName(class uint32) string {
	var name [4]byte
	class >>= 8
	for i := range name {
		name[len(name)-1-i] = moduleChars[class&63]
		class >>= 6
	}
	return string(name[:])
}
