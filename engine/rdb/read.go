package rdb

// Reading values. The first error ends it.

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/packed"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/zset"
)

// decoder reads values. The limits decide their form.
type decoder struct {
	Reader
	lim Limits
	// valkey says that the file is Valkey's, which uses the number of one of Redis's types for its own.
	valkey bool
	// templates are those of the file, nil for a payload, which has its own.
	templates *templates
	// verified counts structures that were verified and taken over unchanged.
	verified int64
	// repairs are the faults of the value that were repaired.
	repairs packed.Repairs
}

// broken records a repair of a fault that Redis checks with sanitize-dump-payload: with Limits.Sanitize the value is
// refused.
func (r *decoder) broken(format string, args ...any) {
	r.repairs.Note(format, args...)
	if r.lim.Sanitize {
		r.fail("sanitize-dump-payload: " + r.repairs[len(r.repairs)-1])
	}
}

// problemEmpty is the error for a collection without elements. Old bugs of Redis wrote such into files, so keys with
// them are skipped there.
const problemEmpty = "a value is empty"

// value reads a value of a type.
func (r *decoder) value(t byte) (v Value) {
	switch t {
	case typeString:
		return Value{Kind: engine.KindString, String: r.String()}
	case typeListPlain, typeListZiplist, typeListZiplists, typeList:
		return Value{Kind: engine.KindList, Object: r.list(t)}
	case typeSet, typeSetIntset, typeSetPacked:
		return Value{Kind: engine.KindSet, Object: r.set(t)}
	case typeZSetText, typeZSet, typeZSetZiplist, typeZSetPacked:
		return Value{Kind: engine.KindZSet, Object: r.zset(t)}
	case typeHash, typeHashDuePlain, typeHashDue:
		return Value{Kind: engine.KindHash, Object: r.hash(t)}
	case typeHashZipmap, typeHashZiplist, typeHashPacked, typeHashPackedDue1, typeHashPackedDue:
		return Value{Kind: engine.KindHash, Object: r.packedHash(t)}
	case typeTemplatePacked, typeTemplateRef, typeTemplatePlain, typeTemplateValues:
		return Value{Kind: engine.KindHash, Object: r.templated(t)}
	case typeStream1, typeStream2, typeStream3, typeStream4, typeStream:
		return Value{Kind: engine.KindStream, Object: r.stream(t)}
	case typeModule:
		return r.module()
	case typeModuleOld:
		r.fail("a module's value as a release candidate of Redis 4 wrote it")
	default:
		r.fail("a value of unknown type " + strconv.Itoa(int(t)))
	}
	return Value{}
}

// damaged is the error for a broken structure, in Redis's words, which tools search for in the log.
func damaged(what string) string { return what + " integrity check failed" }

// check fails with an error of a structure.
func (r *decoder) check(what string, err error) {
	if err != nil {
		r.fail(damaged(what))
	}
}

// some reads the number of elements of a collection, which must not be empty.
func (r *decoder) some() uint64 {
	n := r.count()
	if n == 0 {
		r.fail(problemEmpty)
	}
	return n
}

func (r *decoder) list(t byte) *list.List {
	var l list.List
	switch t {
	case typeListPlain:
		var values [][]byte
		for n := r.some(); n > 0 && !r.Failed(); n-- {
			values = append(values, r.String())
		}
		l = list.Of(values, r.lim.List)
	case typeListZiplist:
		var values [][]byte
		lp := r.ziplist("List ziplist", r.String())
		for p := packed.First(lp); p < packed.End(lp); p = packed.Next(lp, p) {
			values = append(values, packed.AppendTo(nil, lp, p))
		}
		l = list.OfNodes(values, r.lim.List)
	default:
		var nodes []list.Node
		for n := r.some(); n > 0 && !r.Failed(); n-- {
			container := uint64(nodePacked)
			if t == typeList {
				container = r.Len()
			}
			data := r.String()
			if len(data) == 0 || container != nodePacked && container != nodePlain {
				r.fail(damaged("Quicklist"))
			}
			if t == typeListZiplists {
				data = r.ziplist("Ziplist", data)
			} else if container == nodePacked {
				r.verified++
			}
			nodes = append(nodes, list.Node{Data: data, Plain: container == nodePlain})
		}
		if !r.Failed() {
			var err error
			if l, err = list.Restore(nodes, r.lim.List); err != nil {
				var counted []list.Node
				for _, n := range nodes {
					data := n.Data
					if !n.Plain {
						data = r.listpack("Listpack", data, 1)
					}
					counted = append(counted, list.Node{Data: data, Plain: n.Plain})
				}
				l, err = list.Restore(counted, r.lim.List)
			}
			r.check("Listpack", err)
		}
	}
	if l.Len() == 0 {
		r.fail(problemEmpty)
	}
	return &l
}

// listpack verifies a listpack of tuples of stride elements. Redis trusts the count in its header: if the count is zero,
// the listpack is empty here too; another wrong count is corrected. what names the structure in errors.
func (r *decoder) listpack(what string, lp []byte, stride int) []byte {
	if r.Failed() {
		return nil
	}
	if lp != nil && packed.Check(lp) == nil && packed.Count(lp) >= stride {
		return lp
	}
	counted := packed.Recounted(lp)
	if counted == nil {
		r.fail(damaged(what))
		return nil
	}
	said, has := packed.Count(lp), packed.Count(counted)
	if said < stride {
		if has > 0 {
			r.broken("%d elements left out of a listpack that says it has %d", has, said)
		}
		return packed.Slice(counted, packed.First(counted), packed.First(counted), 0)
	}
	r.broken("a listpack said to have %d elements, has %d", said, has)
	return counted
}

// tuples is listpack for a value that is a whole listpack, which must not be empty.
func (r *decoder) tuples(what string, lp []byte, stride int) []byte {
	if lp = r.listpack(what, lp, stride); lp != nil && packed.Count(lp) == 0 {
		r.fail(problemEmpty)
	}
	return lp
}

func (r *decoder) set(t byte) *set.Set {
	var s set.Set
	switch t {
	case typeSetIntset:
		s, disordered, err := set.RestoreIntset(r.String(), r.lim.Set)
		r.check("Intset", err)
		if disordered {
			r.broken("an intset out of order")
		}
		r.verified++
		return &s
	case typeSetPacked:
		lp := r.String()
		r.verified++
		s, err := set.RestorePacked(lp, r.lim.Set)
		if err == nil {
			return &s
		}
		if lp = r.tuples("Set listpack", lp, 1); r.Failed() {
			return nil
		}
		if packed.Twice(lp, 1) {
			r.broken("members of a set twice")
			lp = packed.Once(lp, 1)
		}
		s, err = set.RestorePacked(lp, r.lim.Set)
		r.check("Set listpack", err)
		return &s
	}
	n := r.some()
	s.Prepare(int(n), r.lim.Set)
	for ; n > 0 && !r.Failed(); n-- {
		if member := r.String(); !r.Failed() && !s.Add(member, r.lim.Set) {
			r.fail("a member of a set twice")
		}
	}
	return &s
}

func (r *decoder) zset(t byte) *zset.Set {
	if t == typeZSetPacked || t == typeZSetZiplist {
		lp := r.String()
		if t == typeZSetPacked {
			r.verified++
		} else if lp = r.ziplist("Zset ziplist", lp); packed.Twice(lp, 2) {
			r.fail(damaged("Zset ziplist"))
		}
		return r.packedZSet(r.tuples("Zset listpack", lp, 2))
	}
	n := r.some()
	// As in Redis, the set has the large form until its content is known.
	z := zset.New(int(n), 0, zset.Limits{})
	for ; n > 0 && !r.Failed(); n-- {
		member := r.String()
		score := 0.0
		if t == typeZSetText {
			score = r.textDouble()
		} else {
			score = math.Float64frombits(r.uint64())
		}
		r.addTo(z, member, score, r.lim.ZSet)
	}
	z.Pack(r.lim.ZSet)
	return z
}

func (r *decoder) addTo(z *zset.Set, member []byte, score float64, lim zset.Limits) {
	if r.Failed() {
		return
	}
	if score != score {
		r.fail("a score is no number")
		return
	}
	if outcome, _ := z.Add(member, score, 0, lim); outcome != zset.Added {
		r.fail("a member of a sorted set twice")
	}
}

// The lengths that mean a number without a text.
const (
	textNaN  = 253
	textInf  = 254
	textNInf = 255
)

func (r *decoder) textDouble() float64 {
	switch n := r.Byte(); n {
	case textNaN:
		return math.NaN()
	case textInf:
		return math.Inf(1)
	case textNInf:
		return math.Inf(-1)
	default:
		return r.parseDouble(r.take(uint64(n)))
	}
}

// parseDouble reads a number as C's scanf does, whatever follows it.
func (r *decoder) parseDouble(b []byte) float64 {
	f, n := number(b, true)
	if n == 0 {
		r.fail("a score is no number")
	}
	return f
}

// score reads a score of a listpack as Redis does: 0 if there is no number. NaN becomes 0 too, as for ZUNIONSTORE.
func (r *decoder) score(b []byte) float64 {
	f, n := number(b, false)
	if n == 0 || n < len(b) || f != f {
		r.repairs.Note("the score %.40q", b)
	}
	if f != f {
		return 0
	}
	return f
}

func (r *decoder) packedZSet(lp []byte) *zset.Set {
	if r.Failed() {
		return nil
	}
	if packed.Count(lp)%2 != 0 {
		r.fail(damaged("Zset listpack"))
		return nil
	}
	// Redis does not check the length of the members.
	lim := r.lim.ZSet
	lim.MaxPackedBytes = math.MaxInt
	z := zset.New(packed.Count(lp)/2, 0, lim)
	var members [2]packed.Scratch
	var text packed.Scratch
	var before []byte // the previous member; last is its score
	last := math.Inf(-1)
	ordered := true
	for p := packed.First(lp); p < packed.End(lp) && !r.Failed(); {
		m := packed.Get(lp, p, &members[z.Len()&1]) // the other one may contain the previous member
		p = packed.Next(lp, p)
		score, isInt := packed.Int(lp, p)
		f := float64(score)
		if !isInt {
			f = r.score(packed.Get(lp, p, &text))
		}
		p = packed.Next(lp, p)
		if outcome, _ := z.Add(m, f, zset.NX, lim); outcome != zset.Added {
			r.broken("the member %.40q of a sorted set twice", m)
			continue
		}
		if f == 0 && math.Signbit(f) {
			z.KeepMinusZero(m)
		}
		ordered = ordered && (f > last || f == last && bytes.Compare(m, before) >= 0)
		last, before = f, m
	}
	if !ordered {
		r.repairs.Note("a sorted set out of order")
	}
	return z
}

func (r *decoder) hash(t byte) *hash.Hash {
	var h hash.Hash
	first := int64(0)
	if t == typeHashDue {
		if first = r.millis(); first < 0 || first > hash.DeadlineMax+1 {
			r.fail("the first deadline of a hash is out of range")
		}
	}
	n := r.some()
	h.Prepare(int(n), 0, 0, r.lim.Hash)
	if t != typeHash {
		h.PrepareDeadlines()
	}
	// While a hash is a listpack, Redis does not check for duplicate fields, and later finds the first one.
	mayRepeat, repeated := !(t == typeHashDuePlain && r.valkey), false
	for ; n > 0 && !r.Failed(); n-- {
		due := uint64(0)
		switch {
		case t == typeHashDue:
			if due = r.Len(); due > 0 {
				due += uint64(first) - 1
			}
		case t == typeHashDuePlain && !r.valkey:
			due = r.Len()
		}
		field, value := r.String(), r.String()
		if t == typeHashDuePlain && r.valkey {
			if at := r.millis(); at != valkeyNever {
				due = uint64(at)
			}
		}
		if r.Failed() {
			break
		}
		if due > hash.DeadlineMax {
			r.fail("the deadline of a field is out of range")
			break
		}
		created := h.SetNew(field, value, r.lim.Hash)
		if listpack := h.Encoding() != "hashtable"; !created && listpack && mayRepeat {
			r.broken("the field %.40q of a hash twice", field)
			repeated = true
			continue
		} else if !created || repeated && !listpack {
			r.fail("a field of a hash twice")
			break
		}
		if due > 0 {
			h.SetDeadline(field, int64(due))
		}
	}
	return &h
}

// valkeyNever means no deadline for a field in Valkey's files.
const valkeyNever = -1

func (r *decoder) packedHash(t byte) *hash.Hash {
	if t == typeHashPackedDue {
		r.uint64() // the first deadline, which the listpack contains as well
	}
	lp := r.String()
	deadlines := t == typeHashPackedDue || t == typeHashPackedDue1
	stride := 2
	if deadlines {
		stride = 3
	}
	switch t {
	case typeHashZipmap:
		return r.zipmap(lp)
	case typeHashZiplist:
		lp = r.ziplist("Hash ziplist", lp)
	default:
		r.verified++
	}
	h, err := hash.Restore(lp, deadlines, r.lim.Hash)
	if err == nil {
		return &h
	}
	if lp = r.tuples("Hash listpack", lp, stride); !r.Failed() && packed.Count(lp)%stride == 0 {
		if packed.Twice(lp, stride) {
			if t == typeHashZiplist {
				r.fail(damaged("Hash ziplist"))
			}
			r.broken("fields of a hash twice")
			lp = packed.Once(lp, stride)
		}
		h, err = hash.Restore(lp, deadlines, r.lim.Hash)
		if err != nil && deadlines {
			r.broken("fields of a hash not in the order of their deadlines")
			h, err = hash.RestoreDisordered(lp, r.lim.Hash)
		}
	}
	r.check("Hash listpack", err)
	return &h
}

// number reads the number that a text begins with, up to a length, and returns how many bytes it has, 0 if there is
// none. With c it reads as C does, which allows white space and hexadecimal digits; Redis does not in listpacks.
func number(b []byte, c bool) (f float64, n int) {
	const longest = 127
	s, _, _ := strings.Cut(string(b[:min(len(b), longest)]), "\x00")
	text, stop := s, "_xX" // only Go allows an underscore
	if c {
		text, stop = strings.TrimLeft(s, " \t\n\v\f\r"), "_"
	}
	space := len(s) - len(text)
	if i := strings.IndexAny(text, stop); i >= 0 {
		text = text[:i]
	}
	for ; text != ""; text = text[:len(text)-1] {
		f, err := strconv.ParseFloat(text, 64)
		if hex := strings.TrimLeft(text, "+-"); err != nil && len(hex) > 2 && hex[0] == '0' && hex[1]|0x20 == 'x' {
			f, err = strconv.ParseFloat(text+"p0", 64)
		}
		if err == nil || errors.Is(err, strconv.ErrRange) {
			return f, space + len(text)
		}
	}
	return 0, 0
}
