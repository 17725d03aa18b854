package limiter

import (
	"bytes"
	"testing"
)

// available of each rule after a change of rules at start, `used` taken before.
func TestChange(t *testing.T) {
	tests := []struct {
		name, from, to string
		used           int64
		want           []int64
	}{
		{"raise a bucket", "GCRA 10 1000", "GCRA 100 1000", 10, []int64{90}},
		{"raise only its rate", "GCRA 1 10000 BURST 10", "GCRA 100 1000 BURST 10", 4, []int64{6}},
		{"lower a bucket", "GCRA 100 1000", "GCRA 10 1000", 40, []int64{-30}},
		{"raise a log", "LOG 10 1000", "LOG 12 1000", 10, []int64{2}},
		{"lower a log", "LOG 10 1000", "LOG 8 1000", 10, []int64{-2}},
		{"another period", "FIXED 10 1000", "FIXED 10 9000", 7, []int64{3}},
		{"another window", "WINDOW 10 1000", "WINDOW 20 500", 7, []int64{13}},
		{"one rule of two goes: by period", "GCRA 10 1000 GCRA 100 60000", "GCRA 90 60000", 8, []int64{82}},
		{"the order changes", "GCRA 10 1000 FIXED 100 60000", "FIXED 100 60000 GCRA 10 1000", 8, []int64{92, 2}},
		{"a rule is added", "LOG 10 1000", "LOG 10 1000 LOG 100 60000", 8, []int64{2, 100}},
		{"another algorithm", "FIXED 10 1000", "GCRA 10 1000", 8, []int64{2}},
		{"another algorithm, a log", "GCRA 10 1000", "LOG 10 1000", 8, []int64{2}},
		{"another algorithm, a window", "LOG 10 1000", "WINDOW 10 1000", 8, []int64{2}},
		{"the same", "LOG 10 1000", "LOG 10 1000", 8, []int64{2}},
	}
	for _, test := range tests {
		p := New(nil, rulesOf(t, test.from), true)
		p, d, err := Take(p, start, test.used, Try)
		if d.Limited || err != nil {
			t.Fatal(d, err)
		}
		to := rulesOf(t, test.to)
		changed := Change([]byte("x"), p, to, start)[1:]
		if err := Check(changed); err != nil || !HasRules(changed, to) || !Kept(changed) {
			t.Errorf("%s: %v %v", test.name, Rules(nil, changed), err)
		}
		if granted, _ := Totals(changed); granted != 1 {
			t.Errorf("%s: totals lost", test.name)
		}
		for i, s := range Status(nil, changed, start, nil) {
			if s.Available != test.want[i] {
				t.Errorf("%s: rule %d has %d, want %d", test.name, i, s.Available, test.want[i])
			}
		}
	}
}

// A higher rate never refuses a call that would have passed, now or later; a lower rate forgives nothing.
func TestChangeRaiseAndLower(t *testing.T) {
	rnd := newSeed(t)
	raised, lowered, compared := 0, 0, 0
	for range 6_000 {
		a := Algorithm(rnd.IntN(4))
		r := randomRule(rnd, a)
		p := New(nil, []Rule{r}, false)
		now := start
		for range 1 + rnd.IntN(6) {
			now += rnd.Int64N(r.PeriodMicros)
			p, _, _ = Take(p, now, 1+rnd.Int64N(r.Capacity()), Try)
		}
		now += rnd.Int64N(r.PeriodMicros)
		to := r
		up := rnd.IntN(2) == 0
		switch {
		case up:
			to.Count = upTo(rnd, r.Count, CountMax)
			to.PeriodMicros = upTo(rnd, PeriodMicrosMin, r.PeriodMicros)
			to.Burst = r.Burst
		default:
			to.Count = upTo(rnd, 1, r.Count)
			to.PeriodMicros = upTo(rnd, r.PeriodMicros, PeriodMicrosMax)
			to.Burst = r.Burst
		}
		if a != GCRA {
			// There the count is the capacity too.
			to.Burst = 0
		}
		if to.Validate() != nil {
			continue
		}
		changed := Change(nil, p, []Rule{to}, now)
		for range 8 {
			cost := 1 + rnd.Int64N(min(r.Capacity(), to.Capacity()))
			_, before, _ := Take(p, now, cost, Peek)
			_, after, _ := Take(changed, now, cost, Peek)
			if up && after.Limited && !before.Limited {
				t.Fatalf("%v raised to %v refuses %d: %+v", r, to, cost, after)
			}
			if !up && before.Limited && !after.Limited {
				t.Fatalf("%v lowered to %v grants %d: %+v", r, to, cost, after)
			}
			compared++
			now += rnd.Int64N(r.PeriodMicros/4 + 1)
		}
		if up {
			raised++
		} else {
			lowered++
		}
	}
	if raised < 1000 || lowered < 1000 {
		t.Errorf("only %d raised, %d lowered", raised, lowered)
	}
	t.Logf("%d compared", compared)
}

// A change there and back, or to the same rule, keeps what is in use.
func TestChangeThereAndBack(t *testing.T) {
	for _, words := range []string{"GCRA 10 1000", "GCRA 7 1000 BURST 30", "LOG 10 1000", "FIXED 10 1000"} {
		rules := rulesOf(t, words)
		p := New(nil, rules, false)
		p, _, _ = Take(p, start, 3, Try)
		p, _, _ = Take(p, start+12_345, 4, Try)
		other := rules[0]
		other.Count *= 3
		changed := Change(nil, p, []Rule{other}, start+20_000)
		changed = Change(nil, changed, rules, start+20_000)
		a, b := Status(nil, p, start+20_000, nil)[0], Status(nil, changed, start+20_000, nil)[0]
		if a != b {
			t.Errorf("%s: %+v, there and back %+v", words, a, b)
		}
		if same := Change(nil, p, rules, start+20_000); !bytes.Equal(Rules(nil, same)[0].append(nil, false), rules[0].append(nil, false)) {
			t.Errorf("%s: other rules", words)
		}
	}
}
