package str

// LCS: the longest common subsequence of two strings, by the usual table of
// lengths.

import (
	"math"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
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

// lcsCellsMax limits the table that LCS makes, 4 bytes a cell.
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
	t := lcsTable(x, y)
	total := t.at(len(x), len(y))
	switch {
	case indexes:
		replyMatches(c, t.matches(x, y, minMatch), int64(total), withLen)
	case length:
		c.Int(int64(total))
	default:
		c.Bulk(t.sequence(x, y))
	}
}

// table holds the length of the longest common subsequence of every two
// prefixes.
type table struct {
	cells []uint32
	width int
}

func (t table) at(i, j int) uint32 { return t.cells[i*t.width+j] }

func lcsTable(x, y []byte) table {
	t := table{make([]uint32, (len(x)+1)*(len(y)+1)), len(y) + 1}
	for i := 1; i <= len(x); i++ {
		row, above := t.cells[i*t.width:(i+1)*t.width], t.cells[(i-1)*t.width:i*t.width]
		for j := 1; j <= len(y); j++ {
			if x[i-1] == y[j-1] {
				row[j] = above[j-1] + 1
			} else {
				row[j] = max(above[j], row[j-1])
			}
		}
	}
	return t
}

func (t table) sequence(x, y []byte) []byte {
	n := t.at(len(x), len(y))
	out := make([]byte, n)
	for i, j := len(x), len(y); i > 0 && j > 0; {
		switch {
		case x[i-1] == y[j-1]:
			n--
			out[n] = x[i-1]
			i, j = i-1, j-1
		case t.at(i-1, j) > t.at(i, j-1):
			i--
		default:
			j--
		}
	}
	return out
}

// match is a run that both strings have: where it begins and ends in each.
type match struct{ x0, x1, y0, y1 int }

func (t table) matches(x, y []byte, minLen int64) (all []match) {
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
		if t.at(i-1, j) > t.at(i, j-1) {
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
