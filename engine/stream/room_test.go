package stream

// How the memory of a block grows.

import "testing"

// TestBlockGrows: a block that gets entry after entry is copied a few times, and a full one has no room left.
func TestBlockGrows(t *testing.T) {
	var s Stream
	pair := [][]byte{[]byte("event"), []byte("completed")}
	copies, room := 0, 0
	for i := range 300 {
		if err := s.Add(ID{1, uint64(i)}, pair, DefaultLimits); err != nil {
			t.Fatal(err)
		}
		b := &s.blocks[len(s.blocks)-1]
		if cap(b.lp) != room {
			copies++
			room = cap(b.lp)
		}
		if n := len(b.lp); n > 100 && cap(b.lp) > 3*n {
			t.Fatalf("%d bytes have room for %d", n, cap(b.lp))
		}
	}
	if len(s.blocks) < 3 {
		t.Fatalf("%d blocks", len(s.blocks))
	}
	if most := 8 * len(s.blocks); copies > most {
		t.Errorf("%d copies for %d blocks", copies, len(s.blocks))
	}
	for i := range s.blocks[:len(s.blocks)-1] {
		if lp := s.blocks[i].lp; cap(lp)-len(lp) >= len(lp)/8 {
			t.Errorf("block %d has %d bytes and room for %d", i, len(lp), cap(lp))
		}
	}
}
