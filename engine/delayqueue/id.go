// This file is the names of entries: those that the server makes, and the form
// id#attempt that fences a lease.

package delayqueue

import (
	"bytes"
	"errors"
	"strconv"
)

// IDBytesMax is the longest id that a client may choose.
const IDBytesMax = 512

// ErrID is an id that is empty, too long, or has a # in it, which is kept for
// id#attempt.
var ErrID = errors.New("delayqueue: bad id")

// ErrZone is a time zone that there is not.
var ErrZone = errors.New("delayqueue: unknown time zone")

// CheckID returns ErrID for an id that a client may not choose.
func CheckID(id []byte) error {
	if len(id) == 0 || len(id) > IDBytesMax || bytes.IndexByte(id, '#') >= 0 {
		return ErrID
	}
	return nil
}

// occurrenceBytes is what an occurrence's id can have more than its schedule's.
const occurrenceBytes = 21

// IDStored tells whether a queue can have an id.
func IDStored(id []byte) bool {
	return len(id) > 0 && len(id) <= IDBytesMax+occurrenceBytes && bytes.IndexByte(id, '#') < 0
}

// Serial is the last id that was made: the time in ms, and a count within it.
// It grows with every id even if the clock is put back, so ids are unique also
// across restarts, as long as the clock is not put back between them.
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

// AppendName appends the name that an entry is handed out under: its id, and
// the attempt if it is leased.
func (e *Entry) AppendName(dst []byte) []byte {
	dst = append(dst, e.ID...)
	if e.State == Leased {
		dst = strconv.AppendInt(append(dst, '#'), e.Attempt, 10)
	}
	return dst
}

// ParseName splits a name that a client gives: an id, and an attempt, 0 if none
// is given. A name that is neither form is an id that no entry has.
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
