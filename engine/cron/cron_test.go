// The times of schedules: as their fields say, and around changes of the clocks; and texts that are not schedules.
package cron

import (
	"errors"
	"testing"
	"time"

	"github.com/limitkv/limitkv/engine/zone"
)

func in(t testing.TB, name string) *time.Location {
	t.Helper()
	l, err := zone.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

const form = "2006-01-02 15:04 MST"

func TestNext(t *testing.T) {
	for _, test := range []struct {
		text, zone, after string
		want              []string
	}{
		{"* * * * *", "UTC", "2026-03-01 10:00 UTC", []string{"2026-03-01 10:01 UTC", "2026-03-01 10:02 UTC"}},
		{"*/20 9-17/4 * * *", "UTC", "2026-03-01 09:30 UTC", []string{"2026-03-01 09:40 UTC", "2026-03-01 13:00 UTC"}},
		{"5/25 0 * * *", "UTC", "2026-03-01 00:00 UTC", []string{"2026-03-01 00:05 UTC", "2026-03-01 00:30 UTC", "2026-03-01 00:55 UTC", "2026-03-02 00:05 UTC"}},
		{"0 0 29 2 *", "UTC", "2026-01-01 00:00 UTC", []string{"2028-02-29 00:00 UTC", "2032-02-29 00:00 UTC"}},
		{"0 0 29 2 *", "UTC", "2096-03-01 00:00 UTC", []string{"2104-02-29 00:00 UTC"}},
		{"0 12 * jan,JUL mon-fri", "UTC", "2026-01-30 13:00 UTC", []string{"2026-07-01 12:00 UTC"}},
		{"0 0 13 * 5", "UTC", "2026-03-01 00:00 UTC", []string{"2026-03-06 00:00 UTC", "2026-03-13 00:00 UTC", "2026-03-20 00:00 UTC"}},
		{"0 0 1-7 * */7", "UTC", "2026-03-01 00:00 UTC", []string{"2026-04-05 00:00 UTC"}},
		{"0 0 * * 7", "UTC", "2026-03-02 00:00 UTC", []string{"2026-03-08 00:00 UTC"}},
		{"0 0 * * 5-7", "UTC", "2026-03-02 00:00 UTC", []string{"2026-03-06 00:00 UTC", "2026-03-07 00:00 UTC", "2026-03-08 00:00 UTC", "2026-03-13 00:00 UTC"}},
		{"@Daily", "Asia/Kolkata", "2026-03-01 18:30 UTC", []string{"2026-03-02 18:30 UTC"}},
		// A skipped time fires at the change; a time that occurs twice fires the first time.
		{"30 2 * * *", "Europe/Berlin", "2026-03-28 02:00 UTC", []string{"2026-03-29 01:00 UTC", "2026-03-30 00:30 UTC"}},
		{"0,30 2,3 * * *", "Europe/Berlin", "2026-03-28 03:00 UTC", []string{"2026-03-29 01:00 UTC", "2026-03-29 01:30 UTC", "2026-03-30 00:00 UTC"}},
		{"30 2 * * *", "Europe/Berlin", "2026-10-24 12:00 UTC", []string{"2026-10-25 00:30 UTC", "2026-10-26 01:30 UTC"}},
		// A wildcard or a step in the minutes or hours follows elapsed time.
		{"*/30 * * * *", "Europe/Berlin", "2026-10-24 23:45 UTC", []string{"2026-10-25 00:00 UTC", "2026-10-25 00:30 UTC", "2026-10-25 01:00 UTC", "2026-10-25 01:30 UTC", "2026-10-25 02:00 UTC"}},
		{"0 * * * *", "Europe/Berlin", "2026-10-24 23:45 UTC", []string{"2026-10-25 00:00 UTC", "2026-10-25 01:00 UTC", "2026-10-25 02:00 UTC"}},
		{"@hourly", "Europe/Berlin", "2026-03-29 00:00 UTC", []string{"2026-03-29 01:00 UTC", "2026-03-29 02:00 UTC"}},
		{"15 */2 * * *", "Europe/Berlin", "2026-03-28 23:30 UTC", []string{"2026-03-29 02:15 UTC", "2026-03-29 04:15 UTC"}},
		{"*/30 2 * * *", "Europe/Berlin", "2026-10-24 12:00 UTC", []string{"2026-10-25 00:00 UTC", "2026-10-25 00:30 UTC", "2026-10-25 01:00 UTC", "2026-10-25 01:30 UTC", "2026-10-26 01:00 UTC"}},
		{"*/30 2 * * *", "Europe/Berlin", "2026-03-28 02:00 UTC", []string{"2026-03-30 00:00 UTC"}},
		{"*/20 * * * *", "Australia/Lord_Howe", "2026-04-04 14:35 UTC", []string{"2026-04-04 14:40 UTC", "2026-04-04 15:10 UTC", "2026-04-04 15:30 UTC"}},
		{"*/20 * 29 2 7", "UTC", "2026-01-01 00:00 UTC", []string{"2026-02-01 00:00 UTC"}},
		{"* * 29 2 *", "Europe/Berlin", "2024-03-01 00:00 UTC", []string{"2028-02-28 23:00 UTC"}},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25 01:10 UTC", []string{"2026-10-26 01:30 UTC"}},
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00 UTC", []string{"2026-10-03 15:30 UTC", "2026-10-04 15:15 UTC"}}, // a change of half an hour
		{"0 12 * * *", "Pacific/Apia", "2011-12-29 21:00 UTC", []string{"2011-12-29 22:00 UTC", "2011-12-30 10:00 UTC", "2011-12-30 22:00 UTC"}},
	} {
		s, err := Parse(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		at, err := time.Parse(form, test.after)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range test.want {
			if at = s.Next(at, in(t, test.zone)); at.UTC().Format(form) != want {
				t.Errorf("%s in %s: %s, want %s", test.text, test.zone, at.UTC().Format(form), want)
				break
			}
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]Error{
		"":               {1, "no minute"},
		"* * * *":        {8, "no day of the week"},
		"* * * * * *":    {11, "a sixth field"},
		"60 * * * *":     {1, "a number that is not 0 to 59 in the minute"},
		"0 24 * * *":     {3, "a number that is not 0 to 23 in the hour"},
		"0 0 0 * *":      {5, "a number that is not 1 to 31 in the day of the month"},
		"0 0 1 13 *":     {7, "a number that is not 1 to 12 in the month"},
		"0 0 1 1 8":      {9, "a number that is not 0 to 7 in the day of the week"},
		"0 5-3 * * *":    {3, "a range that ends before it begins in the hour"},
		"*/0 * * * *":    {3, "no step in the minute"},
		"*/ * * * *":     {3, "no step in the minute"},
		"1, * * * *":     {3, "nothing in the minute"},
		"a * * * *":      {1, "an unexpected character in the minute"},
		"0 0 * foo *":    {7, "an unexpected character in the month"},
		"0 0 * an *":     {7, "an unexpected character in the month"},
		"0 0 * * 1x":     {10, "an unexpected character in the day of the week"},
		"@never":         {1, "an unknown name"},
		"0 0 30 2 *":     {1, "a day that no month has"},
		"0 0 31 4,6,9 *": {1, "a day that no month has"},
		"-1 * * * *":     {1, "an unexpected character in the minute"},
		"99999 * * * *":  {1, "a number that is not 0 to 59 in the minute"},
		"0 0 * * mon-":   {13, "nothing in the day of the week"},
	} {
		_, err := Parse(text)
		var got *Error
		if !errors.As(err, &got) || *got != want {
			t.Errorf("%q: %v, want %v", text, err, &want)
		}
	}
	for _, text := range []string{"0 0 31 4 1", "0 0 29 2 *", " 0  0 * * * ", "0 0 30 2 mon"} {
		if _, err := Parse(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Each minute of a day around each change of the clocks, for ten years in ten zones. Each local time fires once, at the
// first minute that shows it or, if none does, at the first one after it. A schedule that follows elapsed time fires at
// each minute that shows it.
func TestSummerTimes(t *testing.T) {
	for _, test := range []struct {
		text    string
		elapsed bool
	}{{"0,15,30,45 0-4,23 * * *", false}, {"*/15 0-4,23 * * *", true}} {
		s, err := Parse(test.text)
		if err != nil {
			t.Fatal(err)
		}
		changes := 0
		for _, name := range []string{"Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Tehran",
			"Africa/Casablanca", "America/Santiago", "Pacific/Auckland", "Europe/Dublin", "Asia/Gaza"} {
			l := in(t, name)
			for at := time.Date(2016, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2026; changes++ {
				_, end := zone.Bounds(at.In(l))
				if end.IsZero() {
					break
				}
				around(t, &s, l, end, test.elapsed)
				at = end
			}
		}
		t.Logf("%d changes", changes)
		if changes < 150 {
			t.Errorf("only %d changes", changes)
		}
	}
}

// around compares a schedule with what the clocks of a zone show, minute by minute.
func around(t *testing.T, s *Schedule, l *time.Location, change time.Time, elapsed bool) {
	t.Helper()
	fires := func(w time.Time) bool { return w.Minute()%15 == 0 && (w.Hour() <= 4 || w.Hour() == 23) }
	fired := map[time.Time]bool{}
	last := change.Add(-36 * time.Hour).Truncate(time.Minute)
	next, from := s.Next(last, l), shown(last.In(l))
	for m := last.Add(time.Minute); m.Before(change.Add(36 * time.Hour)); m = m.Add(time.Minute) {
		to := shown(m.In(l))
		due := elapsed && fires(to)
		if !elapsed {
			// The local times up to this minute that were not shown before, including skipped ones.
			for w := from.Add(time.Minute); !w.After(to); w = w.Add(time.Minute) {
				if fires(w) && !fired[w] {
					fired[w], due = true, true
				}
			}
		}
		if to.After(from) {
			from = to
		}
		if due != next.Equal(m) {
			t.Fatalf("%s at %s (%s): due %v, next is %s", l, m.Format(form), m.In(l).Format(form), due, next.In(l).Format(form))
		}
		if due {
			next = s.Next(m, l)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"*/5 1-3,7 * jan mon-fri", "@weekly", "0 0 29 2 *", "1-2-3", "*/*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		if err == nil && !s.Next(at, time.UTC).After(at) {
			t.Fatalf("%q is never", text)
		}
	})
}

// TestLeapYears checks that in zones that a rule describes nothing loops for ever on the last day of a leap year.
func TestLeapYears(t *testing.T) {
	berlin, err := zone.Load("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"*/5 * * * *": "2028-12-31T12:05:00+01:00", "0 * 1 7 *": "2029-07-01T00:00:00+02:00", "0 3 1 7 *": "2029-07-01T03:00:00+02:00",
	} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Next(time.Date(2028, 12, 31, 12, 0, 0, 0, berlin), berlin).Format(time.RFC3339); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
