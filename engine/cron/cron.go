// Package cron, internal to the server, computes the times of a cron schedule in a time zone. A schedule has five
// fields: minute, hour, day of the month, month, day of the week.
//
// A field is *, a number or a range a-b, each optionally with a step /n, or several of these separated by commas. Months
// and days of the week also have English names of three letters; 0 and 7 are Sunday. As in Vixie's cron, if both day
// fields are restricted (neither begins with *), either one suffices. @hourly, @daily or @midnight, @weekly, @monthly,
// @yearly or @annually are abbreviations of schedules.
//
// Changes of the clocks are handled as in Vixie's cron. If the minute or the hour begins with *, the schedule follows
// elapsed time: it fires whenever the clocks show one of its times, so in both of two hours with the same name.
// Otherwise each local time fires once: a time that occurs twice fires the first time, and a skipped one fires at the
// moment of the change. Rejected: the existing libraries, which skip such a time altogether or fire a repeated one
// twice, and do not report where in a text the error is.
package cron

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/limitkv/limitkv/engine/zone"
)

// Schedule is a set of local times.
type Schedule struct {
	minutes, hours, days, months, weekdays uint64 // bits
	anyDay, anyWeekday                     bool   // the field begins with *
	elapsed                                bool   // the field of the minute or the hour begins with *
}

// Error says why a text is not a schedule, and at which byte, counted from 1.
type Error struct {
	At      int
	Problem string
}

func (e *Error) Error() string { return fmt.Sprintf("%s at position %d", e.Problem, e.At) }

var short = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
	"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}

// field describes the values of one of the five fields.
type field struct {
	name   string
	lo, hi int
	names  string // three letters each; the first name means lo
}

var fields = [...]field{
	{"minute", 0, 59, ""},
	{"hour", 0, 23, ""},
	{"day of the month", 1, 31, ""},
	{"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"},
	{"day of the week", 0, 7, "sunmontuewedthufrisat"},
}

// Parse reads a schedule. Its error is an *Error.
func Parse(text string) (s Schedule, err error) {
	if strings.HasPrefix(text, "@") {
		long, ok := short[strings.ToLower(text)]
		if !ok {
			return s, &Error{1, "an unknown name"}
		}
		text = long
	}
	sets := [...]*uint64{&s.minutes, &s.hours, &s.days, &s.months, &s.weekdays}
	at, n := 0, 0
	for {
		for at < len(text) && text[at] == ' ' {
			at++
		}
		if at == len(text) {
			break
		}
		end := at
		for end < len(text) && text[end] != ' ' {
			end++
		}
		if n == len(fields) {
			return s, &Error{at + 1, "a sixth field"}
		}
		p := parser{text[:end], at}
		bits, problem := p.list(&fields[n])
		if problem != "" {
			return s, &Error{p.at + 1, problem + " in the " + fields[n].name}
		}
		*sets[n] = bits
		switch n {
		case 0, 1:
			s.elapsed = s.elapsed || text[at] == '*'
		case 2:
			s.anyDay = text[at] == '*'
		case 4:
			s.anyWeekday = text[at] == '*'
		}
		at = end
		n++
	}
	if n < len(fields) {
		return s, &Error{len(text) + 1, "no " + fields[n].name}
	}
	if s.weekdays&(1<<7) != 0 {
		s.weekdays |= 1
	}
	if s.never() {
		return s, &Error{1, "a day that no month has"}
	}
	return s, nil
}

// never reports whether none of the months has any of the days.
func (s *Schedule) never() bool {
	if !s.anyDay && !s.anyWeekday {
		return false
	}
	for m := 1; m <= 12; m++ {
		if s.months&(1<<m) != 0 && s.days&(1<<(daysMost[m]+1)-1) != 0 {
			return false
		}
	}
	return true
}

var daysMost = [...]int{0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

type parser struct {
	text string
	at   int
}

// list reads a field.
func (p *parser) list(f *field) (bits uint64, problem string) {
	for {
		part, problem := p.part(f)
		if problem != "" {
			return 0, problem
		}
		bits |= part
		if p.at == len(p.text) {
			return bits, ""
		}
		if p.text[p.at] != ',' {
			return 0, "an unexpected character"
		}
		p.at++
	}
}

// part reads *, a number or a range, and a step.
func (p *parser) part(f *field) (bits uint64, problem string) {
	lo, hi, step, begin := f.lo, f.hi, 1, p.at
	single := false
	if p.is('*') {
		if f.hi == 7 {
			hi = 6
		}
	} else {
		if lo, problem = p.value(f); problem != "" {
			return 0, problem
		}
		hi, single = lo, true
		if p.is('-') {
			if hi, problem = p.value(f); problem != "" {
				return 0, problem
			}
			if single = false; hi < lo {
				p.at = begin
				return 0, "a range that ends before it begins"
			}
		}
	}
	if p.is('/') {
		from := p.at
		n, ok := p.number()
		if !ok || n == 0 {
			p.at = from
			return 0, "no step"
		}
		if step = n; single {
			hi = f.hi
			if f.hi == 7 {
				hi = 6
			}
		}
	}
	for v := lo; v <= hi; v += step {
		bits |= 1 << v
	}
	return bits, ""
}

func (p *parser) is(c byte) bool {
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

// number reads digits.
func (p *parser) number() (n int, ok bool) {
	end := p.at
	for end < len(p.text) && end-p.at < 4 && p.text[end] >= '0' && p.text[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(p.text[p.at:end])
	if err != nil {
		return 0, false
	}
	p.at = end
	return n, true
}

// value reads a number or a name.
func (p *parser) value(f *field) (n int, problem string) {
	from := p.at
	if n, ok := p.number(); ok {
		if n < f.lo || n > f.hi {
			p.at = from
			return 0, fmt.Sprintf("a number that is not %d to %d", f.lo, f.hi)
		}
		return n, ""
	}
	if len(p.text)-p.at >= 3 && f.names != "" {
		i := strings.Index(f.names, strings.ToLower(p.text[p.at:p.at+3]))
		if i >= 0 && i%3 == 0 {
			p.at += 3
			return f.lo + i/3, ""
		}
	}
	if p.at == len(p.text) {
		return 0, "nothing"
	}
	return 0, "an unexpected character"
}

// yearsMost is how many years ahead Next searches: a 29 February that is a Sunday can be forty years away.
const yearsMost = 41

// Next is the first time of the schedule after t, in a zone; the zero Time if there
// is none.
func (s *Schedule) Next(t time.Time, in *time.Location) time.Time {
	if s.elapsed {
		return s.nextElapsed(t, in)
	}
	w := shown(t.In(in)).Truncate(time.Minute)
	for end := w.AddDate(yearsMost, 0, 0); w.Before(end); {
		w = s.nextLocal(w.Add(time.Minute), end)
		if at := instant(w, in); at.After(t) {
			return at
		}
	}
	return time.Time{}
}

// nextElapsed is Next for a schedule that follows elapsed time. It searches from one change of the clocks to the next.
func (s *Schedule) nextElapsed(t time.Time, in *time.Location) time.Time {
	t = t.In(in)
	w := shown(t).Truncate(time.Minute).Add(time.Minute)
	for last := t.AddDate(yearsMost, 0, 0); t.Before(last); {
		_, seconds := t.Zone()
		offset := time.Duration(seconds) * time.Second
		_, change := zone.Bounds(t)
		if change.IsZero() || change.After(last) {
			change = last
		}
		end := change.UTC().Add(offset)
		if w = s.nextLocal(w, end); w.Before(end) {
			return w.Add(-offset).In(in)
		}
		t = change.In(in)
		w = shown(t.Add(time.Minute - 1)).Truncate(time.Minute)
	}
	return time.Time{}
}

// shown is the local time that the zone's clocks show, expressed in UTC.
func shown(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// nextLocal is the first local time of the schedule from w on, end if there is none before end.
func (s *Schedule) nextLocal(w, end time.Time) time.Time {
	for w.Before(end) {
		year, month, day := w.Date()
		switch {
		case s.months&(1<<month) == 0:
			w = time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC)
		case !s.onDay(day, w.Weekday()):
			w = time.Date(year, month, day+1, 0, 0, 0, 0, time.UTC)
		case s.hours&(1<<w.Hour()) == 0:
			w = time.Date(year, month, day, w.Hour()+1, 0, 0, 0, time.UTC)
		case s.minutes&(1<<w.Minute()) == 0:
			w = w.Add(time.Minute)
		default:
			return w
		}
	}
	return end
}

func (s *Schedule) onDay(day int, weekday time.Weekday) bool {
	d, w := s.days&(1<<day) != 0, s.weekdays&(1<<weekday) != 0
	if s.anyDay || s.anyWeekday {
		return d && w
	}
	return d || w
}

// instant is when a zone's clocks show a local time: the first time if they show it twice; if they skip it, the moment
// when they do.
func instant(w time.Time, in *time.Location) time.Time {
	t := time.Date(w.Year(), w.Month(), w.Day(), w.Hour(), w.Minute(), 0, 0, in)
	begin, end := zone.Bounds(t)
	switch got := shown(t); {
	case got.After(w): // skipped: t was computed with the offset before the change
		return begin
	case got.Before(w):
		return end
	}
	// The clocks may have shown w already before they were put back.
	if begin.IsZero() {
		return t
	}
	_, offset := t.Zone()
	_, before := begin.Add(-time.Second).Zone()
	if earlier := t.Add(time.Duration(offset-before) * time.Second); earlier.Before(begin) && shown(earlier).Equal(w) {
		return earlier
	}
	return t
}
