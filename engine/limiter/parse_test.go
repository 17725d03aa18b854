package limiter

// Rules as clients write them, good and bad, and bytes that are no limiter.

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	tests := []struct {
		words string
		want  []Rule
		err   error
	}{
		{"GCRA 100 60000", []Rule{{Algorithm: GCRA, Count: 100, PeriodMicros: 60_000_000, Burst: 100}}, nil},
		{"gcra 100 60000 burst 5", []Rule{{Algorithm: GCRA, Count: 100, PeriodMicros: 60_000_000, Burst: 5}}, nil},
		{"LOG 1 1", []Rule{{Algorithm: Log, Count: 1, PeriodMicros: 1000}}, nil},
		{"Window 3 7 FIXED 4 9", []Rule{{Algorithm: Window, Count: 3, PeriodMicros: 7000}, {Algorithm: Fixed, Count: 4, PeriodMicros: 9000, Burst: 0}}, nil},
		{"GCRA 1000000000000 315576000000", []Rule{{Algorithm: GCRA, Count: CountMax, PeriodMicros: PeriodMicrosMax, Burst: CountMax}}, nil},
		{"", nil, nil},
		{"LEAKY 1 1", nil, ErrWord},
		{"LOG 1 1 BURST 3", nil, ErrWord},
		{"GCRA 1 1 BURST 3 4", nil, ErrWord},
		{"GCRA 1", nil, ErrMissing},
		{"LOG", nil, ErrMissing},
		{"GCRA 1 1 BURST", nil, ErrMissing},
		{"LOG x 1", nil, ErrNumber},
		{"LOG 1 1.5", nil, ErrNumber},
		{"LOG +1 1", nil, ErrNumber},
		{"LOG 01 1", nil, ErrNumber},
		{"GCRA 1 1 BURST x", nil, ErrNumber},
		{"LOG 99999999999999999999 1", nil, ErrNumber},
		{"LOG 0 1000", nil, ErrCount},
		{"LOG -1 1000", nil, ErrCount},
		{"FIXED 1000000000001 1000", nil, ErrCount},
		{"LOG 0 0", nil, ErrCount},
		{"LOG 1 0", nil, ErrPeriod},
		{"LOG 1 -5", nil, ErrPeriod},
		{"WINDOW 1 315576000001", nil, ErrPeriod},
		{"WINDOW 1 9223372036854775807", nil, ErrPeriod},
		{"GCRA 1 1 BURST 0", nil, ErrBurst},
		{"GCRA 1 1 BURST 1000000000001", nil, ErrBurst},
		{"GCRA 1 315576000000 BURST 1000000", nil, ErrFill},
		{strings.Repeat("LOG 1 1 ", RulesMax+1), nil, ErrRules},
	}
	for _, test := range tests {
		got, err := ParseRules(nil, bytes.Fields([]byte(test.words)))
		if !errors.Is(err, test.err) {
			t.Errorf("%q: %v, want %v", test.words, err, test.err)
		}
		if err == nil && !sameRules(got, test.want) {
			t.Errorf("%q: %v, want %v", test.words, got, test.want)
		}
	}
}

func sameRules(a, b []Rule) bool {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// Whatever parses is valid, is written back the same, and makes a limiter.
func FuzzParse(f *testing.F) {
	for _, words := range []string{"GCRA 100 60000 BURST 3", "LOG 1 1 FIXED 9 9", "window 12345 315576000000", "GCRA 1 1 BURST -0"} {
		f.Add(words)
	}
	f.Fuzz(func(t *testing.T, words string) {
		rules, err := ParseRules(nil, bytes.Split([]byte(words), []byte(" ")))
		if err != nil || len(rules) == 0 {
			return
		}
		var text []byte
		for _, r := range rules {
			if err := r.Validate(); err != nil {
				t.Fatalf("%q: %v", words, err)
			}
			text = r.AppendText(append(text, ' '))
		}
		again, err := ParseRules(nil, bytes.Fields(text))
		if err != nil || !sameRules(rules, again) {
			t.Fatalf("%q: %v, written %q: %v %v", words, rules, text, again, err)
		}
		p := New(nil, rules, false)
		if err := Check(p); err != nil || !HasRules(p, rules) || !sameRules(Rules(nil, p), rules) {
			t.Fatalf("%q: %x %v", words, p, err)
		}
		if _, d, err := Take(p, start, Capacity(p), Try); err != nil || d.Limited {
			t.Fatalf("%q: the capacity is refused: %+v %v", words, d, err)
		}
	})
}

// Bytes that pass the check can be worked with, whatever they are.
func FuzzCheck(f *testing.F) {
	for _, words := range []string{"GCRA 7 60000", "LOG 9 1000 LOG 8 900", "WINDOW 3 5", "FIXED 4 4 GCRA 1 1 BURST 9"} {
		p := New(nil, rulesOf(f, words), false)
		f.Add(bytes.Clone(p), int64(1), int64(5))
		p, _, _ = Take(p, start, 1, Try)
		p, _, _ = Take(p, start+50, 1, Try)
		f.Add(p, int64(1), int64(start))
	}
	f.Fuzz(func(t *testing.T, p []byte, cost, now int64) {
		if Check(p) != nil || now < 0 || now > 1<<61 {
			return
		}
		for _, mode := range []Mode{Peek, Try, Force} {
			var err error
			if p, _, err = Take(p, now, cost, mode); err == nil && Check(p) != nil {
				t.Fatalf("mode %d: %v", mode, Check(p))
			}
		}
		if _, err := Release(p, now, cost); err == nil && Check(p) != nil {
			t.Fatal(Check(p))
		}
		FullAt(p)
		Status(nil, p, now, nil)
	})
}
