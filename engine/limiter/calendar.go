// This file is the calendar of CAL: hours, days, weeks and months of a time zone.
//
// A day, week or month begins when the zone's clock first shows its beginning. If summer time skips that time, it
// begins at the jump. So a day has 23, 24 or 25 hours, and each moment belongs to exactly one. An hour begins whenever
// the clock shows its minute. So where clocks change by whole hours, summer time does not change the length of an hour.
//
// The zones are the IANA's, which the binary contains. A stored rule has the zone's name, because the numbers of zones
// differ between processes.

package limiter

import (
	"errors"
	"sync"
	"time"

	"github.com/limitkv/limitkv/engine/zone"
)

// Unit is how long a period of a calendar is.
type Unit uint8

// The units of CAL.
const (
	Hour Unit = iota
	Day
	Week
	Month
	units
)

var unitWords = [units]string{"HOUR", "DAY", "WEEK", "MONTH"}

// fromRange is what FROM may be, by unit; the first is the default.
var fromRange = [units][2]uint8{{0, 59}, {0, 23}, {1, 7}, {1, 28}}

// Calendar is the period of CAL: an hour from a minute on, a day from an hour, a week from a weekday (1 is Monday), or
// a month from a day.
type Calendar struct {
	Unit Unit
	From uint8
	zone uint16 // an index of zones, 0 for UTC
}

// pack returns the calendar as one number, which is valid in this process only.
func (c Calendar) pack() int64 { return int64(c.Unit) | int64(c.From)<<8 | int64(c.zone)<<16 }

// Errors of a calendar.
var (
	// ErrUnit is a period that is none of the four.
	ErrUnit = errors.New("limiter: unknown calendar period")
	// ErrFrom is a FROM that the unit does not have.
	ErrFrom = errors.New("limiter: FROM out of range")
	// ErrZone is a name that no time zone has.
	ErrZone = errors.New("limiter: unknown time zone")
)

func (c Calendar) validate() error {
	if c.Unit >= units {
		return ErrUnit
	}
	if c.From < fromRange[c.Unit][0] || c.From > fromRange[c.Unit][1] {
		return ErrFrom
	}
	return nil
}

// zones are the time zones that rules have named, UTC first. Unknown names are not stored, so the list cannot grow
// beyond the world's zones.
var zones = struct {
	sync.RWMutex
	byName map[string]uint16
	all    []*time.Location
}{byName: map[string]uint16{"UTC": 0}, all: []*time.Location{time.UTC}}

// zoneNameMax is longer than the name of any zone.
const zoneNameMax = 64

// zoneOf finds a zone by its IANA name.
func zoneOf(name []byte) (uint16, error) {
	zones.RLock()
	i, ok := zones.byName[string(name)]
	zones.RUnlock()
	if ok {
		return i, nil
	}
	text := string(name)
	if len(text) > zoneNameMax {
		return 0, ErrZone
	}
	at, err := zone.Load(text)
	if err != nil {
		return 0, ErrZone
	}
	zones.Lock()
	defer zones.Unlock()
	if i, ok := zones.byName[text]; ok {
		return i, nil
	}
	i = uint16(len(zones.all))
	zones.all = append(zones.all, at)
	zones.byName[text] = i
	return i, nil
}

func (c Calendar) location() *time.Location {
	if c.zone == 0 {
		return time.UTC
	}
	zones.RLock()
	defer zones.RUnlock()
	return zones.all[c.zone]
}

// encode returns the unit, FROM, the length of the zone's name, and the name, which is empty for UTC.
func (c Calendar) encode() string {
	name := ""
	if c.zone != 0 {
		name = c.location().String()
	}
	return string([]byte{byte(c.Unit), c.From, byte(len(name))}) + name
}

// decodeCalendar reads what encode wrote. With an unknown zone name the calendar is invalid.
func decodeCalendar(p []byte, at int) (Calendar, int) {
	c := Calendar{Unit: Unit(p[at]), From: p[at+1]}
	name := p[at+3 : at+3+int(p[at+2])]
	if len(name) > 0 {
		var err error
		if c.zone, err = zoneOf(name); err != nil {
			c.Unit = units
		}
	}
	return c, at + 3 + len(name)
}

// parseCalendar reads the period of CAL at the front of args.
func parseCalendar(args [][]byte) (c Calendar, n int, err error) {
	for c.Unit = 0; c.Unit < units && !startsWith(args, unitWords[c.Unit]); c.Unit++ {
	}
	if c.Unit == units {
		return c, 0, ErrUnit
	}
	c.From = fromRange[c.Unit][0]
	zoned, from := false, false
	for n = 1; ; n += 2 {
		switch rest := args[n:]; {
		case !zoned && startsWith(rest, "TZ"):
			if zoned = true; len(rest) < 2 {
				return c, 0, ErrMissing
			}
			if c.zone, err = zoneOf(rest[1]); err != nil {
				return c, 0, err
			}
		case !from && startsWith(rest, "FROM"):
			if from = true; len(rest) < 2 {
				return c, 0, ErrMissing
			}
			v, ok := parseInt(rest[1])
			switch {
			case !ok:
				return c, 0, ErrNumber
			case v < int64(fromRange[c.Unit][0]) || v > int64(fromRange[c.Unit][1]):
				return c, 0, ErrFrom
			}
			c.From = uint8(v)
		default:
			return c, n, nil
		}
	}
}

// appendText appends the period and the options that differ from their defaults.
func (c Calendar) appendText(dst []byte) []byte {
	dst = append(append(dst, ' '), unitWords[c.Unit]...)
	if c.zone != 0 {
		dst = append(append(dst, " TZ "...), c.location().String()...)
	}
	if c.From != fromRange[c.Unit][0] {
		dst = appendInt(append(dst, " FROM "...), int64(c.From))
	}
	return dst
}

// period is the period that contains a moment, in Unix microseconds.
func (c Calendar) period(now int64) (start, end int64) {
	t := time.UnixMicro(now).In(c.location())
	if c.Unit == Hour {
		return c.hour(t)
	}
	wall := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), 0, 0, 0, time.UTC)
	var first time.Time
	switch c.Unit {
	case Day:
		wall = wall.Add(-time.Duration(c.From) * time.Hour)
		first = time.Date(wall.Year(), wall.Month(), wall.Day(), int(c.From), 0, 0, 0, time.UTC)
	case Week:
		since := (int(wall.Weekday()) + 7 - int(c.From)) % 7
		first = time.Date(wall.Year(), wall.Month(), wall.Day()-since, 0, 0, 0, 0, time.UTC)
	default:
		first = time.Date(wall.Year(), wall.Month(), int(c.From), 0, 0, 0, 0, time.UTC)
		if wall.Day() < int(c.From) {
			first = first.AddDate(0, -1, 0)
		}
	}
	// When summer time ends, the clock shows times of the previous period again. The new period has begun nevertheless.
	start = shown(first, t.Location())
	for {
		first = c.next(first)
		if end = shown(first, t.Location()); end > now {
			return start, end
		}
		start = end
	}
}

// next is the wall time at which the period ends that begins at a wall time.
func (c Calendar) next(wall time.Time) time.Time {
	switch c.Unit {
	case Day:
		return wall.AddDate(0, 0, 1)
	case Week:
		return wall.AddDate(0, 0, 7)
	}
	return wall.AddDate(0, 1, 0)
}

// shown is the first moment, in Unix microseconds, at which the zone's clock shows a wall time or a later one. The wall
// time is passed as if it were UTC.
func shown(wall time.Time, in *time.Location) int64 {
	// No zone's offset is larger than 26 hours, so at t the clock shows an earlier time.
	t := wall.Add(-26 * time.Hour).In(in)
	for {
		_, offset := t.Zone()
		_, until := zone.Bounds(t)
		at := wall.Add(-time.Duration(offset) * time.Second)
		if at.Before(t) {
			at = t // the clock skipped it
		}
		if until.IsZero() || at.Before(until) {
			return at.UnixMicro()
		}
		t = until.In(in)
	}
}

// hour is the period of HOUR around a moment: from when the clock last showed the minute to when it next shows it.
func (c Calendar) hour(t time.Time) (start, end int64) {
	return c.minuteBefore(t), c.minuteAfter(t)
}

// intoHour is how far the clock is past the minute at a moment, with an offset.
func (c Calendar) intoHour(t time.Time, offset int) time.Duration {
	const hour = int64(time.Hour / time.Microsecond)
	local := t.UnixMicro() + int64(offset)*1e6 - int64(c.From)*60e6
	return time.Duration((local%hour+hour)%hour) * time.Microsecond
}

func (c Calendar) minuteBefore(t time.Time) int64 {
	for {
		_, offset := t.Zone()
		since, _ := zone.Bounds(t)
		at := t.Add(-c.intoHour(t, offset))
		if since.IsZero() || !at.Before(since) {
			return at.UnixMicro()
		}
		t = since.Add(-time.Microsecond) // the last moment with the previous offset
	}
}

func (c Calendar) minuteAfter(t time.Time) int64 {
	for {
		_, offset := t.Zone()
		_, until := zone.Bounds(t)
		at := t.Add(time.Hour - c.intoHour(t, offset))
		if until.IsZero() || at.Before(until) {
			return at.UnixMicro()
		}
		if t = until.In(t.Location()); c.intoHour(t, offsetOf(t)) == 0 {
			return t.UnixMicro()
		}
	}
}

func offsetOf(t time.Time) int {
	_, offset := t.Zone()
	return offset
}
