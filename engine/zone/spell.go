package zone

// The database describes the future by a rule. Evaluating it needs the year of each time, which makes finding a local
// time four times as slow. So the changes until lastYear are listed explicitly, as in files of the database's older
// form.

import (
	"bytes"
	"encoding/binary"
	"time"
)

// firstYear is before the first change of any zone.
const firstYear, lastYear = 1800, 2100

// kind is what applies to a zone's clocks between two changes.
type kind struct {
	name   string
	offset int
	summer bool
}

func kindAt(t time.Time) (k kind) {
	k.name, k.offset = t.Zone()
	k.summer = t.IsDST()
	return k
}

// spelledOut returns a zone's data with all changes listed, in the file format of RFC 9636.
func spelledOut(in *time.Location, data []byte) []byte {
	t, end := time.Date(firstYear, 1, 1, 0, 0, 0, 0, time.UTC).In(in), time.Date(lastYear, 1, 1, 0, 0, 0, 0, time.UTC)
	kinds := []kind{kindAt(t)} // the first kind is the one before all changes
	last := kinds[0]
	var times, numbers []byte
	for {
		_, until := Bounds(t)
		if until.IsZero() || until.After(end) {
			break
		}
		t = until.In(in)
		now := kindAt(t)
		if now == last { // a bound that is only the end of a year
			continue
		}
		n := 1
		for n < len(kinds) && kinds[n] != now {
			n++
		}
		if n == len(kinds) {
			kinds = append(kinds, now)
		}
		times = binary.BigEndian.AppendUint64(times, uint64(t.Unix()))
		numbers, last = append(numbers, byte(n)), now
	}
	var types, names []byte
	for _, k := range kinds {
		types = binary.BigEndian.AppendUint32(types, uint32(int32(k.offset)))
		summer := byte(0)
		if k.summer {
			summer = 1
		}
		types = append(types, summer, byte(len(names)))
		names = append(append(names, k.name...), 0)
	}
	out := append(header(0, 1, 1), 0, 0, 0, 0, 0, 0, 0) // one kind, UTC, for readers of the old format only
	out = append(out, header(len(numbers), len(kinds), len(names))...)
	out = append(append(append(append(out, times...), numbers...), types...), names...)
	rule := bytes.TrimSuffix(data, []byte("\n"))
	return append(append(append(out, '\n'), rule[bytes.LastIndexByte(rule, '\n')+1:]...), '\n')
}

// header is the header of a block with so many changes, kinds and bytes of names.
func header(changes, kinds, names int) []byte {
	b := append([]byte("TZif2"), make([]byte, 15+3*4)...) // no leap seconds, no standard-time or UTC indicators
	for _, n := range []int{changes, kinds, names} {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}
