package delayqueue

import (
	"fmt"
	"slices"
	"testing"
)

// looking are searches that are made during a run's steps, and what each should find.
type looking struct {
	looks []*Search
	wants [][]string
}

func entryText(e *Entry) string { return fmt.Sprintf("%+v", *e) }

// look begins a search, continues one, or compares what it found with what the queue contained.
func (r *run) look() error {
	if len(r.looks) < 3 && r.rnd.IntN(10) == 0 {
		state := State(r.rnd.IntN(int(Dying) + 1))
		var from []byte
		if r.rnd.IntN(3) == 0 {
			from = []byte(r.id())
		}
		digit, count := byte('0'+r.rnd.IntN(10)), 1+r.rnd.IntN(6)
		match := func(id []byte) bool { return id[len(id)-1] >= digit }
		want := []string{}
		found := r.q.Walk(state, r.now, from, func(e Entry) bool {
			if match(e.ID) {
				want = append(want, entryText(&e))
			}
			return len(want) < count
		})
		l, ok := r.q.Search(state, r.now, from, count, match)
		if ok != found {
			return fmt.Errorf("a search from %q begins: %v", from, ok)
		}
		if ok {
			r.looks, r.wants = append(r.looks, l), append(r.wants, want)
		}
	}
	if len(r.looks) == 0 || r.rnd.IntN(2) > 0 {
		return nil
	}
	i := r.rnd.IntN(len(r.looks))
	l, want := r.looks[i], r.wants[i]
	if l.Next(r.rnd.IntN(3)) {
		return nil
	}
	r.looks, r.wants = slices.Delete(r.looks, i, i+1), slices.Delete(r.wants, i, i+1)
	r.did("found early", len(l.early) > 0)
	got := []string{}
	for _, e := range l.End(true) {
		got = append(got, entryText(&e))
	}
	r.did("search", len(want) > 1)
	if !slices.Equal(got, want) {
		return fmt.Errorf("the search found\n%s\nwant\n%s", got, want)
	}
	return nil
}

// TestSearchForgets: a search remembers nothing that came and went, nor does one that ended while the queue was
// elsewhere.
func TestSearchForgets(t *testing.T) {
	q := New()
	for i := range 1000 {
		q.Add(0, fmt.Appendf(nil, "stays:%d", i), nil, 1e9, nil, Put)
	}
	l, _ := q.Search(Any, 1, nil, 3, func([]byte) bool { return true })
	gone, _ := q.Search(Any, 1, nil, 3, func([]byte) bool { return true })
	l.Next(1)
	for i := range 1000 {
		id := fmt.Appendf(nil, "goes:%d", i)
		q.Add(1, id, nil, 1, nil, Put)
		if q.Pop(1, 1e6, 1, func(Entry) {}) != 1 || !q.Ack(id, 1, 1) {
			t.Fatalf("%s does not go", id)
		}
		q.Remove(fmt.Appendf(nil, "stays:%d", i), 0, 1)
		if len(l.noted) > 1 || len(l.early) > 6 {
			t.Fatalf("%d entries are noted, %d are found early", len(l.noted), len(l.early))
		}
		if i == 500 {
			gone.End(false)
		}
	}
	if len(q.searches) != 1 || gone.noted != nil {
		t.Errorf("%d looks", len(q.searches))
	}
	l.Next(1000)
	for i, e := range l.End(true) {
		if want := fmt.Sprintf("stays:%d", i); string(e.ID) != want {
			t.Errorf("entry %d is %s", i, e.ID)
		}
	}
	if q.searches = slices.Clip(q.searches); len(q.searches) != 0 {
		t.Errorf("%d looks are left", len(q.searches))
	}
}
