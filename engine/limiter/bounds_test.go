package limiter

// Restored limiters with values at the limits stay within them, whatever is done to them.

import (
	"bytes"
	"encoding/binary"
	"testing"
)

func TestBoundsRefuse(t *testing.T) {
	for text, at := range map[string][]int{"GCRA 3 1000": {0}, "LOG 3 1000": {logNewest, logOldest}, "WINDOW 3 1000": {windowStart}, "FIXED 3 1000": {fixedStart}, "CAL 3 DAY": {calStart}} {
		rules, err := ParseRules(nil, bytes.Fields([]byte(text)))
		if err != nil {
			t.Fatal(err)
		}
		for _, off := range at {
			p := AppendWide(nil, New(nil, rules, true))
			var o opened
			o.open(p)
			binary.LittleEndian.PutUint64(p[o.at[0]+off:], 1<<62)
			if Check(p) == nil {
				t.Errorf("%s: 2^62 was taken over", text)
			}
		}
	}
}

// A bucket in debt stays within the limits when the clock shows another time.
func TestBoundsHold(t *testing.T) {
	rules, err := ParseRules(nil, bytes.Fields([]byte("GCRA 1000000000000 1 BURST 1000000000000")))
	if err != nil {
		t.Fatal(err)
	}
	p := AppendWide(nil, New(nil, rules, true))
	var o opened
	o.open(p)
	binary.LittleEndian.PutUint64(p[o.at[0]:], uint64(TimeMax+FillMicrosMax))
	if err := Check(p); err != nil {
		t.Fatal(err)
	}
	other, _ := ParseRules(nil, bytes.Fields([]byte("GCRA 1 315576000000")))
	for _, now := range []int64{0, 1_700_000_000_000_000, TimeMax} {
		for _, mode := range []Mode{Try, Force, AtMost, Peek} {
			q, d, _ := Decide(append([]byte(nil), p...), now, Call{Cost: CountMax, Mode: mode})
			if err := Check(q); err != nil || d.Remaining > CountMax || d.Remaining < 0 {
				t.Errorf("at %d, mode %d: %v, %+v", now, mode, err, d)
			}
			if err := Check(Change(nil, q, other, now)); err != nil {
				t.Errorf("at %d, mode %d: changed: %v", now, mode, err)
			}
		}
		for _, text := range []string{"LOG 3 1000", "WINDOW 3 1000", "FIXED 3 1000", "CAL 3 MONTH", "TOTAL 3"} {
			to, _ := ParseRules(nil, bytes.Fields([]byte(text)))
			if err := Check(Change(nil, p, to, now)); err != nil {
				t.Errorf("at %d, to %s: %v", now, text, err)
			}
		}
	}
}

// The sum that grants hold is limited, too, so that it fits into CONC when a CONC rule is added.
func TestBoundsOfGrants(t *testing.T) {
	rules, _ := ParseRules(nil, bytes.Fields([]byte("GCRA 1000000000000 1")))
	n := NewNamed(New(nil, rules, true))
	now, opened := int64(1_700_000_000_000_000), 0
	for i := byte(0); n.Room(CountMax); i++ {
		p, d, err := n.Decide(n.State(), now, Call{Cost: CountMax, Lease: true})
		if err != nil || d.Limited {
			t.Fatal(err, d)
		}
		n.SetState(p)
		n.Open([]byte{i + 1}, now, LeaseMicrosMax, &d)
		now += 1000
		opened++
	}
	if int64(opened) != UsedMax/CountMax {
		t.Errorf("%d grants were opened", opened)
	}
	conc, _ := ParseRules(nil, bytes.Fields([]byte("CONC 5")))
	n.Change(conc, now)
	if err := n.Check(); err != nil {
		t.Error(err)
	}
}

// A grant whose deciding rule no longer exists is restored like any other.
func TestFewerRules(t *testing.T) {
	rules, _ := ParseRules(nil, bytes.Fields([]byte("GCRA 100 1000 FIXED 3 1000")))
	n := NewNamed(New(nil, rules, true))
	now := int64(1_700_000_000_000_000)
	p, d, err := n.Decide(n.State(), now, Call{Cost: 2, Lease: true})
	if err != nil || d.Rule != 1 {
		t.Fatal(err, d)
	}
	n.SetState(p)
	n.Open([]byte("a"), now, 1000, &d)
	n.Change(rules[:1], now)
	if err := n.Check(); err != nil {
		t.Error(err)
	}
	if d, ok := n.Find([]byte("a"), now, 0); !ok || d.Limit != 100 {
		t.Errorf("%+v, %v", d, ok)
	}
}
