package limiter

import (
	"bytes"
	"testing"
)

// When a count no longer fits in two bytes, the limiter becomes wide, and loses nothing.
func TestCompactCounts(t *testing.T) {
	for _, words := range []string{"GCRA 1000000 1000", "FIXED 1000000 9000", "LOG 3 60000 TOTAL 1000000"} {
		granted := New(nil, rulesOf(t, words), false)
		refused := bytes.Clone(granted)
		for i := int64(1); i <= compactMax+2; i++ {
			var d Decision
			var err error
			if granted, d, err = Take(granted, start+i*60*second, 1, Try); err != nil || d.Limited {
				t.Fatal(words, i, d, err)
			}
			refused = CountRefused(refused)
			if i < compactMax-1 {
				continue
			}
			if g, r := Totals(granted); g != i || r != 0 {
				t.Errorf("%s: %d granted, %d refused, want %d", words, g, r, i)
			}
			if g, r := Totals(refused); g != 0 || r != i {
				t.Errorf("%s: %d granted, %d refused, want %d refused", words, g, r, i)
			}
			for _, p := range [][]byte{granted, refused} {
				if err := Check(p); err != nil || compact(p) != (i <= compactMax) || !HasRules(p, rulesOf(t, words)) {
					t.Errorf("%s: after %d: compact %v, %v", words, i, compact(p), err)
				}
				if !bytes.Equal(Compact(p), p) {
					t.Errorf("%s: after %d: another form", words, i)
				}
			}
		}
	}
}

// Refused calls get the same replies before and after their count no longer fits in two bytes and the limiter becomes
// wide.
func TestCompactRefuses(t *testing.T) {
	p := New(nil, rulesOf(t, "GCRA 1 60000"), false)
	p, _, _ = Take(p, start, 1, Try)
	for i := int64(1); i <= compactMax+2; i++ {
		var d Decision
		if p, d, _ = Take(p, start+i, 1, Try); !d.Limited || d.RetryAfterMicros != 60*second-i {
			t.Fatal(i, d)
		}
	}
	if granted, refused := Totals(p); granted != 1 || refused != compactMax+2 || compact(p) {
		t.Errorf("%d granted, %d refused, compact %v", granted, refused, compact(p))
	}
}

// Both forms have the same rules, states and counts, and can be converted into each other.
func TestCompactForms(t *testing.T) {
	rnd := newSeed(t)
	seconds, shadows := 0, 0
	for range 5_000 {
		var rules []Rule
		for range 1 + rnd.IntN(3) {
			r := randomRule(rnd, Algorithm(rnd.IntN(4)))
			if rnd.IntN(2) == 0 && r.PeriodMicros < PeriodMicrosMax/second {
				longer := r
				longer.PeriodMicros *= second
				if longer.Validate() == nil {
					r = longer
					seconds++
				}
			}
			rules = append(rules, r)
		}
		p := New(nil, rules, rnd.IntN(2) == 0)
		if rnd.IntN(4) == 0 {
			p = SetShadow(p, true)
			shadows++
		}
		wide := AppendWide([]byte("x"), p)[1:]
		for i := range int64(5) {
			cost := 1 + rnd.Int64N(3)
			var d, other Decision
			var err, otherErr error
			p, d, err = Take(p, start+i*1000, cost, Try)
			wide, other, otherErr = Take(wide, start+i*1000, cost, Try)
			if d != other || err != otherErr {
				t.Fatalf("%v: %+v %v, wide %+v %v", rules, d, err, other, otherErr)
			}
		}
		if !bytes.Equal(AppendWide(nil, p), wide) || !bytes.Equal(Compact(wide), p) {
			t.Fatalf("%v:\n%x\n%x as wide\n%x\n%x as compact", rules, p, wide, AppendWide(nil, p), Compact(wide))
		}
		if compact(wide) || Check(wide) != nil || Check(p) != nil || FullAt(p) != FullAt(wide) {
			t.Fatalf("%v: %v, %v", rules, Check(wide), Check(p))
		}
	}
	if seconds < 500 || shadows < 500 {
		t.Errorf("%d periods of seconds, %d shadows", seconds, shadows)
	}
}

// A compact limiter from outside must write each rule in the only valid form.
func TestCompactCheck(t *testing.T) {
	p := New(nil, rulesOf(t, "GCRA 10 2000"), false)
	micros := Rules(nil, p)[0].append(bytes.Clone(p[:compactHead]), false)
	micros = append(micros, make([]byte, 8)...)
	if Check(p) != nil || Check(micros) == nil {
		t.Errorf("%v, %v", Check(p), Check(micros))
	}
	wide := AppendWide(nil, p)
	if wide[headSize] |= secondsFlag; Check(wide) == nil {
		t.Error("a wide limiter with seconds")
	}
}
