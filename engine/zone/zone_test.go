// Tests that all zones of the database load, and that their changes follow each other.
package zone

import (
	"errors"
	"io"
	"testing"
	"time"
)

func TestLoad(t *testing.T) {
	if n := len(files()); n < 500 {
		t.Errorf("there are %d zones", n)
	}
	for name := range files() {
		if _, err := Load(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	berlin, err := Load("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	if at := time.Unix(1_700_000_000, 0).In(berlin).Format(time.RFC3339); at != "2023-11-14T23:13:20+01:00" {
		t.Error(at)
	}
	if utc, err := Load("UTC"); err != nil || utc.String() != "UTC" {
		t.Error(utc, err)
	}
	for _, name := range []string{"", "Local", "europe/berlin", "Europe", "Europe/", "../Europe/Berlin", "right/Europe/Berlin", "/etc/localtime"} {
		if _, err := Load(name); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestBounds walks each zone from change to change.
func TestBounds(t *testing.T) {
	lastDays := 0
	for name := range files() {
		in, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		at, last := time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC).In(in), time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
		for at.Before(last) {
			since, until := Bounds(at)
			if until.IsZero() {
				break
			}
			if !until.After(at) || since.After(at) {
				t.Fatalf("%s at %v: from %v until %v", name, at, since, until)
			}
			_, offset := at.Zone()
			for _, within := range []time.Time{until.Add(-time.Second), at.Add(until.Sub(at) / 2)} {
				if _, is := within.Zone(); is != offset {
					t.Errorf("%s at %v: the offset is %d, at %v %d", name, at, offset, within, is)
				}
			}
			if utc := at.UTC(); utc.YearDay() == 366 {
				lastDays++
			}
			at = until
		}
	}
	if lastDays < 100 {
		t.Errorf("only %d last days of leap years", lastDays)
	}
}

// TestSpelledOut compares each zone with the standard library's reading of the same data.
func TestSpelledOut(t *testing.T) {
	compared := 0
	for name, f := range files() {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		want, err := time.LoadLocationFromTZData(name, data)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for at := time.Date(1790, 1, 1, 0, 0, 0, 0, time.UTC).In(want); at.Year() < 2150; compared++ {
			_, until := Bounds(at)
			if until.IsZero() {
				until = at.AddDate(400, 0, 0)
			}
			for _, x := range []time.Time{at, at.Add(until.Sub(at) / 2), until.Add(-time.Second)} {
				if a, b := kindAt(x.In(want)), kindAt(x.In(got)); a != b {
					t.Fatalf("%s at %v: %v, want %v", name, x, b, a)
				}
			}
			at = until.In(want)
		}
	}
	if compared < 100_000 {
		t.Errorf("%d times compared", compared)
	}
}

func BenchmarkLoad(b *testing.B) {
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			if _, err := read("Europe/Berlin"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			if _, err := Load("Europe/Berlin"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
