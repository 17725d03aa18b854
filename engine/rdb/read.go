package rdb

// Reading values. The first thing that is wrong ends it.

import (
	"fmt"
	"math"
	"strconv"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/packed"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/zset"
)

// decoder reads values, whose form the limits decide.
type decoder struct {
	Reader
	lim Limits
	// valkey: the file is Valkey's, which gave its own meaning to a type that
	// Redis has too.
	valkey bool
	// verified counts the structures that were taken over as they were, having
	// been looked through.
	verified int64
	// repairs are what was wrong with the value and is right in what was read.
	repairs []string
}

// repairsMax is how many repairs of a value are told.
const repairsMax = 8

// repaired notes a repair.
func (r *decoder) repaired(format string, args ...any) {
	if len(r.repairs) < repairsMax {
		r.repairs = append(r.repairs, fmt.Sprintf(format, args...))
	}
}

// problemEmpty is that of a collection without elements. Redis had errors by which
// such came into files, so that there they are passed over.
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
	case typeStream1, typeStream2, typeStream:
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

// damaged is what is wrong with a structure that is not whole, in Redis's words, which tools look for in the log.
func damaged(what string) string { return what + " integrity check failed" }

// check fails with an error of a structure.
func (r *decoder) check(what string, err error) {
	if err != nil {
		r.fail(damaged(what))
	}
}

// some is count of a collection's elements, which must have some.
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
		l = list.Of(values, r.lim.List)
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
			}
			if t == typeList && container == nodePacked {
				r.verified++
			}
			nodes = append(nodes, list.Node{Data: data, Plain: container == nodePlain})
		}
		if !r.Failed() {
			var err error
			l, err = list.Restore(nodes, r.lim.List)
			r.check("Listpack", err)
		}
	}
	if l.Len() == 0 {
		r.fail(problemEmpty)
	}
	return &l
}

// empty tells whether a listpack is whole and has no elements.
func empty(lp []byte) bool { return lp != nil && packed.Check(lp) == nil && packed.Count(lp) == 0 }

func (r *decoder) set(t byte) *set.Set {
	var s set.Set
	var err error
	switch t {
	case typeSetIntset:
		s, err = set.RestoreIntset(r.String(), r.lim.Set)
		r.check("Intset", err)
		r.verified++
		return &s
	case typeSetPacked:
		lp := r.String()
		if s, err = set.RestorePacked(lp, r.lim.Set); err != nil && empty(lp) {
			r.fail(problemEmpty)
		}
		r.check("Set listpack", err)
		r.verified++
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
		if t == typeZSetZiplist {
			lp = r.ziplist("Zset ziplist", lp)
		} else {
			r.verified++
		}
		return r.packedZSet(lp)
	}
	n := r.some()
	// As in Redis it is large until it is known what there is in it.
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

// The lengths that stand for what has no text.
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

func (r *decoder) parseDouble(b []byte) float64 {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil && !math.IsInf(f, 0) {
		r.fail("a score is no number")
	}
	return f
}

func (r *decoder) packedZSet(lp []byte) *zset.Set {
	if r.Failed() {
		return nil
	}
	if lp == nil || packed.Check(lp) != nil || packed.Count(lp)%2 != 0 {
		r.fail(damaged("Zset listpack"))
		return nil
	}
	if packed.Count(lp) == 0 {
		r.fail(problemEmpty)
		return nil
	}
	// Redis does not look at how long the members are.
	lim := r.lim.ZSet
	lim.MaxPackedBytes = math.MaxInt
	z := zset.New(packed.Count(lp)/2, 0, lim)
	var member, text packed.Scratch
	for p := packed.First(lp); p < packed.End(lp) && !r.Failed(); {
		m := packed.Get(lp, p, &member)
		p = packed.Next(lp, p)
		score, isInt := packed.Int(lp, p)
		f := float64(score)
		if !isInt {
			f = r.parseDouble(packed.Get(lp, p, &text))
		}
		p = packed.Next(lp, p)
		r.addTo(z, m, f, lim)
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
		if !h.Set(field, value, r.lim.Hash) {
			r.fail("a field of a hash twice")
			break
		}
		if due > 0 {
			h.SetDeadline(field, int64(due))
		}
	}
	return &h
}

// valkeyNever is the deadline of a field that has none, in Valkey's files.
const valkeyNever = -1

func (r *decoder) packedHash(t byte) *hash.Hash {
	if t == typeHashPackedDue {
		r.uint64() // the first deadline, which the list begins with
	}
	lp := r.String()
	switch t {
	case typeHashZiplist:
		lp = r.ziplist("Hash ziplist", lp)
	case typeHashZipmap:
		return r.zipmap(lp)
	default:
		r.verified++
	}
	if r.Failed() {
		return nil
	}
	h, err := hash.Restore(lp, t == typeHashPackedDue || t == typeHashPackedDue1, r.lim.Hash)
	if err != nil && empty(lp) {
		r.fail(problemEmpty)
	}
	r.check("Hash listpack", err)
	return &h
}
