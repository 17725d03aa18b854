package replication

// The stream, its readers and its IDs.

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/limitkv/limitkv/engine/journal"
)

func testStream(size int64) *Stream {
	n := 0
	return NewStream(size, func() string { n++; return fmt.Sprintf("%040d", n) }, journal.New())
}

// Each cursor reads the bytes after its place, however far the others are, and the backlog stores the bytes that it
// should and not many more.
func TestStream(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	const size = 32 << 10
	s := testStream(size)
	s.Begin(1000)
	st := s.State()
	id, offset := st.ID, st.Offset
	if offset != 1000 {
		t.Fatal(offset)
	}
	all := make([]byte, offset)
	type reader struct {
		c     *Cursor
		woken int
	}
	var readers []*reader
	read, left := 0, 0
	for i := range 5000 {
		b := make([]byte, r.IntN(400))
		for j := range b {
			b[j] = byte(r.Uint32())
		}
		all = append(all, b...)
		if i%2 == 0 {
			s.Append(0, 0, b)
		} else {
			s.Feed(b)
		}
		st := s.State()
		if st.Offset != int64(len(all)) || st.First+st.Kept != st.Offset+1 {
			t.Fatalf("%+v, and there are %d", st, len(all))
		}
		if len(all) > 3*size && st.Kept < size {
			t.Fatalf("%d bytes are kept of %d", st.Kept, size)
		}
		if len(readers) == 0 && st.Kept > size+2*blockBytesMin {
			t.Fatalf("%d bytes are kept of %d", st.Kept, size)
		}
		if r.IntN(20) == 0 {
			x := &reader{}
			from := st.First + r.Int64N(st.Kept+2)
			var why Refusal
			x.c, why = s.FollowFrom(id, from, func() { x.woken++ })
			if (x.c != nil) != (from <= st.Offset+1) {
				t.Fatalf("from %d of %+v: %s", from, st, why)
			}
			if x.c != nil {
				readers = append(readers, x)
			}
		}
		for k := 0; k < len(readers); k++ {
			x := readers[k]
			if r.IntN(3) != 0 {
				continue
			}
			for range r.IntN(8) {
				at, next := x.c.Pos(), x.c.Next()
				if len(next) == 0 {
					if at != st.Offset {
						t.Fatalf("nothing at %d of %d", at, st.Offset)
					}
					woken := x.woken
					s.Feed([]byte("."))
					all = append(all, '.')
					if st.Offset++; x.woken == woken { // it is woken twice if a block begins
						t.Fatal("nobody was woken")
					}
					break
				}
				if !bytes.Equal(next, all[at:at+int64(len(next))]) {
					t.Fatalf("other bytes at %d", at)
				}
				n := 1 + r.IntN(len(next))
				x.c.Advance(n)
				read += n
			}
			if r.IntN(20) == 0 {
				x.c.Leave()
				readers = append(readers[:k], readers[k+1:]...)
				left++
			}
		}
	}
	if read < 100_000 || left < 20 {
		t.Errorf("%d bytes were read, %d readers left", read, left)
	}
}

// The IDs of a stream, and which replicas may continue with them.
func TestNames(t *testing.T) {
	s := testStream(1 << 20)
	if ok, why := s.accepts("0000000000000000000000000000000000000001", 1); ok || why != NotKept {
		t.Error("a stream that keeps nothing is followed")
	}
	s.Begin(0)
	first := s.State().ID
	s.Feed(make([]byte, 100))
	check := func(id string, from int64, want Refusal) {
		t.Helper()
		if ok, why := s.accepts(id, from); ok != (want == "") || why != want {
			t.Errorf("%s from %d: %q, want %q", id, from, why, want)
		}
	}
	check(first, 0, NotKept)
	check(first, 1, "")
	check(first, 101, "")
	check(first, 102, NotKept)
	check("?", 1, OtherID)
	s.Promote()
	st := s.State()
	second, was, upTo := st.ID, st.ID2, st.Second
	if second == first || was != first || upTo != 101 {
		t.Errorf("%s %s %d", second, was, upTo)
	}
	s.Feed(make([]byte, 50))
	check(first, 101, "")
	check(first, 102, SecondPassed)
	check(second, 151, "")
	if !s.Continue("other") {
		t.Error("it has the name already")
	}
	if s.Continue("other") {
		t.Error("it had not taken the name")
	}
	check(second, 151, "")
	check(first, 1, OtherID)
	c := s.Follow(func() {})
	if s.End() {
		t.Error("it ended although it is read")
	}
	s.Adopt("third", 7)
	s.Feed([]byte("x"))
	if len(c.Next()) != 0 {
		t.Error("a reader goes on in another history")
	}
	check("third", 8, "")
	check("third", 7, NotKept)
	check("other", 8, OtherID)
	c.Leave()
	if !s.End() || s.State().Active {
		t.Error("it does not end")
	}
}
