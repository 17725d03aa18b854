package rdb

// Reading values. The first thing that is wrong ends it.

import (
	"math"
	"strconv"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/packed"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/zset"
)

// reader reads values, whose form the limits decide.
type reader struct {
	Reader
	lim Limits
}

// value reads a type and a value of it.
func (r *reader) value() Value {
	switch t := r.Byte(); t {
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
	case typeHashZiplist, typeHashPacked, typeHashPackedDue1, typeHashPackedDue:
		return Value{Kind: engine.KindHash, Object: r.packedHash(t)}
	case typeStream1, typeStream2, typeStream:
		return Value{Kind: engine.KindStream, Object: r.stream(t)}
	}
	r.fail()
	return Value{}
}

// check fails with an error of a structure.
func (r *reader) check(err error) {
	if err != nil {
		r.fail()
	}
}

func (r *reader) list(t byte) *list.List {
	var l list.List
	switch t {
	case typeListPlain:
		var values [][]byte
		for n := r.count(); n > 0 && !r.failed; n-- {
			values = append(values, r.String())
		}
		l = list.Of(values, r.lim.List)
	case typeListZiplist:
		var values [][]byte
		lp := r.ziplist(r.String())
		for p := packed.First(lp); p < packed.End(lp); p = packed.Next(lp, p) {
			values = append(values, packed.AppendTo(nil, lp, p))
		}
		l = list.Of(values, r.lim.List)
	default:
		var nodes []list.Node
		for n := r.count(); n > 0 && !r.failed; n-- {
			container := uint64(nodePacked)
			if t == typeList {
				container = r.Len()
			}
			data := r.String()
			if len(data) == 0 || container != nodePacked && container != nodePlain {
				r.fail()
			}
			if t == typeListZiplists {
				data = r.ziplist(data)
			}
			nodes = append(nodes, list.Node{Data: data, Plain: container == nodePlain})
		}
		if !r.failed {
			var err error
			l, err = list.Restore(nodes, r.lim.List)
			r.check(err)
		}
	}
	if l.Len() == 0 {
		r.fail()
	}
	return &l
}

func (r *reader) set(t byte) *set.Set {
	var s set.Set
	var err error
	switch t {
	case typeSetIntset:
		s, err = set.RestoreIntset(r.String(), r.lim.Set)
		r.check(err)
		return &s
	case typeSetPacked:
		s, err = set.RestorePacked(r.String(), r.lim.Set)
		r.check(err)
		return &s
	}
	n := r.count()
	s.Prepare(int(n), r.lim.Set)
	for ; n > 0 && !r.failed; n-- {
		if member := r.String(); !r.failed && !s.Add(member, r.lim.Set) {
			r.fail()
		}
	}
	return &s
}

func (r *reader) zset(t byte) *zset.Set {
	if t == typeZSetPacked || t == typeZSetZiplist {
		lp := r.String()
		if t == typeZSetZiplist {
			lp = r.ziplist(lp)
		}
		return r.packedZSet(lp)
	}
	n := r.count()
	// As in Redis it is large until it is known what there is in it.
	z := zset.New(int(n), 0, zset.Limits{})
	for ; n > 0 && !r.failed; n-- {
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

func (r *reader) addTo(z *zset.Set, member []byte, score float64, lim zset.Limits) {
	if r.failed || score != score {
		r.fail()
		return
	}
	if outcome, _ := z.Add(member, score, 0, lim); outcome != zset.Added {
		r.fail()
	}
}

// The lengths that stand for what has no text.
const (
	textNaN  = 253
	textInf  = 254
	textNInf = 255
)

func (r *reader) textDouble() float64 {
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

func (r *reader) parseDouble(b []byte) float64 {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil && !math.IsInf(f, 0) {
		r.fail()
	}
	return f
}

func (r *reader) packedZSet(lp []byte) *zset.Set {
	if r.failed || lp == nil || packed.Check(lp) != nil || packed.Count(lp) == 0 || packed.Count(lp)%2 != 0 {
		r.fail()
		return nil
	}
	// Redis does not look at how long the members are.
	lim := r.lim.ZSet
	lim.MaxPackedBytes = math.MaxInt
	z := zset.New(packed.Count(lp)/2, 0, lim)
	var member, text packed.Scratch
	for p := packed.First(lp); p < packed.End(lp) && !r.failed; {
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

// deadlineMax is the last time that a field can have, in Unix milliseconds.
const deadlineMax = 1<<48 - 1

func (r *reader) hash(t byte) *hash.Hash {
	var h hash.Hash
	first := int64(0)
	if t == typeHashDue {
		if first = r.millis(); first < 0 || first > deadlineMax+1 {
			r.fail()
		}
	}
	n := r.count()
	h.Prepare(int(n), 0, 0, r.lim.Hash)
	if t != typeHash {
		h.PrepareDeadlines()
	}
	for ; n > 0 && !r.failed; n-- {
		due := uint64(0)
		switch t {
		case typeHashDue:
			if due = r.Len(); due > 0 {
				due += uint64(first) - 1
			}
		case typeHashDuePlain:
			due = r.Len()
		}
		field, value := r.String(), r.String()
		if r.failed || due > deadlineMax || !h.Set(field, value, r.lim.Hash) {
			r.fail()
			break
		}
		if due > 0 {
			h.SetDeadline(field, int64(due))
		}
	}
	return &h
}

func (r *reader) packedHash(t byte) *hash.Hash {
	if t == typeHashPackedDue {
		r.uint64() // the first deadline, which the list begins with
	}
	lp := r.String()
	if t == typeHashZiplist {
		lp = r.ziplist(lp)
	}
	if r.failed {
		return nil
	}
	h, err := hash.Restore(lp, t == typeHashPackedDue || t == typeHashPackedDue1, r.lim.Hash)
	r.check(err)
	return &h
}
