package zone

// The database tells of the future by a rule, for which the year of each time has to be found: what it takes to know what a
// clock shows is then four times as much. So the changes until lastYear are spelled out, as in files of the database's older form.

import (
	"bytes"
	"encoding/binary"
	"time"
)

// firstYear has no changes yet, in any zone.
const firstYear, lastYear = 1800, 2100

// kind is what clocks go by for a time.
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

// spelledOut is a zone's data, in the form of its files (RFC 9636), with all changes.
func spelledOut(in *time.Location, data []byte) []byte {
	t, end := time.Date(firstYear, 1, 1, 0, 0, 0, 0, time.UTC).In(in), time.Date(lastYear, 1, 1, 0, 0, 0, 0, time.UTC)
	kinds := []kind{kindAt(t)} // the first is that of the time before all changes, and of no change
	last := kinds[0]
	var times, numbers []byte
	for {
		_, until := Bounds(t)
		if until.IsZero() || until.After(end) {
			break
		}
		t = until.In(in)
		now := kindAt(t)
		if now == last { // the bounds of a year
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
	out := append(header(0, 1, 1), 0, 0, 0, 0, 0, 0, 0) // one kind, UTC, for who reads no more than this
	out = append(out, header(len(numbers), len(kinds), len(names))...)
	out = append(append(append(append(out, times...), numbers...), types...), names...)
	rule := bytes.TrimSuffix(data, []byte("\n"))
	return append(append(append(out, '\n'), rule[bytes.LastIndexByte(rule, '\n')+1:]...), '\n')
}

// header is that of a block with so many changes, kinds and bytes of names.
func header(changes, kinds, names int) []byte {
	b := append([]byte("TZif2"), make([]byte, 15+3*4)...) // no leap seconds, nothing on standard time and UTC
	for _, n := range []int{changes, kinds, names} {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}
