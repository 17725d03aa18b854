// This file is the names of entries: ids that the server makes, and the form id#attempt, which names one lease of an
// entry.

package delayqueue

import (
	"bytes"
	"errors"
	"strconv"
)

// IDBytesMax is the longest id that a client may choose.
const IDBytesMax = 512

// ErrID is an id that is empty, too long, or contains a #, which is reserved for id#attempt.
var ErrID = errors.New("delayqueue: bad id")

// ErrZone is an unknown time zone.
var ErrZone = errors.New("delayqueue: unknown time zone")

// CheckID returns ErrID for an id that a client may not choose.
func CheckID(id []byte) error {
	if len(id) == 0 || len(id) > IDBytesMax || bytes.IndexByte(id, '#') >= 0 {
		return ErrID
	}
	return nil
}

// occurrenceBytes is how much longer the id of an occurrence can be than its schedule's.
const occurrenceBytes = 21

// IDStored tells whether a queue can contain an id.
func IDStored(id []byte) bool {
	return len(id) > 0 && len(id) <= IDBytesMax+occurrenceBytes && bytes.IndexByte(id, '#') < 0
}

// Serial is the last id that was made: the time in ms, and a count within it. It grows with every id, even if the clock
// is set back. So ids are unique, also across restarts if the clock is not set back between them.
type Serial struct{ Millis, Count int64 }

// Next is the id after s at a time.
func (s Serial) Next(nowMicros int64) Serial {
	if millis := nowMicros / 1000; millis > s.Millis {
		return Serial{millis, 0}
	}
	return Serial{s.Millis, s.Count + 1}
}

// Append appends the id as text.
func (s Serial) Append(dst []byte) []byte {
	dst = strconv.AppendInt(dst, s.Millis, 10)
	return strconv.AppendInt(append(dst, '-'), s.Count, 10)
}

// AppendName appends the name under which an entry is delivered: its id, and the attempt if it is leased.
func (e *Entry) AppendName(dst []byte) []byte {
	dst = append(dst, e.ID...)
	if e.State == Leased {
		dst = strconv.AppendInt(append(dst, '#'), e.Attempt, 10)
	}
	return dst
}

// ParseName splits a name from a client into an id and an attempt, 0 if it has none. A name that has neither form is
// returned as an id, which no entry has.
func ParseName(name []byte) (id []byte, attempt int64) {
	i := bytes.LastIndexByte(name, '#')
	if i < 0 {
		return name, 0
	}
	digits := name[i+1:]
	if len(digits) == 0 || len(digits) > 10 || digits[0] == '0' {
		return name, 0
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return name, 0
		}
		attempt = attempt*10 + int64(c-'0')
	}
	return name[:i], attempt
}
