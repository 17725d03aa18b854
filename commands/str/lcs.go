package str

// LCS: the longest common subsequence of two strings, by a table of all their prefixes.

import (
	"math"
	"math/bits"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
)

var lcsRow = &command.Command{
	Name: "lcs", Arity: -3, Group: command.GroupString, Since: "7.0.0",
	Flags:      command.ReadOnly | command.TakesTime,
	ACL:        stringACL,
	Keys:       []command.KeySpec{command.KeyRange(1, 2, 1, readKey)},
	Summary:    "Returns the longest subsequence that two strings have in common.",
	Complexity: "O(N*M) in the lengths of the strings",
	Syntax:     "key1:key key2:key [LEN] [IDX] [MINMATCHLEN min-match-len:integer] [WITHMATCHLEN]",
	Run:        lcs,
}

// lcsCellsMax limits the table of LCS, in cells of one bit. Redis uses 4 bytes a cell, and so has this limit.
const lcsCellsMax = 1 << 28

func lcs(c *command.Ctx) {
	a := c.Cursor(3)
	var length, indexes, withLen bool
	var minMatch int64
	e1, e2 := c.Get(c.Args[1]), c.Get(c.Args[2])
	for _, e := range [...]engine.Entry{e1, e2} {
		if e.Ok() && e.Kind() != engine.KindString {
			c.Error("ERR The specified keys must contain string values")
			return
		}
	}
	for a.More() {
		switch {
		case a.Is("IDX"):
			indexes = true
		case a.Is("LEN"):
			length = true
		case a.Is("WITHMATCHLEN"):
			withLen = true
		case a.IsWith("MINMATCHLEN", 1):
			minMatch = max(a.Int(), 0)
		default:
			a.Syntax()
		}
	}
	if a.Failed(c) {
		return
	}
	if length && indexes {
		c.Error("ERR If you want both the length and indexes, please just use IDX.")
		return
	}
	var b1, b2 [20]byte
	x, y := e1.Bytes(b1[:]), e2.Bytes(b2[:])
	if len(x) >= math.MaxUint32-1 || len(y) >= math.MaxUint32-1 {
		c.Error("ERR String too long for LCS")
		return
	}
	if (len(x)+1)*(len(y)+1) > lcsCellsMax {
		c.Error("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")
		return
	}
	c.Expect(len(x) * (len(y)/64 + 1) / 32)
	t := lcsTable(x, y)
	switch {
	case indexes:
		replyMatches(c, t.matches(x, y, minMatch), int64(t.total), withLen)
	case length:
		c.Int(int64(t.total))
	default:
		c.Bulk(t.sequence(x, y))
	}
}

// table has a bit for each pair of a prefix of x and a prefix of y. The bit is 0 if their longest common subsequence is
// longer with the last byte of y than without it. An addition makes a row from the one above, 64 pairs at a time: Hyyrö,
// "Bit-parallel LCS-length computation revisited", 2004. The usual table of lengths takes 32 times the memory and the time.
type table struct {
	bits  []uint64
	words int // of a row
	total int // the length for all of both
}

// up reports whether the subsequence of the first i bytes of x and j of y is longer than without the last byte of y. If it
// is, and the last bytes differ, it is as long without the last byte of x. If it is not, it is as long without the last byte
// of y.
func (t *table) up(i, j int) bool {
	j--
	return t.bits[(i-1)*t.words+j/64]>>(j%64)&1 == 0
}

func lcsTable(x, y []byte) *table {
	t := &table{words: (len(y) + 63) / 64}
	t.bits = make([]uint64, t.words*len(x))
	var places [256][]uint64 // where each byte of x is in y
	for _, c := range x {
		if places[c] == nil {
			places[c] = make([]uint64, t.words)
		}
	}
	for j, c := range y {
		if p := places[c]; p != nil {
			p[j/64] |= 1 << (j % 64)
		}
	}
	above := make([]uint64, t.words)
	for i := range above {
		above[i] = ^uint64(0)
	}
	for i, c := range x {
		row, equal, carry := t.bits[i*t.words:][:len(above)], places[c][:len(above)], uint64(0)
		for w, v := range above {
			var sum uint64
			sum, carry = bits.Add64(v, v&equal[w], carry)
			row[w] = sum | v&^equal[w]
		}
		above = row
	}
	for w, v := range above {
		t.total += bits.OnesCount64(^v &^ (^uint64(0) << min(len(y)-w*64, 64)))
	}
	return t
}

func (t *table) sequence(x, y []byte) []byte {
	n := t.total
	out := make([]byte, n)
	for i, j := len(x), len(y); i > 0 && j > 0; {
		switch {
		case x[i-1] == y[j-1]:
			n--
			out[n] = x[i-1]
			i, j = i-1, j-1
		case t.up(i, j):
			i--
		default:
			j--
		}
	}
	return out
}

// match is a run that both strings have: where it begins and ends in each.
type match struct{ x0, x1, y0, y1 int }

func (t *table) matches(x, y []byte, minLen int64) (all []match) {
	var m match
	open := false
	emit := func() {
		if open && int64(m.x1-m.x0+1) >= minLen {
			all = append(all, m)
		}
		open = false
	}
	for i, j := len(x), len(y); i > 0 && j > 0; {
		if x[i-1] == y[j-1] {
			if open && m.x0 == i && m.y0 == j {
				m.x0, m.y0 = i-1, j-1
			} else {
				emit()
				m, open = match{i - 1, i - 1, j - 1, j - 1}, true
			}
			i, j = i-1, j-1
			continue
		}
		if t.up(i, j) {
			i--
		} else {
			j--
		}
	}
	emit()
	return all
}

func replyMatches(c *command.Ctx, all []match, total int64, withLen bool) {
	c.Map(2)
	c.BulkString("matches")
	c.Array(len(all))
	for _, m := range all {
		n := 2
		if withLen {
			n = 3
		}
		c.Array(n)
		for _, r := range [...][2]int{{m.x0, m.x1}, {m.y0, m.y1}} {
			c.Array(2)
			c.Int(int64(r[0]))
			c.Int(int64(r[1]))
		}
		if withLen {
			c.Int(int64(m.x1 - m.x0 + 1))
		}
	}
	c.BulkString("len")
	c.Int(total)
}
