package delayqueue

import "testing"

// A state in which no entries are stored is not taken for that of the waiting entries: the functions panic.
func TestUnknownState(t *testing.T) {
	q := New()
	q.Add(1, []byte("a"), nil, 5, nil, Put)
	for _, state := range SavedStates {
		q.Stored(state)
		q.Count(state, 9)
	}
	for name, ask := range map[string]func(){
		"Stored of Ready":     func() { q.Stored(Ready) },
		"Count of none":       func() { q.Count(Behind+1, 9) },
		"Each of none":        func() { q.Each(Behind+1, func(Saved) {}) },
		"Peek of none":        func() { q.Peek(Behind+1, 9, 1, func(Entry) {}) },
		"Image's Next of Any": func() { q.Image(func(Saved) {}).Next(Any, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is answered", name)
				}
			}()
			ask()
		}()
	}
}
