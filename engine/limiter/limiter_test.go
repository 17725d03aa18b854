package limiter

import (
	"bytes"
	"errors"
	"testing"
)

// start is some time, in microseconds.
const start int64 = 1_700_000_000_000_000

const second = 1_000_000

// rulesOf reads rules as a client writes them.
func rulesOf(t testing.TB, words string) []Rule {
	t.Helper()
	rules, err := ParseRules(nil, bytes.Fields([]byte(words)))
	if err != nil {
		t.Fatalf("%q: %v", words, err)
	}
	return rules
}

// Each line is one call, at a time in ms, and the five integers of its reply.
func TestSequences(t *testing.T) {
	type call struct {
		atMillis, cost int64
		mode           Mode
		limited        bool
		limit, remaining,
		retryMillis, resetMillis int64
	}
	tests := map[string][]call{
		"GCRA 3 3000": {
			{0, 1, Try, false, 3, 2, -1, 1000},
			{0, 2, Try, false, 3, 0, -1, 3000},
			{0, 1, Try, true, 3, 0, 1000, 3000},
			{999, 1, Try, true, 3, 0, 1, 2001},
			{1000, 1, Try, false, 3, 0, -1, 3000},
			{1000, 3, Peek, true, 3, 0, 3000, 3000},
			{2500, 1, Peek, false, 3, 1, -1, 1500},
			{2500, 2, Force, false, 3, 0, -1, 3500},
			{2500, 1, Try, true, 3, 0, 1500, 3500},
			{9000, 3, Try, false, 3, 0, -1, 3000},
		},
		"GCRA 3 1000 BURST 1": {
			// A third of a second is 333.3 ms: a caller waits 334.
			{0, 1, Try, false, 1, 0, -1, 334},
			{333, 1, Try, true, 1, 0, 1, 1},
			{334, 1, Try, false, 1, 0, -1, 334},
		},
		"LOG 3 1000": {
			{0, 1, Try, false, 3, 2, -1, 1000},
			{100, 2, Try, false, 3, 0, -1, 1000},
			{200, 1, Try, true, 3, 0, 800, 900},
			{200, 2, Try, true, 3, 0, 900, 900},
			{999, 1, Try, true, 3, 0, 1, 101},
			{1000, 1, Try, false, 3, 0, -1, 1000},
			{1100, 2, Try, false, 3, 0, -1, 1000},
			{1100, 4, Force, false, 3, 0, -1, 1000},
			{2000, 1, Try, true, 3, 0, 100, 100},
			{2100, 3, Try, false, 3, 0, -1, 1000},
		},
		"WINDOW 10 1000": {
			{0, 8, Try, false, 10, 2, -1, 2000},
			{500, 2, Try, false, 10, 0, -1, 1500},
			{900, 1, Try, true, 10, 0, 200, 1100},
			// 10 of the window before weigh 9 after a tenth of this one.
			{1100, 1, Try, false, 10, 0, -1, 1900},
			{1150, 1, Try, true, 10, 0, 50, 1850},
			{1500, 4, Try, false, 10, 0, -1, 1500},
			{3000, 10, Try, false, 10, 0, -1, 2000},
		},
		"FIXED 2 1000": {
			{300, 1, Try, false, 2, 1, -1, 1000},
			{900, 1, Try, false, 2, 0, -1, 400},
			{1299, 1, Try, true, 2, 0, 1, 1},
			{1300, 2, Try, false, 2, 0, -1, 1000},
		},
		// Ten a second and fifteen in ten seconds: the second one decides at last.
		"FIXED 10 1000 FIXED 15 10000": {
			{0, 9, Try, false, 10, 1, -1, 10000},
			{0, 2, Try, true, 10, 1, 1000, 10000},
			{1000, 6, Try, false, 15, 0, -1, 9000},
			{1000, 5, Try, true, 15, 0, 9000, 9000},
			{2000, 1, Try, true, 15, 0, 8000, 8000},
			{10000, 10, Try, false, 10, 0, -1, 10000},
		},
	}
	for words, calls := range tests {
		p := New(nil, rulesOf(t, words), false)
		for i, c := range calls {
			var d Decision
			var err error
			p, d, err = Take(p, start+c.atMillis*1000, c.cost, c.mode)
			got := call{c.atMillis, c.cost, c.mode, d.Limited, d.Limit, d.Remaining,
				CeilMillis(d.RetryAfterMicros), CeilMillis(d.ResetAfterMicros)}
			if got != c || err != nil {
				t.Errorf("%s, call %d:\n got %+v %v\nwant %+v", words, i, got, err, c)
			}
		}
	}
}

// The error of a bad call says what is wrong, and the call changes nothing.
func TestErrors(t *testing.T) {
	full := func(words string) []byte { return New(nil, rulesOf(t, words), false) }
	debt := func(words string, times int) []byte {
		p := full(words)
		for range times {
			var err error
			if p, _, err = Take(p, start, CountMax, Force); err != nil {
				t.Fatal(err)
			}
		}
		return p
	}
	tests := []struct {
		name string
		p    []byte
		cost int64
		mode Mode
		want error
	}{
		{"negative cost", full("GCRA 5 1000"), -1, Try, ErrCost},
		{"negative cost, forced", full("LOG 5 1000"), -1, Force, ErrCost},
		{"cost beyond range", full("LOG 5 1000"), CountMax + 1, Force, ErrCost},
		{"cost above capacity", full("LOG 5 1000"), 6, Try, ErrCapacity},
		{"cost above capacity, peeked", full("WINDOW 5 1000"), 6, Peek, ErrCapacity},
		{"cost above the burst", full("GCRA 5 1000 BURST 3"), 4, Try, ErrCapacity},
		{"cost above one capacity of two", full("GCRA 9 1000 FIXED 5 1000"), 6, Try, ErrCapacity},
		{"debt of a log", debt("LOG 5 1000", 99), CountMax, Force, ErrDebt},
		{"debt of a window", debt("WINDOW 5 1000", 99), CountMax, Force, ErrDebt},
		{"debt of a fixed window", debt("FIXED 5 1000", 99), CountMax, Force, ErrDebt},
		{"debt of a bucket", debt("GCRA 1000000 1000", 99), CountMax, Force, ErrDebt},
		{"debt that takes too long", full("GCRA 1 315576000000"), CountMax, Force, ErrDebt},
	}
	for _, test := range tests {
		before := bytes.Clone(test.p)
		p, d, err := Take(test.p, start, test.cost, test.mode)
		if !errors.Is(err, test.want) || d != (Decision{}) {
			t.Errorf("%s: %+v %v, want %v", test.name, d, err, test.want)
		}
		if !bytes.Equal(p, before) {
			t.Errorf("%s: written", test.name)
		}
	}
	for _, n := range []int64{-1, CountMax + 1} {
		if _, err := Release(full("LOG 5 1000"), start, n); !errors.Is(err, ErrCost) {
			t.Errorf("release %d: %v", n, err)
		}
	}
}

// At the fastest rates every token that was taken comes back: 7 million a second, for ten seconds, taken in odd amounts
// at odd times.
func TestMillionsPerSecond(t *testing.T) {
	p := New(nil, rulesOf(t, "GCRA 7000000 1000 BURST 1000"), false)
	var taken int64
	for now := start; now <= start+10*second; now += 3 + now%97 {
		for _, cost := range []int64{700, 90, 7, 1, 1, 1, 1, 1, 1, 1} {
			var d Decision
			if p, d, _ = Take(p, now, cost, Try); !d.Limited {
				taken += cost
			}
		}
	}
	most := int64(70_000_000 + 1000)
	if taken > most || taken < most*9/10 {
		t.Errorf("took %d, of %d", taken, most)
	}
	// And at 10^12 in a millisecond, the fastest there is.
	p = New(nil, rulesOf(t, "GCRA 1000000000000 1"), false)
	for _, c := range []struct {
		after, cost int64
		limited     bool
		retry       int64
	}{
		{0, CountMax, false, -1},
		{0, 1, true, 1},
		{1, 1_000_000_000, false, -1},
		{0, 1, true, 1},
		{999, CountMax - 1_000_000_000, false, -1},
		{0, 1_000_000_000, true, 1},
		{0, CountMax, true, 1000},
	} {
		var d Decision
		p, d, _ = Take(p, start+c.after, c.cost, Try)
		if d.Limited != c.limited || d.RetryAfterMicros != c.retry {
			t.Errorf("+%d cost %d: %+v", c.after, c.cost, d)
		}
		if c.after == 1 {
			break
		}
	}
}

// When a clock is set back, nothing more passes than at the time before that, and nothing breaks.
func TestClockPutBack(t *testing.T) {
	for _, words := range []string{"GCRA 3 1000", "GCRA 3 1000 BURST 2", "LOG 3 1000", "WINDOW 3 1000", "FIXED 3 1000"} {
		p := New(nil, rulesOf(t, words), false)
		granted := 0
		for i := range 50 {
			var d Decision
			var err error
			p, d, err = Take(p, start-int64(i)*int64(i)*50_000_000_000, 1, Try)
			if err != nil || Check(p) != nil {
				t.Fatalf("%s: %v %v", words, err, Check(p))
			}
			if !d.Limited {
				granted++
			}
		}
		if granted < 1 || granted > int(Capacity(p)) {
			t.Errorf("%s: %d granted", words, granted)
		}
	}
}

// Released tokens can be taken at once, and no more than were taken.
func TestRelease(t *testing.T) {
	for _, words := range []string{"GCRA 10 1000", "LOG 10 1000", "WINDOW 10 1000", "FIXED 10 1000"} {
		p := New(nil, rulesOf(t, words), false)
		p, _, _ = Take(p, start, 7, Try)
		for _, c := range []struct{ n, back, remaining int64 }{{0, 0, 3}, {2, 2, 5}, {CountMax, 5, 10}, {1, 0, 10}} {
			back, err := Release(p, start, c.n)
			_, d, _ := Take(p, start, 1, Peek)
			if err != nil || back != c.back || d.Remaining != c.remaining {
				t.Errorf("%s: release %d: %d back, %d remaining, %v", words, c.n, back, d.Remaining, err)
			}
		}
		if FullAt(p) > start {
			t.Errorf("%s: not full when all is given back", words)
		}
	}
}

func TestTotals(t *testing.T) {
	p := New(nil, rulesOf(t, "LOG 2 1000"), true)
	for _, cost := range []int64{1, 2, 1, 1} {
		p, _, _ = Take(p, start, cost, Try)
		p, _, _ = Take(p, start, cost, Peek)
	}
	p = CountRefused(p)
	if granted, refused := Totals(p); granted != 2 || refused != 3 {
		t.Errorf("%d granted, %d refused", granted, refused)
	}
	if Keep(p, false); Kept(p) {
		t.Error("still kept")
	}
	if Keep(p, true); !Kept(p) {
		t.Error("not kept")
	}
}

// The sizes determine the memory of millions of limiters.
func TestSizes(t *testing.T) {
	for words, want := range map[string]int{
		"GCRA 100 60000":         5 + 3 + 8,
		"GCRA 10 1000 BURST 20":  5 + 4 + 8,
		"GCRA 10 1500":           5 + 5 + 8,
		"GCRA 7 60000":           5 + 3 + 9,
		"GCRA 7000000 1000":      5 + 6 + 11,
		"FIXED 100 60000":        5 + 3 + 14,
		"WINDOW 100 60000":       5 + 3 + 20,
		"LOG 100 60000":          5 + 3 + 34,
		"GCRA 10 1000 LOG 9 900": 5 + 3 + 5 + 8 + 34,
	} {
		if got := len(New(nil, rulesOf(t, words), false)); got != want {
			t.Errorf("%s: %d bytes, want %d", words, got, want)
		}
	}
	p := New(nil, rulesOf(t, "LOG 10 60000"), false)
	for i := range int64(10) {
		p, _, _ = Take(p, start+i*5*second+i*i*777, 1, Try)
	}
	if len(p) > 100 {
		t.Errorf("ten grants take %d bytes", len(p))
	}
	t.Logf("LOG with ten grants out: %d bytes", len(p))
}
