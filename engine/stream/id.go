package stream

// IDs: milliseconds and a sequence number within them.

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/engine/packed"
)

// ID identifies an entry and orders it: by milliseconds (unix, when generated), then by sequence number.
type ID struct{ Millis, Seq uint64 }

// MinID and MaxID are the lowest and the highest possible ID: "-" and "+" of a range.
var (
	MinID = ID{}
	MaxID = ID{math.MaxUint64, math.MaxUint64}
)

// Compare returns -1, 0 or 1 as a is before, equal to or after b.
func (a ID) Compare(b ID) int {
	if c := cmp.Compare(a.Millis, b.Millis); c != 0 {
		return c
	}
	return cmp.Compare(a.Seq, b.Seq)
}

// Zero reports whether a is 0-0, which no entry has.
func (a ID) Zero() bool { return a == ID{} }

// Next returns the ID after a; false, and 0-0, if a is MaxID.
func (a ID) Next() (ID, bool) {
	if a.Seq++; a.Seq == 0 {
		a.Millis++
	}
	return a, !a.Zero()
}

// Prev returns the ID before a; false, and MaxID, if a is 0-0.
func (a ID) Prev() (ID, bool) {
	if a.Seq--; a.Seq == math.MaxUint64 {
		a.Millis--
	}
	return a, a != MaxID
}

// Append appends a as it is written: milliseconds, a minus, the sequence number.
func (a ID) Append(dst []byte) []byte {
	dst = strconv.AppendUint(dst, a.Millis, 10)
	dst = append(dst, '-')
	return strconv.AppendUint(dst, a.Seq, 10)
}

func (a ID) String() string { return string(a.Append(nil)) }

// maxIDBytes is the longest text that is read as an ID, as in Redis.
const maxIDBytes = 127

// ParseID reads an ID as XADD, XDEL and most commands take it: milliseconds, or milliseconds-sequence. Without a
// sequence number the ID gets missingSeq.
func ParseID(b []byte, missingSeq uint64) (id ID, ok bool) {
	id, auto, ok := parse(b, missingSeq, false)
	return id, ok && !auto
}

// ParseNewID also reads "milliseconds-*", for which the stream chooses the sequence number.
func ParseNewID(b []byte) (id ID, autoSeq, ok bool) { return parse(b, 0, true) }

// ParseBound also reads "-" and "+", the first and the last ID.
func ParseBound(b []byte, missingSeq uint64) (id ID, ok bool) {
	switch string(b) {
	case "-":
		return MinID, true
	case "+":
		return MaxID, true
	}
	return ParseID(b, missingSeq)
}

// ParseInterval also reads an ID after "(", which is excluded from the range.
func ParseInterval(b []byte, missingSeq uint64) (id ID, exclusive, ok bool) {
	if len(b) > 1 && b[0] == '(' {
		id, ok = ParseID(b[1:], missingSeq)
		return id, true, ok
	}
	id, ok = ParseBound(b, missingSeq)
	return id, false, ok
}

func parse(b []byte, missingSeq uint64, star bool) (id ID, autoSeq, ok bool) {
	if len(b) > maxIDBytes {
		return ID{}, false, false
	}
	// Redis reads it as a C string.
	b, _, _ = bytes.Cut(b, []byte{0})
	millis, seq, hasSeq := strings.Cut(string(b), "-")
	if id.Millis, ok = parseUint(millis); !ok {
		return ID{}, false, false
	}
	switch {
	case !hasSeq:
		id.Seq = missingSeq
	case star && seq == "*":
		autoSeq = true
	default:
		if id.Seq, ok = parseUint(seq); !ok {
			return ID{}, false, false
		}
	}
	return id, autoSeq, true
}

// parseUint reads what Redis reads: what C's strtoull accepts, with nothing after it. So spaces, a plus and zeros may
// come before. A minus is accepted if the number is not canonical, and then the number wraps around.
func parseUint(s string) (uint64, bool) {
	if _, err := strconv.ParseUint(s, 10, 64); err != nil {
		if _, canonical := packed.ParseInt([]byte(s)); canonical {
			return 0, false // a negative number
		}
	}
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	digits := strings.TrimPrefix(s, "+")
	negative := len(digits) == len(s) && strings.HasPrefix(s, "-")
	if negative {
		digits = s[1:]
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if negative {
		n = -n
	}
	return n, err == nil
}
