package delayqueue

import (
	"fmt"
	"testing"
)

// imaging is an image that is made during a run's steps.
type imaging struct {
	image     *Image
	at        int // of SavedStates
	walks     bool
	want, got map[string]string
	twice     string
}

func pictureOf(s *Saved) string { return fmt.Sprintf("%+v", *s) }

// nameOf tells an entry from its new version.
func nameOf(s *Saved) string { return fmt.Sprint(string(s.ID), s.State == Behind) }

// imagine begins an image, continues it, or compares it with what the queue contained.
func (r *run) imagine() error {
	switch {
	case r.image == nil && r.rnd.IntN(20) == 0:
		r.imaging = imaging{want: map[string]string{}, got: map[string]string{}}
		for _, state := range SavedStates {
			r.q.Each(state, func(s Saved) { r.want[nameOf(&s)] = pictureOf(&s) })
		}
		r.image = r.q.Image(func(s Saved) {
			if _, twice := r.got[nameOf(&s)]; twice {
				r.twice = nameOf(&s)
			}
			r.got[nameOf(&s)] = pictureOf(&s)
			r.did("early", !r.walks)
		})
		return nil
	case r.image == nil || r.rnd.IntN(3) > 0:
		return nil
	}
	r.walks = true
	more := r.image.Next(SavedStates[r.at], 1+r.rnd.IntN(3))
	r.walks = false
	if more {
		return nil
	}
	if r.at++; r.at < len(SavedStates) {
		return nil
	}
	r.did("image", len(r.want) > 1)
	r.image = nil
	if r.twice != "" {
		return fmt.Errorf("the image has %s twice", r.twice)
	}
	if got, want := fmt.Sprint(r.got), fmt.Sprint(r.want); got != want {
		return fmt.Errorf("the image has %s, want %s", got, want)
	}
	return nil
}

// TestImageForgets adds and removes entries while an image is made: the image does not remember removed ones.
func TestImageForgets(t *testing.T) {
	q := New()
	for i := range 1000 {
		q.Add(0, fmt.Appendf(nil, "stays:%d", i), nil, 1e9, nil, Put)
	}
	image, n := q.Image(func(Saved) {}), 0
	for i := range 100_000 {
		id := fmt.Appendf(nil, "goes:%d", i)
		q.Add(1, id, nil, 1, nil, Put)
		if q.Pop(1, 1e6, 1, func(Entry) {}) != 1 || !q.Ack(id, 1, 1) {
			t.Fatalf("%s does not go", id)
		}
		n = max(n, len(image.noted))
	}
	if n > 1 || len(image.noted) != 0 {
		t.Errorf("%d entries are noted, %d at most", len(image.noted), n)
	}
}
