package limiter

import (
	"testing"
	"time"

	"github.com/limitkv/limitkv/engine/zone"
)

// The zones in which clocks change in every known way: at night and at midnight, by an hour and by half an hour, twice
// a year and four times, and never.
var changingZones = []string{
	"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana", "Asia/Beirut",
	"Africa/Casablanca", "America/Santiago", "Asia/Tehran", "Asia/Kathmandu", "Africa/Cairo",
}

const (
	firstYear, lastYear = 2016, 2026
)

// naiveLabel numbers the period that a wall clock shows at a moment. Numbers increase, so a period has begun as soon as
// its number, or a higher one, was shown.
func naiveLabel(c Calendar, wall time.Time) int {
	days := func(t time.Time) int {
		return int(time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC).Unix() / 86400)
	}
	switch c.Unit {
	case Day:
		shown := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), 0, 0, time.UTC)
		return days(shown.Add(-time.Duration(c.From) * time.Hour))
	case Week: // 1 January 1970 was a Thursday, the fourth day
		return (days(wall) + 4 - int(c.From) + 7) / 7
	}
	n := wall.Year()*12 + int(wall.Month())
	if wall.Day() < int(c.From) {
		n--
	}
	return n
}

// naiveBegins finds all moments between two at which a period begins, by looking at the clock again and again.
func naiveBegins(c Calendar, from, to time.Time, step time.Duration) (begins []int64) {
	at := c.location()
	highest := -1 << 60
	for t := from; t.Before(to); t = t.Add(step) {
		wall := t.In(at)
		if c.Unit == Hour {
			if wall.Minute() == int(c.From) {
				begins = append(begins, t.UnixMicro())
			}
			continue
		}
		if n := naiveLabel(c, wall); n > highest {
			if highest != -1<<60 { // the first one began before
				begins = append(begins, t.UnixMicro())
			}
			highest = n
		}
	}
	return begins
}

// checkPeriods compares a calendar with the beginnings of its periods.
func checkPeriods(t *testing.T, c Calendar, begins []int64) {
	t.Helper()
	for i := 1; i < len(begins); i++ {
		from, to := begins[i-1], begins[i]
		for _, at := range []int64{from, from + 1, (from + to) / 2, to - 1} {
			if start, end := c.period(at); start != from || end != to {
				t.Fatalf("%s of %s at %v: %v to %v, want %v to %v", unitWords[c.Unit], c.location(), time.UnixMicro(at).UTC(),
					time.UnixMicro(start).UTC(), time.UnixMicro(end).UTC(), time.UnixMicro(from).UTC(), time.UnixMicro(to).UTC())
			}
		}
	}
}

// Every change of summer time of ten zones over ten years.
func TestCalendar(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about size")
	}
	changes, hours := 0, 0
	for _, name := range changingZones {
		number, err := zoneOf([]byte(name))
		if err != nil {
			t.Fatal(err)
		}
		from := time.Date(firstYear, 1, 1, 0, 0, 0, 0, time.UTC)
		to := time.Date(lastYear, 1, 1, 0, 0, 0, 0, time.UTC)
		for _, c := range []Calendar{
			{Unit: Day}, {Unit: Day, From: 2}, {Unit: Day, From: 23}, {Unit: Week, From: 1}, {Unit: Week, From: 7},
			{Unit: Month, From: 1}, {Unit: Month, From: 28},
		} {
			c.zone = number
			begins := naiveBegins(c, from, to, 15*time.Minute)
			if len(begins) < 110 {
				t.Fatalf("%s %s has %d periods", name, unitWords[c.Unit], len(begins))
			}
			checkPeriods(t, c, begins)
		}
		for at := from.In(zones.all[number]); ; {
			_, until := zone.Bounds(at)
			if until.IsZero() || until.After(to) {
				break
			}
			changes++
			for _, minute := range []uint8{0, 1, 29, 30, 59} {
				begins := naiveBegins(Calendar{Hour, minute, number}, until.Add(-5*time.Hour), until.Add(5*time.Hour), time.Minute)
				checkPeriods(t, Calendar{Hour, minute, number}, begins)
				hours += len(begins)
			}
			at = until
		}
	}
	t.Logf("%d changes of the clock, %d hours", changes, hours)
	if changes < 120 || hours < 5000 {
		t.Errorf("only %d changes and %d hours: the test proves little", changes, hours)
	}
}

// Samoa had no 30 December 2011.
func TestCalendarDayThatWasNot(t *testing.T) {
	zone, err := zoneOf([]byte("Pacific/Apia"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []Calendar{{Day, 0, zone}, {Day, 5, zone}, {Week, 5, zone}, {Month, 1, zone}} {
		from := time.Date(2011, 11, 20, 0, 0, 0, 0, time.UTC)
		checkPeriods(t, c, naiveBegins(c, from, from.AddDate(0, 4, 0), time.Minute))
	}
}

// What is granted on the days on which clocks change, and when all is back.
func TestCalendarReset(t *testing.T) {
	for _, x := range []struct {
		rule, at string
		hours    float64
	}{
		{"CAL 5 DAY TZ Europe/Berlin", "2024-03-31T00:00:00+01:00", 23},
		{"CAL 5 DAY TZ Europe/Berlin", "2024-10-27T00:00:00+02:00", 25},
		{"CAL 5 DAY TZ Europe/Berlin FROM 6", "2024-10-27T05:59:00+01:00", 1. / 60},
		{"CAL 5 HOUR TZ Europe/Berlin", "2024-10-27T02:30:00+02:00", 0.5},
		{"CAL 5 MONTH TZ America/New_York", "2024-11-01T00:00:00-04:00", 30*24 + 1},
		{"CAL 5 WEEK", "2024-01-07T23:00:00Z", 1},
		{"CAL 5 WEEK FROM 7", "2024-01-07T00:00:00Z", 7 * 24},
		{"CAL 5 MONTH FROM 28", "2024-02-27T12:00:00Z", 12},
		{"CAL 5 HOUR FROM 45", "2024-02-27T12:45:00Z", 1},
	} {
		when, err := time.Parse(time.RFC3339, x.at)
		if err != nil {
			t.Fatal(err)
		}
		now, reset := when.UnixMicro(), int64(x.hours*3600*second)
		p := New(nil, rulesOf(t, x.rule), false)
		p, d, _ := Take(p, now, 5, Try)
		if d.Limited || d.ResetAfterMicros != reset {
			t.Errorf("%s at %s: %+v, want reset after %d", x.rule, x.at, d, reset)
		}
		if p, d, _ = Take(p, now+reset-1, 1, Try); !d.Limited || d.RetryAfterMicros != 1 {
			t.Errorf("%s at %s: a moment before the end: %+v", x.rule, x.at, d)
		}
		if _, d, _ = Take(p, now+reset, 5, Try); d.Limited {
			t.Errorf("%s at %s: at the end: %+v", x.rule, x.at, d)
		}
		// A clock that was set back gives nothing back.
		if _, d, _ = Take(p, now-3600*second, 1, Try); !d.Limited {
			t.Errorf("%s at %s: before: %+v", x.rule, x.at, d)
		}
	}
}

func BenchmarkCalendar(b *testing.B) {
	for _, words := range []string{"CAL 5 HOUR", "CAL 5 DAY TZ Europe/Berlin", "CAL 5 MONTH TZ Europe/Berlin"} {
		b.Run(words, func(b *testing.B) {
			r := rulesOf(b, words)[0]
			b.ReportAllocs()
			for b.Loop() {
				r.Calendar().period(start)
			}
		})
	}
}
