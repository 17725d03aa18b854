package lock

// Restored locks with values at the limits stay within them, whatever is done to them.

import (
	"errors"
	"testing"
)

// again saves and restores a lock, as files do.
func again(t *testing.T, l *Lock) *Lock {
	t.Helper()
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	out, err := Restore(l.Mode, l.Permits, l.ClosedMicros, l.Len())
	l.Each(func(h Holder) bool {
		if h.Session = 0; err == nil {
			err = out.RestoreHolder(h)
		}
		return err == nil
	})
	if err != nil {
		t.Fatalf("%+v: %v", l, err)
	}
	return out
}

func TestBounds(t *testing.T) {
	for _, h := range []Holder{
		{Owner: []byte("a"), Fence: FenceMax + 1, Take: 1},
		{Owner: []byte("a"), Fence: 1, Take: 1, UntilMicros: TimeMax + 1},
		{Owner: []byte("a"), Fence: 1, Take: 1, DelayMicros: SpanMax + 1},
	} {
		if new(Lock).RestoreHolder(h) == nil {
			t.Errorf("%+v was taken over", h)
		}
	}
	l := new(Lock)
	if err := l.RestoreHolder(Holder{Owner: []byte("a"), Fence: FenceMax, Take: 1, UntilMicros: TimeMax, DelayMicros: SpanMax}); err != nil {
		t.Fatal(err)
	}
	p, ok := again(t, l).Append(nil)
	if l = new(Lock); !ok {
		t.Fatal("it is large")
	}
	l.Read(p)
	again(t, l)
	none := func() int64 { return 0 }
	ask := Ask{Owner: []byte("b"), Take: 1, UntilMicros: 9}
	if l.Lose(l.Find([]byte("a")), TimeMax+1); l.ClosedMicros != TimeMax {
		t.Errorf("closed until %d", l.ClosedMicros)
	}
	again(t, l)
	l.Open(TimeMax)
	if _, _, err := l.Acquire(&ask, TimeMax+1, none); !errors.Is(err, ErrFences) || !l.Free() {
		t.Errorf("without a fence: %v", err)
	}
}

// A journal's data about an existing holder is checked, too.
func TestPut(t *testing.T) {
	l := new(Lock)
	h := Holder{Owner: []byte("a"), Fence: 5, Take: 1, UntilMicros: 9}
	if !l.Put(h, Alone, 0) {
		t.Fatal("not put")
	}
	for name, change := range map[string]func(h *Holder, mode *Mode, permits *int64){
		"time":    func(h *Holder, _ *Mode, _ *int64) { h.UntilMicros = TimeMax + 1 },
		"delay":   func(h *Holder, _ *Mode, _ *int64) { h.DelayMicros = -1 },
		"mode":    func(_ *Holder, mode *Mode, _ *int64) { *mode = Permits },
		"permits": func(_ *Holder, _ *Mode, permits *int64) { *permits = 2 },
		"take":    func(h *Holder, _ *Mode, _ *int64) { h.Take = 2 },
	} {
		x, mode, permits := h, Alone, int64(0)
		if change(&x, &mode, &permits); l.Put(x, mode, permits) {
			t.Errorf("%s: put", name)
		}
		again(t, l)
	}
	if !l.Put(h, Shared, 0) || l.Put(h, Alone, 0) {
		t.Error("a writer goes on as a reader, and not back")
	}
}
